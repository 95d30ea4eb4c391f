"""Rules of the project that `tools/lint.py` checks, one function each."""
