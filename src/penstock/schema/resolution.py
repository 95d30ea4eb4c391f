"""Hold one told field against the records: what contradicts it is refused, what was not told is filled in.

In: a field and what was counted under its key. Out: the field as it can be decoded, and a note.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import replace
from typing import Any, NamedTuple

from penstock.errors import PayloadError, SchemaError
from penstock.foundation.wording import count, show, unknown_name
from penstock.schema.array import Sequence, Tensor
from penstock.schema.field import Field, list_kind
from penstock.schema.inference import Inference, infer_fields, name_entries
from penstock.schema.scalar import Category, Image
from penstock.schema.schema import Schema
from penstock.schema.survey import FieldSurvey, ListSurvey, Survey


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


class Resolution(NamedTuple):
    """The schema of some files, and why it is so.

    Attributes:
        schema: What the records are decoded with.
        notes: By field name, one phrase each; also for what was left out of the schema.
    """

    schema: Schema
    notes: Mapping[str, str]


def resolve_schema(
    survey: Survey,
    schema: Mapping[str, Field] | None = None,
    fields: Mapping[str, Field] | None = None,
    target: str | SequenceOf[str] | None = None,
    weight: str | None = None,
    id: str | None = None,
) -> Resolution:
    """Return the schema of surveyed records: told declarations where there are such, inferred ones elsewhere.

    A told field may have another name than its key, and then replaces the inferred field of that key. A whole
    `schema` replaces inference: other keys are not read, and its optional fields need not occur. Roles told
    as such count before those in the declarations.

    Raises:
        UnknownNameError: A told field, or a field with a told role, is not in the records.
        SchemaError: The records cannot hold a told field.
        PayloadError: Something was told, but the records are no Examples.
    """
    told = _merge_told(Schema(schema or {}), Schema(fields or {}))
    has_roles = target is not None or weight is not None or id is not None
    if survey.payload == "other" and (told or has_roles):
        advice = "Open the files without schema, fields and roles, and read their records()."
        raise PayloadError("fields were told", expected="Examples", got="other payloads", advice=advice)
    if survey.payload == "empty":
        notes = dict.fromkeys(told, "told; there is no record to hold it against")
        return Resolution(told.with_roles(target, weight, id), notes)
    inference = infer_fields(survey)
    fitted = _fit_told(survey, inference, told, frozenset(fields or ()))
    joined, notes = _join(inference if schema is None else Inference({}, {}), fitted)
    for name in _list_names(target, weight, id):
        if name in notes and name not in joined:
            raise SchemaError(f"field {show(name)} was {notes[name]}", field=name)
    return Resolution(joined.with_roles(target, weight, id), notes)


def _merge_told(schema: Schema, fields: Schema) -> Schema:
    """Put fields over those of a whole schema; they keep its keys, unless they bring their own."""
    merged = dict(schema)
    for name, field in fields.items():
        key = schema[name].key if name in schema and field.key is None else field.key
        merged[name] = replace(field, key=key)
    return Schema(merged)


class _Fitted(NamedTuple):
    """A told field that the records can hold, and the name that inference has for its key, if it occurs."""

    name: str
    place: str | None
    field: Field
    note: str


def _fit_told(survey: Survey, inference: Inference, told: Schema, partial: frozenset[str]) -> list[_Fitted]:
    """Hold the told fields against the records."""
    entries = name_entries(survey)
    places = {(isinstance(entry, ListSurvey), entry.key): name for name, entry in entries.items()}
    fitted: list[_Fitted] = []
    owners: dict[str, str] = {}
    for name, field in told.items():
        place = _find_place(name, field, entries, places, name in partial)
        if place is None:
            # Of a sample it is not known that no record has the field.
            if (name in partial and not survey.is_sample) or not field.optional:
                known = entries if field.key is None else [entry.key for entry in entries.values()]
                raise unknown_name(field.wire_key(name), known)
            fitted.append(_Fitted(name, None, field, "told; in none of the records"))
            continue
        owner = owners.setdefault(place, name)
        if owner != name:
            got = f"{show(entries[place].key)}, which is the key of {show(owner)} too"
            raise SchemaError(f"key of field {show(name)}", field=name, expected="a key of its own", got=got)
        guess = inference.fields.get(place)
        fit = fit_field(name, field, entries[place], guess=guess, is_partial=name in partial)
        fitted.append(_Fitted(name, place, *fit))
    return fitted


def _find_place(
    name: str,
    field: Field,
    entries: Collection[str],
    places: Mapping[tuple[bool, str], str],
    is_partial: bool,
) -> str | None:
    key = field.wire_key(name)
    own = places.get((field.is_feature_list, key))
    # Beside inferred fields, a name means the field that inference calls so: `context/NAME` needs no key. A
    # whole schema means the sort of place that it says.
    if field.key is None and name in entries and (is_partial or own is None):
        return name
    # The other sort is taken where it is the only one: the misfit is mended, or named, in fitting the field.
    return places.get((not field.is_feature_list, key)) if own is None else own


def _join(inference: Inference, fitted: list[_Fitted]) -> tuple[Schema, dict[str, str]]:
    """Put each told field in the place of the inferred one, and those without a place behind them."""
    by_place = {told.place: told for told in fitted if told.place is not None}
    names = {told.name for told in fitted}
    fields: dict[str, Field] = {}
    notes: dict[str, str] = {}
    for place, note in inference.notes.items():
        told = by_place.get(place)
        if told is not None:
            fields[told.name], notes[told.name] = told.field, told.note
            continue
        if place in names:
            advice = "Choose another name, or tell a field for that key too."
            got = f"{show(place)}, which is another key of the records"
            what = f"name of field {show(place)}"
            raise SchemaError(what, field=place, expected="a free name", got=got, advice=advice)
        notes[place] = note
        if place in inference.fields:
            fields[place] = inference.fields[place]
    for told in fitted:
        fields.setdefault(told.name, told.field)
        notes.setdefault(told.name, told.note)
    return Schema(fields), notes


def _list_names(*told: str | SequenceOf[str] | None) -> list[str]:
    names: list[str] = []
    for given in told:
        names.extend([given] if isinstance(given, str) else given or ())
    return names
