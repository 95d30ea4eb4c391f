"""Outputs of a served model as TensorFlow operations: labels, probabilities, numbers in units of the target.

In: the outputs of a Keras model by target. Out: tensors by name, computed as `model/batch_predictor.py`
computes them in NumPy, in double precision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import tensorflow as tf

from penstock.errors import OptionError
from penstock.export.raw_inputs import name_tensor
from penstock.model.task import Task
from penstock.model.temperature import SMALLEST_CHANCE
from penstock.score.scores import THRESHOLD
from penstock.transform.vocabulary import as_bytes


@dataclass(frozen=True)
class ServedTarget:
    """The outputs of one target.

    Attributes:
        task: Task of the target.
        is_logits: Whether the model returns logits.
        temperature: Temperature of the probabilities.
        names: Name of the output for each part: `label`, `probability`, `probabilities`, `labels`, `number`.
    """

    task: Task
    is_logits: bool
    temperature: float
    names: Mapping[str, str]

    def serve(self, values: Any) -> dict[str, Any]:
        """Return the outputs for what the model returns."""
        task, names = self.task, self.names
        shape = (len(task.labels),) if task.kind in ("multiclass", "multilabel") else task.shape
        numbers = tf.reshape(tf.cast(values, tf.float64), [-1, *shape])
        if task.kind == "regression":
            undone = _undo(task, numbers)
            if task.unit is not None:
                return {names["number"]: tf.cast(tf.round(undone), tf.int64)}
            return {names["number"]: tf.cast(undone, tf.float32)}
        chances = tf.cast(self._calibrate(numbers), tf.float32)
        if task.kind == "binary":
            codes = tf.cast(chances >= THRESHOLD, tf.int32)
            chances = tf.stack([1 - chances, chances], axis=1)
        else:
            codes = tf.argmax(chances, axis=1, output_type=tf.int32)
        labels = _make_labels(task)
        listed = tf.tile(labels[tf.newaxis], [tf.shape(chances)[0], 1])
        outputs = {names["probabilities"]: chances, names["labels"]: listed}
        if task.kind == "multilabel":
            return {names["label"]: chances >= THRESHOLD, **outputs}
        chosen = tf.gather(chances, codes, axis=1, batch_dims=1)
        return {names["label"]: tf.gather(labels, codes), names["probability"]: chosen, **outputs}

    def _calibrate(self, numbers: Any) -> Any:
        """Return probabilities with the temperature of the target."""
        is_one = self.task.kind == "multiclass"
        if self.is_logits:
            return (tf.nn.softmax if is_one else tf.sigmoid)(numbers / self.temperature)
        if self.temperature == 1:
            return numbers
        chances = tf.clip_by_value(numbers, SMALLEST_CHANCE, 1.0)
        logits = tf.math.log(chances)
        if is_one:
            return tf.nn.softmax(logits / self.temperature)
        logits -= tf.math.log(tf.clip_by_value(1 - chances, SMALLEST_CHANCE, 1.0))
        return tf.sigmoid(logits / self.temperature)

    def to_json(self) -> dict[str, Any]:
        """Return what `export.json` says about the outputs, by name."""
        task, names = self.task, self.names
        if task.kind == "regression":
            shape = [None, *task.shape]
            meaning = f"number in the units of {task.name!r}"
            if task.unit is not None:
                meaning = f"date, in {task.unit} since 1970-01-01"
                return {names["number"]: {"dtype": "int64", "shape": shape, "meaning": meaning}}
            return {names["number"]: {"dtype": "float32", "shape": shape, "meaning": meaning}}
        number = len(task.labels)
        kind = "string" if _has_texts(task) else "int64"
        each: dict[str, Any] = {
            names["probabilities"]: {
                "dtype": "float32",
                "shape": [None, number],
                "meaning": f"probability of each label, in the order of {names['labels']}",
            },
            names["labels"]: {"dtype": kind, "shape": [None, number], "meaning": "the labels, in each row"},
        }
        if task.kind == "multilabel":
            meaning = f"whether the probability of each label is at least {THRESHOLD}"
            return {names["label"]: {"dtype": "bool", "shape": [None, number], "meaning": meaning}, **each}
        return {
            names["label"]: {"dtype": kind, "shape": [None], "meaning": "predicted label"},
            names["probability"]: {"dtype": "float32", "shape": [None], "meaning": "its probability"},
            **each,
        }


_PARTS: Final = {
    "regression": ("number",),
    "multilabel": ("label", "probabilities", "labels"),
    "binary": ("label", "probability", "probabilities", "labels"),
    "multiclass": ("label", "probability", "probabilities", "labels"),
}


def plan_outputs(
    tasks: Mapping[str, Task], logits: Mapping[str, bool], temperatures: Mapping[str, float]
) -> list[ServedTarget]:
    """Return the outputs of all targets, whose names differ."""
    taken: dict[str, str] = {}
    found = []
    for name, task in tasks.items():
        names = {}
        for part in _PARTS[task.kind]:
            wanted = name if part in ("label", "number") else f"{name}_{part}"
            names[part] = name_tensor(wanted, ())
            if names[part] in taken:
                raise OptionError(
                    f"output {names[part]!r}",
                    field=name,
                    expected="unique names of outputs",
                    got=f"one of {taken[names[part]]!r} and one of {name!r}",
                    advice="Rename a target.",
                )
            taken[names[part]] = name
        found.append(ServedTarget(task, logits.get(name, False), temperatures.get(name, 1.0), names))
    return found


def _undo(task: Task, numbers: Any) -> Any:
    if task.method == "none":
        return numbers
    undone = numbers / task.factor + task.shift
    return tf.sign(undone) * tf.math.expm1(tf.abs(undone)) if task.method == "log1p" else undone


def _has_texts(task: Task) -> bool:
    return not all(isinstance(each, int) for each in task.labels)


def _make_labels(task: Task) -> Any:
    if _has_texts(task):
        return tf.constant([each if isinstance(each, bytes) else as_bytes(each) for each in task.labels])
    return tf.constant(list(task.labels), tf.int64)
