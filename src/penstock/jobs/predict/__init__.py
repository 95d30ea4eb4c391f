"""From a trained run and data to predictions and scores."""
