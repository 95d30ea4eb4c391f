"""Whole jobs that join stages: what a command does, without its words."""
