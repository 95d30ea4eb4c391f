"""The kinds of transform by name, the one that a field gets by default, and what may be said instead.

In: a field, and what a user gave for it: a transform, options, a name, None. Out: a transform, not fitted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Final

from penstock.errors import OptionError, SchemaError
from penstock.foundation.json_form import JsonValue
from penstock.foundation.wording import list_choices, show
from penstock.schema.array import Sequence, Tensor
from penstock.schema.field import Field
from penstock.schema.scalar import Bytes as BytesField
from penstock.schema.scalar import Category, Number, Text
from penstock.schema.scalar import Image as ImageField
from penstock.transform.base import PIPELINE, Transform
from penstock.transform.category import Encode
from penstock.transform.image import Image
from penstock.transform.keep import Keep
from penstock.transform.number import Scale
from penstock.transform.sequence import Pad
from penstock.transform.text import Tokenize

IDENTIFIES: Final = "it identifies records"
"""Why an id is not fed."""

KINDS: Final[Mapping[str, type[Transform]]] = {
    cls.kind: cls for cls in (Scale, Encode, Tokenize, Image, Pad, Keep)
}


def choose_transform(name: str, field: Field) -> Transform | str:
    """Return the transform that a field gets by default, or why it gets none.

    Inputs: numbers are standardised, categories coded, texts tokenised, sequences of numbers padded, those of
    strings coded and padded, tensors kept, images decoded. Targets: numbers are kept as float32, categories
    coded from 0 on without slots, sets of strings become multi-hot rows. A weight is a number. An id and
    opaque bytes are not fed.

    Raises:
        OptionError: The field cannot have its role.
    """
    if field.role == "id":
        return IDENTIFIES
    if field.role == "weight":
        return _choose_weight(name, field)
    found = (TARGETS if field.role == "target" else INPUTS)[type(field)](field)
    if found is None and isinstance(field, ImageField):
        return (
            "an image that is a target has no transform by default, as a mask of classes would be blurred; "
            "say Image() for it, or take its bytes by Pipeline.map"
        )
    return found or f"fields of type {field.type_name} have no transform by default; Pipeline.map takes them"


def _choose_sequence(field: Field) -> Transform | None:
    if not isinstance(field, Sequence) or field.dtype == "bytes":
        return None
    return Encode() if field.dtype == "string" else Pad()


def _choose_set(field: Field) -> Transform | None:
    is_set = isinstance(field, Sequence) and field.dtype == "string"
    return Encode("multi_hot") if is_set else _choose_sequence(field)


def _choose_nothing(_: Field) -> None:
    return None


INPUTS: Final[Mapping[type[Field], Callable[[Field], Transform | None]]] = {
    Number: lambda _: Scale(),
    Category: lambda _: Encode(),
    Text: lambda _: Tokenize(),
    Tensor: lambda field: Keep(missing=0) if field.optional else Keep(),
    Sequence: _choose_sequence,
    ImageField: lambda field: Image(missing="fill" if field.optional else "error"),
    BytesField: _choose_nothing,
}
TARGETS: Final[Mapping[type[Field], Callable[[Field], Transform | None]]] = {
    # Losses take floats. An int beyond 2^24 is rounded: give Keep() to have it as it is.
    Number: lambda _: Keep("float32"),
    Category: lambda _: Encode(),
    Text: lambda _: Tokenize(),
    Tensor: lambda _: Keep(),
    Sequence: _choose_set,
    BytesField: _choose_nothing,
    # A mask of classes would be blurred: whoever predicts pixels says Image(), and how to resize.
    ImageField: _choose_nothing,
}


def load_override(name: str, field: Field, given: object) -> Transform | None:
    """Return the transform that was given for a field, in any of its forms; None leaves the field out.

    Raises:
        OptionError: It is no transform, or has an option that it cannot have.
    """
    if given is None or isinstance(given, Transform):
        return given
    if isinstance(given, str):
        given = {"kind": given}
    if not isinstance(given, Mapping):
        is_class = isinstance(given, type) and issubclass(given, Transform)
        advice = f"Make one: {given.__name__}()." if is_class else ""  # type: ignore[attr-defined]
        got = show(given)
        if isinstance(given, Field):
            usual = choose_transform(name, given)
            got = f"{got}, a field of the schema"
            advice = "" if isinstance(usual, str) else f"Say penstock.transform.{usual!r}."
        expected = "a transform, its options, or None to leave it out"
        raise OptionError(f"field {name!r}", field=name, expected=expected, got=got, advice=advice)
    try:
        return _load_options(name, field, given)
    except SchemaError as error:
        place = (error.field or "$").removeprefix("$").lstrip(".")
        what = f"{place} of field {name!r}" if place else f"field {name!r}"
        facts = {"expected": error.expected, "got": error.got, "advice": error.advice}
        raise OptionError(what, field=name, **facts) from None  # type: ignore[arg-type]


def load_transform(value: JsonValue) -> Transform:
    """Read the form that a transform's `to_json` makes.

    Raises:
        SchemaError: The form is not such a one; the message says where.
    """
    return KINDS[value.child("kind").choice(KINDS)].load(value)


def _load_options(name: str, field: Field, given: Mapping[str, object]) -> Transform:
    value = JsonValue(given, PIPELINE)
    if "kind" in given:
        return load_transform(value)
    usual = choose_transform(name, field)
    if isinstance(usual, str):
        raise value.child("kind").refuse(list_choices(KINDS))
    options = {
        key: usual.load_option(key, option) for key, option in value.children(*usual.option_names()).items()
    }
    try:
        return dataclasses.replace(usual, **options)
    except OptionError as error:
        raise value.refuse(error.expected, error.got, error.advice, at=f".{error.field}") from None


def _choose_weight(name: str, field: Field) -> Transform:
    if not isinstance(field, Number):
        raise OptionError(
            f"weight {name!r}", field=name, expected="a number", got=f"a field of type {field.type_name}"
        )
    return Keep("float32")
