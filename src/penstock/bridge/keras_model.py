"""How a Keras model takes the inputs of a pipeline: by name, or as one array.

In: a model, and the inputs of a pipeline. Out: the form of the inputs; an error with the names to use, if
they cannot be matched by name.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import keras
from keras.src.models.functional import Functional

from penstock.errors import OptionError
from penstock.foundation.wording import list_choices, show
from penstock.transform.assembly import Assembly
from penstock.transform.output import STRINGS, Output

if TYPE_CHECKING:
    from penstock.batch.maker import Transforming

_AUTOMATIC: Final = re.compile(r"(input_layer|keras_tensor)(_\d+)?")


def is_automatic(name: str) -> bool:
    """Return whether Keras generated the name of an input."""
    return _AUTOMATIC.fullmatch(name) is not None


def name_model(model: keras.Model) -> str:
    """Return the text for a model in error messages."""
    return f"model {model.name!r}"


def is_declared(model: keras.Model) -> bool:
    """Return whether the inputs of a model are known; inputs of some `Sequential` models are not yet."""
    return not isinstance(model, keras.Sequential) or hasattr(model, "inputs")


def write_input(output: Output) -> str:
    """Return the code of the `keras.Input` for an output of a pipeline."""
    dtype = "" if output.dtype == "float32" else f", dtype={output.dtype!r}"
    if "/" not in output.name:
        return f"keras.Input({output.shape!r}, name={output.name!r}{dtype})"
    # Keras refuses names of layers with a slash, but not names of tensors.
    tensor = f"keras.KerasTensor({(None, *output.shape)!r}, name={output.name!r}{dtype})"
    return f"keras.Input(tensor={tensor}, name={output.name.replace('/', '_')!r})"


def list_inputs(inputs: Iterable[Output]) -> str:
    """Return the lines of code for all inputs of a pipeline, to end an error message."""
    return "\n" + "\n".join(f"    {write_input(each)}" for each in inputs)


def takes_array(model: keras.Model, inputs: Mapping[str, Output]) -> bool:
    """Return whether a model takes the only input of a pipeline as an array, and not in a dict.

    A model that was created from a dict takes a dict. A subclassed model is called with a symbolic array to
    find out, which builds it: one that reads its input by name fails.
    """
    if len(inputs) != 1:
        return False
    if isinstance(model, keras.Sequential):
        return True
    if isinstance(model, Functional):
        return not isinstance(model.input, dict)
    (output,) = inputs.values()
    return output.dtype not in STRINGS and _try_array(model, output)


def _try_array(model: keras.Model, output: Output) -> bool:
    symbol = keras.KerasTensor((None, *output.shape), dtype=output.dtype)
    try:
        with warnings.catch_warnings():
            # A model that passes a dict on to a functional model gives a warning for an array.
            warnings.filterwarnings("error", "The structure of `inputs`", UserWarning)
            model(symbol)
    except Exception:  # models fail in every way
        return False
    return True


def declare_input(model: keras.Model, inputs: Mapping[str, Output]) -> None:
    """Declare the input of a `Sequential` model that has none, if the pipeline has exactly one.

    A float per record becomes a row of one number, as dense layers expect.
    """
    if is_declared(model) or len(inputs) != 1 or not model.layers:
        return
    (output,) = inputs.values()
    if output.dtype in STRINGS or output.is_ragged:
        return  # refused elsewhere, with what to do
    shape = (1,) if not output.shape and output.dtype.startswith("float") else output.shape
    try:
        model.build((None, *shape))
    except Exception as error:
        raise OptionError(
            f"layers of {name_model(model)}",
            field=output.name,
            expected=f"layers that accept {output.name!r}, {output.describe()}",
            got=f"{type(error).__name__}: {shorten_error(error)}",
            advice=f"Begin the model with {write_input(output)}, and layers for that shape.",
        ) from error


def check_names(model: keras.Model, inputs: Mapping[str, Output], form: str, pipeline: Transforming) -> None:
    """Refuse a model whose inputs Keras cannot match with a batch by name, before the first step.

    `form`: form of the inputs of a batch: "array", "dict" or "tuple".
    """
    if not isinstance(model, Functional | keras.Sequential):
        return
    if not is_declared(model):
        if form == "dict" and len(inputs) > 1 and _takes_one(model.layers):
            raise refuse_names(model, inputs, [])
        return
    taken = model.input if isinstance(model, Functional) else model.inputs
    is_dict = isinstance(taken, dict)
    listed = list(taken) if is_dict else taken if isinstance(taken, list | tuple) else [taken]
    names = [each if is_dict else getattr(each, "name", show(each)) for each in listed]
    unknown = [name for name in names if name not in inputs]
    if form == "tuple" and (is_dict or len(names) != len(inputs)):
        raise OptionError(
            "structure",
            field="structure",
            expected=f"'dict', as {name_model(model)} was created from a dict of inputs"
            if is_dict
            else f"{len(names)} inputs, as {name_model(model)} has",
            got=f"'tuple' with {len(inputs)} inputs",
            advice="Inputs are matched by name, with structure='auto':" + list_inputs(inputs.values()),
        )
    if form == "tuple":
        _check_order(model, "inputs", names, list(inputs))
    if (form == "dict" and unknown) or (form == "array" and len(names) != 1):
        is_countable = not is_dict and len(names) == len(inputs) > 1
        advice = f"Or pass them in the order {', '.join(inputs)}: structure='tuple'." if is_countable else ""
        raise refuse_names(model, inputs, unknown or names, advice)
    if form == "dict" and is_dict:
        for name in inputs:
            if name not in names:
                # Keras only warns, and then matches by position: inputs would get each other's arrays. From
                # a list of inputs, it selects by name.
                raise refuse_extra(model, inputs[name], names, pipeline)


def check_order_of_targets(model: keras.Model, targets: Iterable[str]) -> None:
    """Refuse a model whose outputs have the names of the targets, in another order than a tuple of them."""
    if isinstance(model, Functional):
        _check_order(model, "outputs", list(model.output_names), list(targets))


def _check_order(model: keras.Model, part: str, names: list[str], given: list[str]) -> None:
    if names != given and sorted(names) == sorted(given):
        raise OptionError(
            "structure",
            field="structure",
            expected=f"the order of the {part} of {name_model(model)}, {', '.join(names)}",
            got=f"'tuple' in the order {', '.join(given)}",
            advice="Use structure='auto', which matches them by name, or that order in the model.",
        )


def _takes_one(layers: list[keras.layers.Layer]) -> bool:
    """Return whether the first layer is one of Keras' own layers, which take no dict."""
    is_own = bool(layers) and type(layers[0]).__module__.startswith("keras.")
    return is_own and not isinstance(layers[0], keras.Model)


