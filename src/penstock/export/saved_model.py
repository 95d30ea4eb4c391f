"""The format `saved_model`: a TensorFlow SavedModel that takes raw values by name and needs no Penstock.

In: a run. Out: one graph of preprocessing, model, and outputs with names; the fitted state of the pipeline is
in it as constants and lookup tables. `serving_default` predicts; `model_inputs` returns what preprocessing
makes of the raw values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import keras
import tensorflow as tf

from penstock.bridge.graph.program import write_fields
from penstock.bridge.graph.site import Page
from penstock.bridge.keras_model import takes_array
from penstock.bridge.tensorflow import run_program
from penstock.codegen.program import define_function
from penstock.errors import OptionError, WriteError
from penstock.export.raw_inputs import (
    MODEL_INPUTS,
    SERVING,
    RawInput,
    RawReader,
    loosen_schema,
    name_model_inputs,
    name_tensor,
)
from penstock.model.batch_predictor import SMALLEST_CHANCE
from penstock.model.signature import name_outputs
from penstock.model.task import Task
from penstock.schema.declaration import find_forms
from penstock.score.scores import THRESHOLD
from penstock.training.run import Run
from penstock.training.run_model import make_served_model
from penstock.transform.pipeline import Pipeline, without_targets
from penstock.transform.vocabulary import as_bytes

_DISK_ADVICE: Final = "Free some disk space, or choose another folder."
_ADVICE: Final = "Export the run as a bundle, which runs Penstock's own transforms: `format='bundle'`."


def write(run: Run, folder: Path) -> Mapping[str, object]:
    """Write a SavedModel, and return its inputs and outputs.

    Raises OptionError: the backend of Keras is not TensorFlow; or a transform cannot be expressed in
    TensorFlow operations; `field` names its field.
    """
    if keras.backend.backend() != "tensorflow":
        raise OptionError(
            "backend of Keras",
            expected="tensorflow, for a SavedModel",
            got=keras.backend.backend(),
            advice="Set KERAS_BACKEND=tensorflow: a run can be exported with another backend than it was "
            "trained with.",
        )
    pipeline = without_targets(run.pipeline)
    tensors, prepare, scope = make_preprocessing(pipeline, find_forms(run.recorded.plan))
    temperatures = {name: choice.temperature for name, choice in run.choices.items()}
    targets = plan_outputs(run.tasks, run.logits, temperatures)
    model = make_served_model(run)
    call = _make_call(model, run.tasks, run.pipeline)

    def serve(raw: Mapping[str, Any]) -> dict[str, Any]:
        named = call(prepare(raw))
        outputs: dict[str, Any] = {}
        for target in targets:
            outputs |= target.serve(named[target.task.name])
        return outputs

    names = name_model_inputs(pipeline)

    def show_inputs(raw: Mapping[str, Any]) -> dict[str, Any]:
        return {names[name]: each for name, each in prepare(raw).items()}

    specs = {
        name: tf.TensorSpec([None, *each.shape], getattr(tf, each.dtype), name=name)
        for name, each in tensors.items()
    }
    module = tf.Module()
    module.model_variables = [each.value for each in model.variables]
    module.tables = [each for each in scope.values() if isinstance(each, tf.lookup.StaticHashTable)]
    functions = {
        name: tf.function(tf.autograph.experimental.do_not_convert(each), input_signature=[specs])
        for name, each in ((SERVING, serve), (MODEL_INPUTS, show_inputs))
    }
    signatures = {name: each.get_concrete_function() for name, each in functions.items()}
    try:
        tf.saved_model.save(module, str(folder), signatures=signatures)
    except AssertionError as error:  # TensorFlow raises it for variables and tables that it does not find
        _refuse_state(str(error))
    except tf.errors.OpError as error:  # TensorFlow writes by its own operations
        reason = error.message.strip().splitlines()[0].rpartition("; ")[2]
        raise WriteError(f"cannot be written ({reason})", path=folder, advice=_DISK_ADVICE) from error
    return {
        "inputs": {name: each.to_json() for name, each in tensors.items()},
        "outputs": {name: each for target in targets for name, each in target.to_json().items()},
    }


def make_preprocessing(
    pipeline: Pipeline, forms: Mapping[str, str] | None = None
) -> tuple[dict[str, RawInput], Any, Any]:
    """Return the raw inputs of a pipeline, the function that makes the model's inputs, and its constants.

    `pipeline`: pipeline without targets. `forms`: representation of the values in raw columns, by field, for
    the meaning of inputs. Raises OptionError: a transform cannot be expressed in TensorFlow operations;
    `field` names its field.
    """
    for name, output in pipeline.inputs.items():
        if output.is_ragged:
            expected, got = "an input of one shape per batch", output.describe()
            raise OptionError(f"input {name!r}", field=name, expected=expected, got=got, advice=_ADVICE)
    reader = RawReader(pipeline, forms or {})
    page = Page(reader=reader)
    try:
        made = write_fields(page, loosen_schema(pipeline), pipeline)[0]
    except OptionError as error:
        if error.field is None:
            raise
        raise OptionError(
            error.what, field=error.field, expected=error.expected, got=error.got, advice=_ADVICE
        ) from None
    body = page.body.finish(made)
    prepare = define_function("prepare", ("raw",), "Return the inputs of the model.", body)
    scope = run_program((*page.top.statements, *page.functions.values(), prepare))
    return reader.inputs, scope["prepare"], scope


def _make_call(model: keras.Model, tasks: Mapping[str, Task], pipeline: Pipeline) -> Any:
    """Return a function from the inputs of the model to its outputs by target."""
    is_array = takes_array(model, pipeline.inputs)

    def call(arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        given = next(iter(arrays.values())) if is_array else dict(arrays)
        return name_outputs(model, tasks, model(given, training=False))

    return call


def _refuse_state(reason: str) -> NoReturn:
    raise OptionError(
        "model as a SavedModel",
        expected="layers whose variables belong to the model",
        got=reason.strip().splitlines()[0],
        advice="Create variables and tables as attributes of a layer. Or export a bundle.",
    )


@dataclass(frozen=True)
class ServedTarget:
    """The outputs of one target.

    `names` has the name of the output for each part: `label`, `probability`, `probabilities`, `labels`,
    `number`.
    """

    task: Task
    is_logits: bool
    temperature: float
    names: Mapping[str, str]

    def serve(self, values: Any) -> dict[str, Any]:
        """Return the outputs for values that the model returns."""
        task, names = self.task, self.names
        shape = (len(task.labels),) if task.kind in ("multiclass", "multilabel") else task.shape
        numbers = tf.reshape(tf.cast(values, tf.float64), [-1, *shape])
        if task.kind == "regression":
            undone = task.undo(numbers, tf.math)
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


def _has_texts(task: Task) -> bool:
    return not all(isinstance(each, int) for each in task.labels)


def _make_labels(task: Task) -> Any:
    if _has_texts(task):
        return tf.constant([each if isinstance(each, bytes) else as_bytes(each) for each in task.labels])
    return tf.constant(list(task.labels), tf.int64)
