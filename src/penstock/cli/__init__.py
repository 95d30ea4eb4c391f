"""The `penstock` command: parses, calls a job, prints."""
