"""A pipeline as TensorFlow's own operations: one program, which is run or is written as Python code."""
