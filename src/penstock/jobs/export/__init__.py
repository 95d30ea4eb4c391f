"""Export: a run becomes a folder that is used elsewhere, checked against the run."""
