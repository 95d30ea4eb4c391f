"""The plan stage: what each column of the raw data becomes, and why."""
