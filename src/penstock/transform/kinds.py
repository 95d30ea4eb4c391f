"""The transforms by name, the default transform of a field, and overrides by the user.

In: a field, and its override: a transform, options, a name or None. Out: a transform that is not fitted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final

from penstock.errors import OptionError, SchemaError
from penstock.foundation.json_form import JsonValue
from penstock.foundation.wording import list_choices, show
from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import Date
from penstock.schema.field import Field
from penstock.schema.scalar import Bytes as BytesField
from penstock.schema.scalar import Category, Number, Text
from penstock.schema.scalar import Image as ImageField
from penstock.transform.base import PIPELINE, Transform
from penstock.transform.category import Encode
from penstock.transform.date import ExpandDate
from penstock.transform.image import Image
from penstock.transform.keep import Keep
from penstock.transform.number import Scale
from penstock.transform.padding import Pad
from penstock.transform.text import Tokenize

IDENTIFIES: Final = "it identifies records"
"""Reason why an id is not an input."""

UNUSED: Final = "its role is unused"
"""Reason why an unused field is not an input."""

MAX_VOCABULARY: Final = 10_000
"""Default number of values of a category of inputs that have a code of their own, the most frequent ones, if
the field does not list its values. Rarer ones share the code of unknown values."""

KINDS: Final[Mapping[str, type[Transform]]] = {
    cls.kind: cls for cls in (Scale, Encode, ExpandDate, Tokenize, Image, Pad, Keep)
}


def choose_transform(name: str, field: Field) -> Transform | str:
    """Return the default transform of a field, or the reason why it has none.

    Inputs: numbers are standardized, categories encoded, dates divided into scaled time and calendar parts,
    texts tokenized, sequences of numbers padded, sequences of strings encoded and padded, tensors kept,
    images decoded. Targets: numbers are kept as float32, categories encoded from 0 without reserved slots,
    dates standardized, lists of strings become multi-hot vectors. A weight is a number. Ids, unused fields
    and opaque bytes have no transform.
    """
    if field.role == "id":
        return IDENTIFIES
    if field.role == "unused":
        return UNUSED
    if field.role == "weight":
        return _choose_weight(name, field)
    found = (TARGETS if field.role == "target" else INPUTS)[type(field)](field)
    if found is None and isinstance(field, ImageField):
        return (
            "a target image has no default transform, as resizing would blur a mask of classes; "
            "use Image() for it, or read its bytes with Pipeline.map"
        )
    return found or f"fields of type {field.type_name} have no default transform; use Pipeline.map"


def _choose_sequence(field: Field) -> Transform | None:
    if not isinstance(field, Sequence) or field.dtype == "bytes":
        return None
    return Encode() if field.dtype == "string" else Pad()


def _choose_set(field: Field) -> Transform | None:
    is_set = isinstance(field, Sequence) and field.dtype == "string"
    return Encode("multi_hot") if is_set else _choose_sequence(field)


def _choose_nothing(_: Field) -> None:
    return None


INPUTS: Final[Mapping[type[Field], Callable[[Any], Transform | None]]] = {
    Number: lambda _: Scale(),
    Category: lambda field: Encode() if field.values is not None else Encode(max_values=MAX_VOCABULARY),
    Date: lambda _: ExpandDate(),
    Text: lambda _: Tokenize(),
    Tensor: lambda field: Keep(missing=0) if field.optional else Keep(),
    Sequence: _choose_sequence,
    ImageField: lambda field: Image(missing="fill" if field.optional else "error"),
    BytesField: _choose_nothing,
}
TARGETS: Final[Mapping[type[Field], Callable[[Field], Transform | None]]] = {
    # Losses expect floats. An integer beyond 2^24 is rounded: Keep() keeps it exact.
    Number: lambda _: Keep("float32"),
    Category: lambda _: Encode(),
    # Numbers of 1970 are far from 0: float32 would round microseconds to minutes.
    Date: lambda _: Scale(bins=0),
    Text: lambda _: Tokenize(),
    Tensor: lambda _: Keep(),
    Sequence: _choose_set,
    BytesField: _choose_nothing,
    # Resizing would blur a mask of classes: to predict pixels, choose Image() and how to resize.
    ImageField: _choose_nothing,
}


def load_override(name: str, field: Field, given: object) -> Transform | None:
    """Return the transform that a user gave for a field; None leaves the field out."""
    if given is None or isinstance(given, Transform):
        return given
    if isinstance(given, str):
        given = {"kind": given}
    if not isinstance(given, Mapping):
        is_class = isinstance(given, type) and issubclass(given, Transform)
        advice = f"Use an instance: {given.__name__}()." if is_class else ""  # type: ignore[attr-defined]
        got = show(given)
        if isinstance(given, Field):
            default = choose_transform(name, given)
            got = f"{got}, a field of the schema"
            advice = "" if isinstance(default, str) else f"Use penstock.transform.{default!r}."
        expected = "a transform, its options, or None to leave the field out"
        raise OptionError(f"field {name!r}", field=name, expected=expected, got=got, advice=advice)
    try:
        return _load_options(name, field, given)
    except SchemaError as error:
        option = (error.field or "$").removeprefix("$").lstrip(".")
        what = f"{option} of field {name!r}" if option else f"field {name!r}"
        details = {"expected": error.expected, "got": error.got, "advice": error.advice}
        raise OptionError(what, field=name, **details) from None  # type: ignore[arg-type]


def load_transform(value: JsonValue) -> Transform:
    """Read the JSON form that `to_json` of a transform returns."""
    return KINDS[value.child("kind").choice(KINDS)].load(value)


def _load_options(name: str, field: Field, given: Mapping[str, object]) -> Transform:
    value = JsonValue(given, PIPELINE)
    if "kind" in given:
        return load_transform(value)
    default = choose_transform(name, field)
    if isinstance(default, str):
        raise value.child("kind").refuse(list_choices(KINDS))
    options = {
        key: default.load_option(key, option)
        for key, option in value.children(*default.option_names()).items()
    }
    try:
        return dataclasses.replace(default, **options)
    except OptionError as error:
        raise value.refuse(error.expected, error.got, error.advice, at=f".{error.field}") from None


def _choose_weight(name: str, field: Field) -> Transform:
    if not isinstance(field, Number):
        raise OptionError(
            f"weight {name!r}", field=name, expected="a number", got=f"a field of type {field.type_name}"
        )
    return Keep("float32")
