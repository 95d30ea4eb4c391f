"""Batches into a trained model: Keras starts here. Building, training, evaluation and prediction."""
