"""Encoders: each describes how one kind of input becomes a vector a record."""
