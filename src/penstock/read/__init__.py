"""Files to record views: grouping files into splits, indexing, reading in any order."""
