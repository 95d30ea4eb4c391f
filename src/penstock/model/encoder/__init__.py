"""Encoders: each describes the layers that turn one kind of input into one vector per record."""
