"""Record bytes into files that describe themselves."""
