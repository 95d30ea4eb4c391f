"""The source stage: raw data as it lies around, in blocks of columns.

In: paths, tables, arrays, samples. Out: `Block`s of raw columns, one after the other: memory does not grow
with the input.
"""
