"""From raw data to a data set."""
