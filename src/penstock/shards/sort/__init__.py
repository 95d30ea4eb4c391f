"""The shuffle of rows that do not fit into memory: chunks, sorted runs, and the files that hold them."""
