"""The TFRecord frame and the messages inside it, in plain Python: bytes in, values out, and back.

Documentation that runs, and the oracle of the property tests. Nothing on the way of a training run
imports it: the compiled core does this work there, by the same rules.
"""
