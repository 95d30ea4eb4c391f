"""A pipeline as TensorFlow operations: one program, which is run or written as Python code."""
