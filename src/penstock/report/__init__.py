"""A data set or a run as numbers in one object, and as one HTML page."""
