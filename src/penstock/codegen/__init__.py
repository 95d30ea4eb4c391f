"""Generated code: its syntax tree, and the tree as text."""
