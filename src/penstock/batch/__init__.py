"""Arrays to batches: order, threads, cache, exact state."""
