"""The precision in which a model computes: the dtype policy of Keras, while a model is built.

In: the option `precision`. Out: a context manager. Layers take the policy when they are created, and keep it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import keras

_POLICIES: Final = {"float32": "float32", "bfloat16": "mixed_bfloat16"}


@contextmanager
def in_precision(precision: str | None) -> Iterator[None]:
    """Create layers inside with a precision, and restore the policy of Keras afterwards.

    With "bfloat16", layers compute in bfloat16, and their weights are float32. Losses and metrics are float32
    in any case, as they do not follow the policy, and so are the output layers of built models.

    `precision`: "float32", "bfloat16", or None for the current policy.

    Example:
        >>> with in_precision("bfloat16"):
        ...     layer = keras.layers.Dense(1)
        >>> layer.compute_dtype, layer.variable_dtype
        ('bfloat16', 'float32')
    """
    if precision is None:
        yield
        return
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(_POLICIES[precision])
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
