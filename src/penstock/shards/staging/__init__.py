"""A data set until it is complete: its hidden folder, journal and lock, and how it is published."""
