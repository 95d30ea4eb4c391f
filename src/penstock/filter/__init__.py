"""Columns -> row masks: the expression language of `filter=`, and lengths of rows."""
