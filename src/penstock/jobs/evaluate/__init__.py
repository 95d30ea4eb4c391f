"""From a trained run and labelled data to scores."""
