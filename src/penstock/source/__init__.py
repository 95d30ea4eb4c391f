"""The source stage: raw data as blocks of columns.

In: paths, tables, arrays, samples. Out: an iterator of `Block`s of raw columns, so that memory use does not
grow with the input.
"""
