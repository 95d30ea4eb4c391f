"""Every option of Penstock, declared once; below all stages, which take the groups of options that they need.

In: declarations in class bodies. Out: checks, keywords, flags, tables of files, requests, the reference.
"""
