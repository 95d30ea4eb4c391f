"""Trained runs as folders that leave the project: one module per format, loaded when it is needed."""
