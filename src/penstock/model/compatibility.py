"""Check that a model fits a pipeline, before the first step.

In: any Keras model, a fitted pipeline, its tasks. Out: nothing, or an error that names the input or output,
what was expected, and the nearest name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import keras

from penstock.bridge.keras_model import (
    declare_input,
    is_automatic,
    name_model,
    refuse_extra,
    refuse_names,
    shorten_error,
    takes_array,
    write_input,
)
from penstock.errors import OptionError
from penstock.foundation.wording import find_nearest, list_choices, show
from penstock.model.batch_predictor import can_feed, describe_shape, fits
from penstock.model.class_outputs import name_output, read_tasks, refuse_output
from penstock.model.signature import call_on_symbols, find_inputs, find_outputs, name_outputs, record_inputs
from penstock.model.task import Task
from penstock.transform.output import STRINGS, Output
from penstock.transform.pipeline import Pipeline


def check_embeddings(model: keras.Model, pipeline: Pipeline, taken: Mapping[str, Any]) -> None:
    """Raise an error for floats in an embedding, which would truncate them, and for codes beyond its rows.

    Backends treat codes beyond the rows differently: as an error, as zeros, or as NaN.
    """
    transforms = pipeline.transforms
    for name, tensor in taken.items():
        output = pipeline.inputs[name]
        num_codes = None
        if not output.dtype.startswith("float"):
            num_codes = getattr(transforms.get(name), "num_codes", None)
        for layer in _find_embeddings(model, tensor):
            what = f"embedding {layer.name!r} of input {name!r} of {name_model(model)}"
            if output.dtype.startswith("float"):
                advice = "Use Encode() or Tokenize() for the field, or a model that takes numbers."
                got = f"{output.dtype} from the pipeline"
                raise OptionError(what, field=name, expected="whole numbers", got=got, advice=advice)
            if num_codes is not None and num_codes > layer.input_dim:
                raise OptionError(
                    what,
                    field=name,
                    expected=f"input_dim of at least {num_codes}, the number of codes of the pipeline",
                    got=layer.input_dim,
                    advice=f"Use Embedding({num_codes}, …), or limit the vocabulary of the field.",
                )


def _find_embeddings(model: keras.Model, tensor: Any) -> Iterator[Any]:
    for layer in model.layers:
        if isinstance(layer, keras.layers.Embedding) and any(
            each is tensor for node in layer._inbound_nodes for each in node.input_tensors
        ):
            yield layer


def check_model(model: keras.Model, pipeline: Pipeline, tasks: Mapping[str, Task]) -> None:
    """Raise an error for a model whose inputs do not fit the pipeline, or whose outputs do not fit the tasks.

    Inputs are matched by name; a single one needs no name, unless the model was created from a dict. A
    subclassed model is called on symbolic inputs, which builds it, and so is a `Sequential` model that does
    not declare its input.
    """
    if not isinstance(model, keras.Model):
        advice = "Call the function, and pass the model that it returns." if callable(model) else ""
        raise OptionError("model", expected="a keras.Model", got=show(model), advice=advice)
    given = pipeline.inputs
    for output in given.values():
        _refuse_ragged(output)
    declare_input(model, given)
    taken = find_inputs(model, given)
    if taken is None:
        outputs = _call(model, pipeline)
    else:
        _match_names(model, pipeline, taken)
        for name, tensor in taken.items():
            _check_shape(model, tensor, given[name])
            _check_dtype(model, tensor, given[name])
        check_embeddings(model, pipeline, taken)
        outputs = find_outputs(model)
    resolved = read_tasks(model, tasks)
    named = name_outputs(model, tasks, outputs)
    if isinstance(outputs, list | tuple) and len(tasks) > 1 and pipeline.weights:
        # Keras then looks up the weights by position, and does not find them.
        raise OptionError(
            f"outputs of {name_model(model)}",
            expected="a dict by target, because the records have weights",
            got="a list",
            advice=f"Create it with keras.Model(inputs, {{{', '.join(f'{name!r}: …' for name in tasks)}}}).",
        )
    for name, tensor in named.items():
        _check_output(model, resolved[name], tensor)


def _refuse_ragged(output: Output) -> None:
    if output.is_ragged:
        raise OptionError(
            f"pipeline input {output.name!r}",
            field=output.name,
            expected="an array",
            got=output.describe(),
            advice="Use a transform that pads for the field: Pad(), or ragged=False.",
        )


def _match_names(model: keras.Model, pipeline: Pipeline, taken: Mapping[str, Any]) -> None:
    given = pipeline.inputs
    automatic = [name for name in taken if name not in given and is_automatic(name)]
    if automatic:
        raise refuse_names(model, given, automatic)
    for name, tensor in taken.items():
        other = getattr(tensor, "name", name)
        if other != name and other in taken:
            raise OptionError(
                f"input {name!r} of {name_model(model)}",
                field=name,
                expected="the keras.Input of that name",
                got=f"the keras.Input named {other!r}",
                advice="Two inputs are swapped: use the name of each keras.Input as its key.",
            )
        if name not in given:
            raise _refuse_missing(model, name, given)
    for name in given:
        if name not in taken:
            # Keras only warns, and then matches by position: inputs would get each other's arrays.
            raise refuse_extra(model, given[name], taken, pipeline.assembly)


def _refuse_missing(model: keras.Model, name: str, given: Mapping[str, Output]) -> OptionError:
    nearest = find_nearest(name, given)
    advice = "Name the input after its field, or add the field to the pipeline."
    if nearest is not None:
        advice = f"Did you mean {nearest!r}? Inputs are matched by name: {write_input(given[nearest])}."
    return OptionError(
        f"input {name!r} of {name_model(model)}",
        field=name,
        expected="an input of the pipeline with that name",
        got=list_choices(given) if given else "no inputs",
        advice=advice,
    )


def _check_shape(model: keras.Model, tensor: Any, given: Output) -> None:
    taken = tuple(tensor.shape[1:])
    if fits(given.shape, taken):
        return
    advice = f"Use {write_input(given)}, or another transform for the field."
    if given.shape[:1] == (None,) and len(taken) == len(given.shape) and taken[0] is not None:
        advice = f"Use {write_input(given)}, or pad the field to one length: length={taken[0]}."
    raise OptionError(
        f"input {given.name!r} of {name_model(model)}",
        field=given.name,
        expected=f"shape {describe_shape(taken)}",
        got=f"{describe_shape(given.shape)} from the pipeline",
        advice=advice,
    )


def _check_dtype(model: keras.Model, tensor: Any, given: Output) -> None:
    taken = keras.backend.standardize_dtype(tensor.dtype)
    if can_feed(given.dtype, taken):
        return
    advice = f"Use {write_input(given)}, or another transform for the field."
    if given.dtype in STRINGS:
        advice = "A model cannot take strings: use Tokenize() or Encode() for the field."
    raise OptionError(
        f"input {given.name!r} of {name_model(model)}",
        field=given.name,
        expected=taken,
        got=f"{given.dtype} from the pipeline",
        advice=advice,
    )


def _call(model: keras.Model, pipeline: Pipeline) -> Any:
    """Call a subclassed model on symbolic inputs; return its symbolic outputs."""
    given = pipeline.inputs
    if takes_array(model, given):
        (output,) = given.values()
        return model(keras.KerasTensor((None, *output.shape), dtype=output.dtype))
    try:
        outputs = call_on_symbols(model, given)
    except Exception as error:
        missing = record_inputs(model, given).missing
        if missing is not None:
            raise _refuse_missing(model, missing, given) from None
        listed = ", ".join(f"{name!r}: {each.describe()}" for name, each in given.items())
        raise OptionError(
            f"call of {name_model(model)}",
            expected=f"a model that takes a dict of inputs by name, {{{listed}}}",
            got=f"{type(error).__name__}: {shorten_error(error)}",
            advice="Its method call must have one argument, and read its inputs by name: inputs['…'].",
        ) from error
    reading = record_inputs(model, given)
    if reading.is_done:
        for name in given:
            if name not in reading.read:
                raise refuse_extra(model, pipeline.inputs[name], reading.read, pipeline.assembly)
    return outputs


def _check_output(model: keras.Model, task: Task, tensor: Any) -> None:
    rank, shape = len(tensor.shape), tuple(tensor.shape[1:])
    if rank == 0 or not (shape == (None,) or fits(shape, (task.units,))) or rank > 2:
        raise refuse_output(model, task, tensor, task.units)
    dtype = keras.backend.standardize_dtype(tensor.dtype)
    if "float" not in dtype:
        raise OptionError(name_output(model, task), field=task.name, expected="floats", got=dtype)
