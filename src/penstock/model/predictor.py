"""Predict batches with a trained model.

In: the arrays of a batch by input. Out: probabilities and numbers by target.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.foundation.wording import find_nearest, list_choices, show
from penstock.model.signature import can_feed, describe_shape, find_inputs, fits, name_outputs
from penstock.model.task import Task
from penstock.model.temperature import apply_temperature, compute_sigmoid, compute_softmax
from penstock.transform.output import Output
from penstock.transform.pipeline import Pipeline


class Predictor:
    """Predicts batches of inputs that a pipeline makes.

    Batches smaller than the largest so far are filled up with copies of their last record, as backends
    compile a model again for every new number of rows.

    Attributes:
        model: The model.
        pipeline: Pipeline that defines the inputs.
        tasks: Task of each target.
        logits: Whether the model returns logits, by target.
        temperatures: Temperature of the probabilities, by target; 1 if there is none.

    Example:
        ```python
        predict = Predictor(model, pipeline, find_tasks(pipeline), {"adopted": False})
        predict({"age": ages})["adopted"]  # float32 (n,): probability of the second label
        ```
    """

    def __init__(
        self,
        model: keras.Model,
        pipeline: Pipeline,
        tasks: Mapping[str, Task],
        logits: Mapping[str, bool],
        temperatures: Mapping[str, float] | None = None,
    ) -> None:
        self.model = model
        self.pipeline = pipeline
        self.tasks = dict(tasks)
        self.logits = {name: bool(logits.get(name, False)) for name in tasks}
        self.temperatures = {name: (temperatures or {}).get(name, 1.0) for name in tasks}
        self._inputs = pipeline.inputs
        self._most_rows = 0
        taken = find_inputs(model)
        # Keras warns of a dict for a model with one input that was not created from a dict.
        is_plain = taken is not None and not isinstance(getattr(model, "input", None), dict | list | tuple)
        self._only = next(iter(taken)) if is_plain and taken is not None and len(taken) == 1 else None

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
        self._most_rows = max(self._most_rows, num_rows)
        num_lacking = self._most_rows - num_rows
        if num_lacking:
            arrays = {
                name: np.concatenate([each, np.repeat(each[-1:], num_lacking, axis=0)])
                for name, each in arrays.items()
            }
        outputs = self.model.predict_on_batch(arrays if self._only is None else arrays[self._only])
        named = name_outputs(self.model, self.tasks, outputs)
        return {
            name: _convert_output(
                task, np.asarray(named[name])[:num_rows], self.logits[name], self.temperatures[name]
            )
            for name, task in self.tasks.items()
        }

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


def _convert_output(
    task: Task, values: NDArray[Any], is_logits: bool, temperature: float
) -> NDArray[np.float32]:
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
    return numbers.astype(np.float32)
