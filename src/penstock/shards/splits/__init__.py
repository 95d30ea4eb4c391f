"""The split of every row: rules, keys of rows, and properties of all rows before any is assigned."""
