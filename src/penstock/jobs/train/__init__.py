"""From data to a trained run."""
