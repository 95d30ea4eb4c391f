"""Measures of the source of Penstock, one module per kind of measure; `measure_house.py` prints them."""
