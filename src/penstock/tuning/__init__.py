"""Choices before training, by trials on validation: inputs, and how images and numbers are learned."""
