"""Choices before training: what a run tries on validation, and how its images and numbers are learned."""
