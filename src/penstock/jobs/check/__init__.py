"""The contents of files, whether they are intact, and copies of intact records."""
