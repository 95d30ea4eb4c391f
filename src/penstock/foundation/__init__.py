"""Concepts without a stage, which every other folder may import."""
