"""Predict batches with a trained model of any library, and calibrate its probabilities.

In: the arrays of a batch by input. Out: probabilities and numbers by target. A temperature divides the logits
of probabilities: above 1 they become less certain, below 1 more; the order of records, and of labels, stays.
Loads no Keras: exported models predict without it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.foundation.wording import find_nearest, list_choices, show
from penstock.model.task import Kind, Task
from penstock.transform.output import STRINGS, Output
from penstock.transform.pipeline import Pipeline

MIN_TEMPERATURE: Final = 0.5
MAX_TEMPERATURE: Final = 5.0
"""Range of temperatures. Without a lower limit, a model that makes no mistake on few validation records would
become certain of everything."""

SMALLEST_CHANCE: Final = 1e-7
"""Probabilities are at least this before their logarithm is taken, as in Keras."""

NUM_BINS: Final = 15
"""Number of bins of equal width of the expected calibration error; 15 is the usual choice."""


def apply_temperature(kind: Kind, predicted: NDArray[Any], temperature: float) -> NDArray[Any]:
    """Return probabilities whose logits are divided by a temperature.

    `predicted`: probabilities: (n, labels) for several labels, else of the second label. `temperature`: the
    temperature; 1 returns the probabilities unchanged.

    Example:
        >>> apply_temperature("binary", np.array([0.5, 0.9]), 2.0)
        array([0.5 , 0.75])
    """
    if temperature == 1:
        return predicted
    logits = compute_logits(kind, predicted) / temperature
    return compute_softmax(logits) if kind == "multiclass" else compute_sigmoid(logits)


def compute_logits(kind: Kind, predicted: NDArray[Any]) -> NDArray[np.float64]:
    """Return finite logits of probabilities, in double precision."""
    chances = np.clip(predicted.astype(np.float64), SMALLEST_CHANCE, 1.0)
    if kind == "multiclass":
        return np.asarray(np.log(chances))
    return np.asarray(np.log(chances) - np.log(np.clip(1 - chances, SMALLEST_CHANCE, 1.0)))


def compute_sigmoid(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 / (1 + exp(-x)) without overflow."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -logits)))


def compute_softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the softmax over the last axis without overflow."""
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


Fill: TypeAlias = Literal["largest", "power_of_two", "none"]


