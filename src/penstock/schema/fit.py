"""Hold one told field against the records: what contradicts it is refused, what was not told is filled in.

In: a field and what was counted under its key. Out: the field as it can be decoded, and a note.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from penstock.errors import SchemaError
from penstock.foundation.wording import count, show
from penstock.schema.array import Sequence, Tensor
from penstock.schema.field import Field, list_kind
from penstock.schema.scalar import Category, Image
from penstock.schema.survey import FieldSurvey, ListSurvey


def fit_field(
    name: str, field: Field, entry: FieldSurvey | ListSurvey, *, guess: Field | None, is_partial: bool
) -> tuple[Field, str]:
    """Return a told field in the form in which the records hold it, and what is to be said about it.

    Only what holds for no record at all is refused here. What some records contradict is noted, and is an
    error of those records when they are read.

    Args:
        name: The field's name.
        field: As told.
        entry: What was counted.
        guess: What inference takes it for, to advise with.
        is_partial: Whether the field was told beside inferred ones, and so takes from the records what it
            leaves open: whether it is optional, the format of its images. A whole schema says all itself.

    Raises:
        SchemaError: The records cannot hold such a field.
    """
    values = entry.steps if isinstance(entry, ListSurvey) else entry
    advice = "" if guess is None else f"Inference takes it for {guess.type_name}, {guess.describe()}."
    try:
        field = _fit_place(field, entry)
        field = _fit_encoding(field, values)
        _check_kind(field, values)
        _check_count(field, values)
        _check_bytes(field, values)
    except _MisfitError as misfit:
        raise SchemaError(
            f"field {show(name)} as {type(field).__name__}",
            field=name,
            expected=misfit.expected,
            got=misfit.got,
            advice=misfit.advice or advice,
        ) from None
    if is_partial:
        field = replace(field, optional=field.optional or entry.missing > 0)
        if isinstance(field, Image) and list(values.formats.values()) == [values.num_bytes_values]:
            field = replace(field, format=next(iter(values.formats)))
    field = replace(field, key=None if entry.key == name else entry.key)
    return field, "; ".join(["told", *_list_doubts(field, entry, values)])


class _MisfitError(Exception):
    """The records hold something else than was told."""

    def __init__(self, expected: str, got: str, advice: str = "") -> None:
        super().__init__(expected, got)
        self.expected = expected
        self.got = got
        self.advice = advice


def _fit_place(field: Field, entry: FieldSurvey | ListSurvey) -> Field:
    if isinstance(entry, ListSurvey):
        if not isinstance(field, Sequence):
            raise _MisfitError("a feature", "a feature list", "Declare it as a Sequence.")
        return replace(field, stored="feature_list")
    if field.is_feature_list:
        raise _MisfitError("a feature list", "a feature")
    return field


def _fit_encoding(field: Field, values: FieldSurvey) -> Field:
    if not isinstance(field, Tensor) or field.encoding != "auto" or not values.kinds:
        return field
    # Where records differ, elements one by one are the surer sign: a bytes value may be anything.
    is_list = list_kind(field.dtype) in values.kinds or "bytes" not in values.kinds
    return replace(field, encoding="list" if is_list else "raw")


def _check_kind(field: Field, values: FieldSurvey) -> None:
    if values.kinds and field.kind not in values.kinds:
        raise _MisfitError(f"{field.kind} values in the records", _list_counts(values.kinds))


def _check_count(field: Field, values: FieldSurvey) -> None:
    wanted, unit = _expect_count(field)
    if wanted is not None and values.kinds and not values.min_len <= wanted <= values.max_len:
        raise _MisfitError(f"{count(wanted, 'value')} a {unit}", _show_range(values.min_len, values.max_len))


def _check_bytes(field: Field, values: FieldSurvey) -> None:
    if not values.num_bytes_values or field.kind != "bytes":
        return
    if isinstance(field, Tensor) and not values.min_bytes <= field.num_bytes <= values.max_bytes:
        expected = f"{field.num_bytes} bytes, for {field.describe()}"
        raise _MisfitError(expected, _show_range(values.min_bytes, values.max_bytes))
    if isinstance(field, Image):
        if not values.formats:
            advice = "Pixels that are not encoded are Tensor(shape, 'uint8', 'raw')."
            raise _MisfitError(
                "encoded images", f"{values.num_bytes_values} values of no known format", advice
            )
        if field.format is not None and field.format not in values.formats:
            raise _MisfitError(f"{field.format} images", _list_counts(values.formats))


def _list_doubts(field: Field, entry: FieldSurvey | ListSurvey, values: FieldSurvey) -> Iterator[str]:
    """Name what some of the records contradict."""
    if entry.missing and not field.optional:
        yield f"required, but missing in {entry.missing} of {entry.total} records"
    if not values.kinds:
        yield "no record has a kind set"
    if len(values.kinds) > 1:
        yield f"{field.kind}, but there are {_list_counts(values.kinds)}"
    wanted, unit = _expect_count(field)
    if wanted is not None and values.kinds and not values.has_fixed_len:
        lengths = _show_range(values.min_len, values.max_len)
        yield f"{count(wanted, 'value')} a {unit}, but there are {lengths}"
    if isinstance(field, Tensor) and field.encoding == "raw" and values.min_bytes < values.max_bytes:
        yield f"{field.num_bytes} bytes, but there are {_show_range(values.min_bytes, values.max_bytes)}"
    if isinstance(field, Image):
        num_images = (
            sum(values.formats.values()) if field.format is None else values.formats.get(field.format, 0)
        )
        if num_images < values.num_bytes_values:
            images = "encoded images" if field.format is None else f"{field.format} images"
            yield f"{images}, but only {num_images} of {values.num_bytes_values} values are"
    if isinstance(field, Category) and field.values is not None:
        strings = (
            None if values.strings is None else [value.decode(errors="replace") for value in values.strings]
        )
        seen = strings if field.dtype == "string" else values.int_values
        strangers = [value for value in seen or () if value not in field.values]
        if strangers:
            number = f"{len(strangers)} of {count(len(seen or ()), 'distinct value')}"
            yield f"{number} were not told, such as {show(strangers[0])}"


def _expect_count(field: Field) -> tuple[int | None, str]:
    if isinstance(field, Sequence) and field.is_feature_list:
        return field.num_step_values, "step"
    return field.num_values, "record"


def _list_counts(counts: Mapping[Any, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.items())


def _show_range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"
