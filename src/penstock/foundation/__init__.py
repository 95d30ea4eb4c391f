"""Concepts without a stage: wording, JSON forms, option checks, YAML, threads, generated code."""