class BatchPredictor(ABC):
    """Predicts batches of inputs that a pipeline makes.

    Batches are filled up with copies of their last record, as backends compile a model again for every new
    number of rows.

    Attributes:
        fill: Number of rows to fill up to: the "largest" batch so far, which suits the batches of one data
            set; the next "power_of_two", which suits requests of any size; or "none".
        pipeline: Pipeline that defines the inputs.
        tasks: Task of each target.
        logits: Whether the model returns logits, by target.
        temperatures: Temperature of the probabilities, by target; 1 if there is none.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        tasks: Mapping[str, Task],
        logits: Mapping[str, bool],
        temperatures: Mapping[str, float] | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.tasks = dict(tasks)
        self.logits = {name: bool(logits.get(name, False)) for name in tasks}
        self.temperatures = {name: (temperatures or {}).get(name, 1.0) for name in tasks}
        self.fill: Fill = "largest"
        self._inputs = pipeline.inputs
        self._most_rows = 0

    @abstractmethod
    def call_model(self, arrays: dict[str, NDArray[Any]]) -> Mapping[str, Any]:
        """Return the outputs of the model by target, for arrays by input that have been checked."""

    def __call__(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float32]]:
        """Return the predictions of a batch by target, float32.

        Args:
            inputs: Arrays by name, as the pipeline makes them.

        Returns:
            Binary: (n,), the probability of the second label. Multiclass and multilabel: (n, labels).
            Regression: the shape of the target, in the units of the stored field.

        Raises:
            OptionError: An input is missing or unknown, or has a wrong type, shape or number of rows.
        """
        arrays, num_rows = self._check(inputs)
        if not num_rows:
            return {name: np.empty((0, *_shape(task)), np.float32) for name, task in self.tasks.items()}
        num_lacking = self._count_rows(num_rows) - num_rows
        if num_lacking:
            arrays = {
                name: np.concatenate([each, np.repeat(each[-1:], num_lacking, axis=0)])
                for name, each in arrays.items()
            }
        named = self.call_model(arrays)
        return {
            name: _convert_output(
                task, np.asarray(named[name])[:num_rows], self.logits[name], self.temperatures[name]
            )
            for name, task in self.tasks.items()
        }

    def _count_rows(self, num_rows: int) -> int:
        """Return the number of rows that a batch is filled up to."""
        if self.fill == "power_of_two":
            return 1 << (num_rows - 1).bit_length()
        self._most_rows = max(self._most_rows, num_rows)
        return self._most_rows if self.fill == "largest" else num_rows

    def _check(self, inputs: Mapping[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], int]:
        for name in self._inputs:
            if name not in inputs:
                nearest = find_nearest(name, inputs)
                advice = f"Rename the input {nearest!r} to {name!r}." if nearest else ""
                got = list_choices(inputs) if inputs else "no inputs"
                raise _make_error(name, "an array with that name", got, advice)
        for name in inputs:
            if name not in self._inputs:
                expected = f"one of {list_choices(self._inputs)}"
                raise _make_error(name, expected, "an unknown input", "Remove it.")
        arrays = {name: _convert_input(output, inputs[name]) for name, output in self._inputs.items()}
        counts = {name: len(each) for name, each in arrays.items()}
        first, num_rows = next(iter(counts.items()))
        for name, count in counts.items():
            if count != num_rows:
                raise _make_error(name, f"{num_rows} rows, as {first!r} has", f"{count}")
        return arrays, num_rows


def can_feed(given: str, taken: str) -> bool:
    """Return whether Keras casts one dtype to another without loss.

    Whole numbers and booleans are cast to floats, and int64 codes to int32. Floats are not cast to whole
    numbers, which would truncate them; strings are never cast.

    Example:
        >>> can_feed("uint8", "float32"), can_feed("float32", "int32")
        (True, False)
    """
    if given == taken:
        return True
    if given in STRINGS or taken in STRINGS:
        return given in STRINGS and taken in STRINGS
    if "float" in taken or (given, taken) == ("int64", "int32"):
        return True
    return "float" not in given and taken != "bool" and bool(np.can_cast(given, taken, "safe"))


def fits(given: tuple[int | None, ...], taken: tuple[int | None, ...]) -> bool:
    """Return whether arrays of a shape fit an input, both without rows; Keras adds or drops a last 1.

    Example:
        >>> fits((20,), (None,)), fits((), (1,)), fits((None,), (20,))
        (True, True, False)
    """
    if len(given) == len(taken) + 1 and given[-1] == 1:
        given = given[:-1]
    elif len(given) == len(taken) - 1 and taken[-1] == 1:
        given = (*given, 1)
    return len(given) == len(taken) and all(
        wanted is None or wanted == size for size, wanted in zip(given, taken, strict=True)
    )


def describe_shape(shape: tuple[int | None, ...]) -> str:
    """Return a shape with its rows as text: `(n, 4)`, with ? for dimensions that vary."""
    return Output("shape", "float32", shape).describe().removeprefix("float32 ")


def _convert_input(output: Output, value: Any) -> NDArray[Any]:
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        got = "strings" if array.dtype.kind in "OSU" else str(array.dtype)
        raise _make_error(
            output.name, output.describe(), got, "Pass the numbers that the pipeline makes of them."
        )
    if array.ndim == 0 or not fits(array.shape[1:], output.shape):
        got = describe_shape(array.shape[1:]) if array.ndim else show(value)
        raise _make_error(output.name, f"shape {describe_shape(output.shape)}", got)
    if not can_feed(array.dtype.name, output.dtype):
        raise _make_error(output.name, output.dtype, array.dtype.name)
    return array.astype(output.dtype, copy=False)


def _make_error(name: str, expected: str, got: str, advice: str = "") -> OptionError:
    return OptionError(f"input {name!r}", field=name, expected=expected, got=got, advice=advice)


def _shape(task: Task) -> tuple[int, ...]:
    return (len(task.labels),) if task.kind in ("multiclass", "multilabel") else task.shape


def _convert_output(task: Task, values: NDArray[Any], is_logits: bool, temperature: float) -> NDArray[Any]:
    """Return the outputs of a model as probabilities, or as numbers in the units of the stored field."""
    # In double precision, so that logits far from 0 and large units keep their precision.
    numbers = values.astype(np.float64).reshape(len(values), *_shape(task))
    if task.kind == "regression":
        numbers = task.undo(numbers)
    elif not is_logits:
        numbers = apply_temperature(task.kind, numbers, temperature)
    elif task.kind == "multiclass":
        numbers = compute_softmax(numbers / temperature)
    else:
        numbers = compute_sigmoid(numbers / temperature)
    # Microseconds since 1970 have more digits than float32.
    return numbers if task.unit is not None else numbers.astype(np.float32)
