"""From a trained run and new data to predictions."""
