"""The data set on disk, as both halves agree on it: manifest, shard entries, indexes, names of shards."""
