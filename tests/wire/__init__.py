"""The TFRecord frame and the messages inside it, in plain Python: bytes in, values out, and back.

The reference that the tests compare the compiled core with, and what they write small files with.
"""
