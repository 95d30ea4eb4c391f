"""How good predictions are: scores, intervals, slices, which inputs matter, the worst mistakes."""
