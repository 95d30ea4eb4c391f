"""The folder of a run that is being trained: its name, lock and first tables, and a folder in a store."""
