"""A Keras model as an ONNX model: knows the operations of both, and nothing of data or runs."""
