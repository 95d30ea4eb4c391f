"""How fast a data set is loaded, and what limits it."""
