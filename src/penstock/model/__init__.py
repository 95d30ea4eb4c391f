"""Schema and pipeline to a Keras model: description, encoders, heads, building, printing as code."""
