"""Several processes or machines: workers that train together, and tasks on a Ray cluster."""
