"""Find out which inputs a subclassed model reads, by calling it.

In: a model, and the outputs of a pipeline that feed it. Out: its symbolic outputs, the names of the inputs
that it reads, and batches of zeros or random numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Final

import keras
import numpy as np
from numpy.typing import NDArray

from penstock.transform.output import Output

_LENGTH: Final = 64  # of a dimension that varies: large enough for stacks of convolutions
_DEVIATION: Final = 20.0  # of random numbers: the sigmoid of most of them is near 0 or 1


class RecordedInputs(dict[str, Any]):
    """Dict of inputs that records which of them are read, and the first that is missing.

    Attributes:
        read: Names of the inputs that were read.
        missing: First name that was read and does not exist; or None.
        is_done: Whether the call of the model returned.
    """

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        super().__init__(inputs)
        self.read: dict[str, None] = {}
        self.missing: str | None = None
        self.is_done = False

    def __getitem__(self, name: str) -> Any:
        if name not in self and self.missing is None:
            self.missing = str(name)
        self.read[name] = None
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Record the name, and return its input."""
        self.read[name] = None
        return super().get(name, default)

    def pop(self, name: str, *default: Any) -> Any:
        """Record the name, and remove its input."""
        self.read[name] = None
        return super().pop(name, *default)

    def __iter__(self) -> Iterator[str]:
        self.read.update(dict.fromkeys(super().keys()))
        return super().__iter__()

    def keys(self) -> Any:
        """Record all names, and return them."""
        return dict.fromkeys(self).keys()

    def items(self) -> Any:
        """Record all names, and return them with their inputs."""
        return {name: dict.__getitem__(self, name) for name in self}.items()

    def values(self) -> Any:
        """Record all names, and return their inputs."""
        return {name: dict.__getitem__(self, name) for name in self}.values()


def call_on_symbols(model: keras.Model, inputs: Mapping[str, Output]) -> Any:
    """Call a model on symbolic inputs by name, which builds it; return its symbolic outputs."""
    symbols = {
        name: keras.KerasTensor((None, *each.shape), dtype=each.dtype) for name, each in inputs.items()
    }
    with warnings.catch_warnings():
        # Keras warns twice of a call that fails, before it raises.
        warnings.simplefilter("ignore")
        return model(symbols)


def record_inputs(model: keras.Model, inputs: Mapping[str, Output]) -> RecordedInputs:
    """Call a model on zeros; return the inputs that it read, also if the call failed."""
    shapes = {name: (each.shape, each.dtype) for name, each in inputs.items()}
    zeros = {name: keras.ops.convert_to_tensor(each) for name, each in make_batch(shapes, 2).items()}
    reading = RecordedInputs(zeros)
    try:
        # Changes of the model's state are discarded.
        with keras.StatelessScope(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.call(reading)
        reading.is_done = True
    except Exception:  # noqa: S110 - models fail in every way; the caller has the error of a proper call
        pass
    return reading


def make_batch(
    shapes: Mapping[str, tuple[tuple[int | None, ...], str]],
    num_rows: int,
    draws: np.random.Generator | None = None,
) -> dict[str, NDArray[Any]]:
    """Return arrays of these shapes and types by name: zeros, or random numbers if `draws` is given."""
    batch: dict[str, NDArray[Any]] = {}
    for name, (shape, dtype) in shapes.items():
        size = (num_rows, *(_LENGTH if dim is None else dim for dim in shape))
        if draws is None:
            batch[name] = np.zeros(size, dtype)
        elif "float" in dtype:
            batch[name] = draws.normal(scale=_DEVIATION, size=size).astype(dtype)
        else:
            batch[name] = draws.integers(0, 2, size).astype(dtype)  # every vocabulary has two codes
    return batch
