"""The format `saved_model`: a TensorFlow SavedModel that takes raw values by name and needs no Penstock.

In: a run. Out: one graph of preprocessing, model, and outputs with names; the fitted state of the pipeline is
in it as constants and lookup tables. `serving_default` predicts; `model_inputs` returns what preprocessing
makes of the raw values.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

import keras
import tensorflow as tf

from penstock.bridge.graph.program import write_fields
from penstock.bridge.graph.site import Page
from penstock.bridge.graph.tensorflow import run_program
from penstock.bridge.keras_model import takes_array
from penstock.codegen.program import define_function
from penstock.errors import OptionError, WriteError
from penstock.export.raw_inputs import (
    MODEL_INPUTS,
    SERVING,
    RawInput,
    RawReader,
    loosen_schema,
    name_model_inputs,
)
from penstock.export.served_outputs import plan_outputs
from penstock.model.signature import name_outputs
from penstock.model.task import Task
from penstock.schema.declaration import find_forms
from penstock.training.run import Run
from penstock.training.run_model import make_served_model
from penstock.transform.pipeline import Pipeline
from penstock.transform.pipeline_parts import without_targets

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