def refuse_names(
    model: keras.Model, inputs: Mapping[str, Output], unknown: Iterable[str], more: str = ""
) -> OptionError:
    """Return the error for inputs whose names the pipeline does not have, with the names to use.

    `unknown`: names of the model's inputs that the pipeline does not have; none for one without a name.
    """
    found = list(unknown)
    generated = ", generated by Keras" if all(map(is_automatic, found)) else ""
    got = f"{', '.join(map(repr, found))}{generated}" if found else "one input without a name"
    return OptionError(
        f"inputs of {name_model(model)}",
        field=found[0] if found else None,
        expected=f"the names of the pipeline's inputs, {', '.join(map(repr, inputs))}, as inputs are matched "
        "by name, not by position",
        got=got,
        advice=f"Name each input of the model after its field:{list_inputs(inputs.values())}"
        + (f"\n{more}" if more else ""),
    )


def refuse_extra(
    model: keras.Model, output: Output, taken: Iterable[str], pipeline: Transforming
) -> OptionError:
    """Return the error for an input of a pipeline that the model does not take."""
    name = output.name
    has_no_target = isinstance(pipeline, Assembly) and not pipeline.targets
    owners = (
        field
        for field, transform in (pipeline.fed if isinstance(pipeline, Assembly) else {}).items()
        if any(each.name == name for each in transform.outputs(field))
    )
    owner = next(owners, name)
    without = f"{owner}=None" if owner.isidentifier() else f"**{{{owner!r}: None}}"
    origin = "" if owner == name else f"It comes with the field {owner!r}. "
    target = f" If it is the target, declare it: `target={owner!r}`." if has_no_target else ""
    listed = list(taken)
    return OptionError(
        f"pipeline input {name!r}",
        field=name,
        expected=f"an input of {name_model(model)} with that name",
        got=list_choices(listed) if listed else "no inputs",
        advice=f"{origin}Drop the field, Pipeline.fit(…, {without}), or add the input to the model: "
        f"{write_input(output)}.{target}",
    )


def shorten_error(error: Exception, most: int = 300) -> str:
    """Return the message of an error of Keras without the text that Keras adds around it."""
    text = str(error).replace("\x1b[1m", "").replace("\x1b[0m", "")
    text = text.rpartition("Error encountered:\n\n")[2].partition("\n\nArguments received")[0]
    return " ".join(text.split()).rstrip(".")[:most]
