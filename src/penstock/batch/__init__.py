"""Columns into batches: order, threads, state, and the bridges to frameworks."""
