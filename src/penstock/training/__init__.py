"""Model and loader to a run folder: fit, checkpoints, exact resume, history."""
