"""Code for given data, as text: reads it with TensorFlow, or trains a model on it."""
