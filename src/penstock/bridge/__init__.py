"""Loaders to frameworks: one module per framework, each loaded late."""
