"""Columns -> row masks: the expression language of `filter=`, weights and lengths of rows."""
