"""The inputs and outputs of a Keras model by name.

In: any Keras model, and the names of the targets. Out: symbolic tensors by name. A subclassed model is
called, with symbols, zeros or random numbers, to find out which inputs it reads and what it returns.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import keras
import numpy as np
from keras.src.models.functional import Functional
from numpy.typing import NDArray

from penstock.bridge.keras_model import name_model
from penstock.errors import OptionError
from penstock.foundation.wording import find_nearest, list_choices, show
from penstock.transform.output import Output


def is_graph(model: keras.Model) -> bool:
    """Return whether the layers of a model are known before it is called: functional, or `Sequential`."""
    return isinstance(model, Functional | keras.Sequential)


def find_inputs(model: keras.Model, names: Collection[str] = ()) -> dict[str, Any] | None:
    """Return the symbolic inputs of a model by name; None if they are unknown before it is called.

    The names are the keys of the dict that it was created from, or the names of its `keras.Input`s. The only
    input of a model that was not created from a dict takes the only name of `names`.

    `names`: names of the inputs of the pipeline that feeds it, if there is one.
    """
    if isinstance(model, keras.Sequential):
        try:
            inputs = model.inputs
        except AttributeError:  # no input is declared
            raise OptionError(
                f"inputs of {name_model(model)}",
                expected="a first layer that declares its input",
                got="a Sequential model without one",
                advice="Begin it with keras.Input(shape, name='…'), named after the field.",
            ) from None
        return dict(zip(names, inputs, strict=True)) if len(names) == 1 else {inputs[0].name: inputs[0]}
    if not isinstance(model, Functional):
        return None
    given = model.input
    if isinstance(given, dict):
        named = dict(given)
    else:
        listed = given if isinstance(given, list | tuple) else [given]
        named = {getattr(each, "name", show(each)): each for each in listed}
        if len(listed) == len(names) == 1:
            named = dict(zip(names, listed, strict=True))
    if any(isinstance(each, list | tuple | dict) for each in named.values()):
        raise OptionError(
            f"inputs of {name_model(model)}",
            expected="one dict of keras.Inputs by name",
            got="nested dicts or lists",
            advice="Create it with keras.Model({'photo': photo, 'age': age}, …).",
        )
    return named


def find_outputs(model: keras.Model) -> Any:
    """Return the symbolic outputs of a model whose layers are known, in its own structure."""
    return model.outputs if isinstance(model, keras.Sequential) else model.output


def name_outputs(model: keras.Model, targets: Iterable[str], outputs: Any) -> dict[str, Any]:
    """Return the outputs of a model, symbolic or arrays, by the names of the targets."""
    wanted = tuple(targets)
    if isinstance(outputs, Mapping):
        return _match_names(model, wanted, outputs)
    listed = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    if len(wanted) == len(listed) == 1:
        return {wanted[0]: listed[0]}
    names = list(getattr(model, "output_names", None) or ())
    if len(listed) == len(names) > 1 and not set(wanted).isdisjoint(names):
        return _match_names(model, wanted, dict(zip(names, listed, strict=True)))
    example = ", ".join(f"{name!r}: …" for name in wanted)
    raise OptionError(
        f"outputs of {name_model(model)}",
        expected=f"a dict by target, {{{example}}}",
        got=f"{len(listed)} outputs without these names" if len(listed) > 1 else "one output",
        advice="Outputs are matched by name, not by position: keras.Model(inputs, {…}).",
    )


def _match_names(model: keras.Model, wanted: tuple[str, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    for name in wanted:
        if name not in given:
            nearest = find_nearest(name, given)
            raise OptionError(
                f"target {name!r}",
                field=name,
                expected=f"an output of that name from {name_model(model)}",
                got=list_choices(map(str, given)),
                advice=f"Name the output {name!r}, not {nearest!r}."
                if nearest
                else f"Add the output: {{{name!r}: …}}.",
            )
    for name in given:
        if name not in wanted:
            raise OptionError(
                f"output {name!r} of {name_model(model)}",
                field=str(name),
                expected=f"a target of that name: {list_choices(wanted)}",
                got="no such target",
                advice="Remove the output from the model that is trained.",
            )
    return {name: given[name] for name in wanted}


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
