"""The inputs and outputs of a Keras model by name.

In: any Keras model, and the names of the targets. Out: symbolic tensors by name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import keras
from keras.src.models.functional import Functional

from penstock.bridge.keras_model import name_model
from penstock.errors import OptionError
from penstock.foundation.wording import find_nearest, list_choices, show


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
