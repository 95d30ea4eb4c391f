"""Global state around a run: random state and precision, set where a model is built, and restored afterwards.

In: a seed, or the option `precision`. Out: context managers. Python, NumPy, Keras and its backend have
separate random states. Layers take the precision of Keras' dtype policy when they are created, and keep it.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import keras
import numpy as np
from keras.src.backend.common import global_state
from keras.src.random.seed_generator import GLOBAL_SEED_GENERATOR
from keras.src.utils.rng_utils import GLOBAL_RANDOM_SEED

from penstock.training.distribution import JAX
from penstock.training.snapshot import copy_array

_TENSORFLOW: Final = "tensorflow.python.eager.context"


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Make objects built inside depend on a seed alone, and restore the random state afterwards."""
    with restored_random_state():
        set_seed(seed)
        yield


def set_seed(seed: int) -> None:
    """Seed Python, NumPy, Keras and its backend.

    Keras' own function imports TensorFlow wherever it is installed, which takes seconds; with another backend
    it is seeded only if it is loaded.
    """
    if keras.backend.backend() != JAX or "tensorflow" in sys.modules:
        keras.utils.set_random_seed(seed)
        return
    global_state.set_global_attribute(GLOBAL_RANDOM_SEED, seed)
    global_state.set_global_attribute(GLOBAL_SEED_GENERATOR, None)
    random.seed(seed)
    np.random.seed(seed)


@contextmanager
def restored_random_state() -> Iterator[None]:
    """Restore the random state of Python, NumPy, Keras and the backend at the end.

    TensorFlow keeps a counter for each operation that was given an explicit seed, and offers no way to read
    it: such operations start again from their seed after a global seed was set inside.
    """
    python, numpy = random.getstate(), np.random.get_state()
    restore_keras = _remember_keras()
    restore_backends = [restore for restore in (_remember_tensorflow(), _remember_torch()) if restore]
    try:
        yield
    finally:
        for restore in restore_backends:
            restore()
        restore_keras()
        random.setstate(python)
        np.random.set_state(numpy)


def _remember_keras() -> Callable[[], None]:
    """Return a function that restores Keras' global seed and the generator behind `keras.random`."""
    seed = global_state.get_global_attribute(GLOBAL_RANDOM_SEED)
    generator = global_state.get_global_attribute(GLOBAL_SEED_GENERATOR)
    state = None if generator is None else copy_array(generator.state)

    def restore() -> None:
        global_state.set_global_attribute(GLOBAL_RANDOM_SEED, seed)
        global_state.set_global_attribute(GLOBAL_SEED_GENERATOR, generator)
        if generator is not None:
            generator.state.assign(state)

    return restore


def _remember_tensorflow() -> Callable[[], None] | None:
    """Return a function that restores TensorFlow's global seed and the seeds drawn from it, if it is loaded.

    TensorFlow is looked up rather than imported: other backends must not load it.
    """
    module = sys.modules.get(_TENSORFLOW)
    if module is None:
        return None
    context: Any = module.context()
    seed = context._seed
    draws = getattr(context, "_rng", None)  # there is none before the first seed
    state = None if draws is None else draws.getstate()

    def restore() -> None:
        now = getattr(context, "_rng", None)
        if context._seed == seed and (now is None or now.getstate() == state):
            return
        context._set_global_seed(seed)
        if state is not None:
            context._rng.setstate(state)

    return restore


def _remember_torch() -> Callable[[], None] | None:
    """Return a function that restores torch's random state, if torch is the backend."""
    if keras.backend.backend() != "torch":
        return None
    torch: Any = sys.modules["torch"]
    state = torch.get_rng_state()
    return lambda: torch.set_rng_state(state)


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
