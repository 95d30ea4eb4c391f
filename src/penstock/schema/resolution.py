"""Resolving a schema: match declared fields with surveyed records, and infer the others.

In: a survey of records, and declared fields and roles. Out: the schema to decode them with, and notes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import replace
from typing import Final, NamedTuple

from penstock.errors import PayloadError, SchemaError
from penstock.foundation.wording import count, declare, list_counts, list_texts, show, unknown_name
from penstock.schema.array import Sequence, Tensor
from penstock.schema.field import Field, list_kind
from penstock.schema.inference import (
    ARE_QUANTITIES,
    NOT_AN_INPUT,
    SHARE_KEY,
    Inference,
    infer_fields,
    name_entries,
)
from penstock.schema.scalar import Category, Image, find_unlabelled
from penstock.schema.schema import Schema
from penstock.schema.survey import FieldSurvey, ListSurvey, Survey

_ARE_MISSING: Final = "in this target count as missing labels"


def _fit_field(
    name: str, field: Field, entry: FieldSurvey | ListSurvey, *, guess: Field | None, is_partial: bool
) -> tuple[Field, str]:
    """Return a declared field as the records store it, and a note about it.

    Only a declaration that matches no record is an error here. If some records contradict it, the note says
    so, and reading those records is an error.

    `entry`: survey of the records under the key of the field. `is_partial`: whether other fields are
    inferred. Then open details are taken from the records: whether the field is optional, and the format of
    its images. A complete schema declares them itself.
    """
    values = entry.steps if isinstance(entry, ListSurvey) else entry
    advice = "" if guess is None else f"It was inferred as {guess.type_name}, {guess.describe()}."
    try:
        field = _fit_storage(field, entry)
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
    return field, "; ".join(["declared", *_list_doubts(field, entry, values)])


class _MisfitError(Exception):
    """The records do not match the declared field."""

    def __init__(self, expected: str, got: str, advice: str = "") -> None:
        super().__init__(expected, got)
        self.expected = expected
        self.got = got
        self.advice = advice


def _fit_storage(field: Field, entry: FieldSurvey | ListSurvey) -> Field:
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
    # If records differ, a list of elements is the clearer sign: a bytes value may be anything.
    is_list = list_kind(field.dtype) in values.kinds or "bytes" not in values.kinds
    return replace(field, encoding="list" if is_list else "raw")


def _check_kind(field: Field, values: FieldSurvey) -> None:
    if values.kinds and field.kind not in values.kinds:
        raise _MisfitError(f"{field.kind} values in the records", list_counts(values.kinds))


def _check_count(field: Field, values: FieldSurvey) -> None:
    wanted, unit = _expect_count(field)
    if wanted is not None and values.kinds and not values.min_len <= wanted <= values.max_len:
        raise _MisfitError(
            f"{count(wanted, 'value')} per {unit}", _show_range(values.min_len, values.max_len)
        )


def _check_bytes(field: Field, values: FieldSurvey) -> None:
    if not values.num_bytes_values or field.kind != "bytes":
        return
    if isinstance(field, Tensor) and not values.min_bytes <= field.num_bytes <= values.max_bytes:
        expected = f"{field.num_bytes} bytes, for {field.describe()}"
        raise _MisfitError(expected, _show_range(values.min_bytes, values.max_bytes))
    if isinstance(field, Image):
        if not values.formats:
            advice = "Declare pixels that are not encoded as Tensor(shape, 'uint8', 'raw')."
            raise _MisfitError(
                "encoded images", f"{values.num_bytes_values} values in an unknown format", advice
            )
        if field.format is not None and field.format not in values.formats:
            raise _MisfitError(f"{field.format} images", list_counts(values.formats))


def _list_doubts(field: Field, entry: FieldSurvey | ListSurvey, values: FieldSurvey) -> Iterator[str]:
    """Yield the details that some of the records contradict."""
    if entry.missing and not field.optional:
        yield f"required, but missing in {entry.missing} of {entry.total} records"
    if not values.kinds:
        yield "no record has a value"
    if len(values.kinds) > 1:
        yield f"{field.kind}, but there are {list_counts(values.kinds)}"
    wanted, unit = _expect_count(field)
    if wanted is not None and values.kinds and not values.has_fixed_len:
        lengths = _show_range(values.min_len, values.max_len)
        yield f"{count(wanted, 'value')} per {unit}, but there are {lengths}"
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
        unknown = [value for value in seen or () if value not in field.values]
        if unknown:
            number = f"{len(unknown)} of {count(len(seen or ()), 'distinct value')}"
            yield f"{number} were not declared, such as {show(unknown[0])}"


def _expect_count(field: Field) -> tuple[int | None, str]:
    if isinstance(field, Sequence) and field.is_feature_list:
        return field.num_step_values, "step"
    return field.num_values, "record"


def _show_range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


class Resolution(NamedTuple):
    """The schema of some files, and the reasons for it.

    Attributes:
        schema: Schema to decode the records with.
        notes: Reasons by field name, also for fields that are not in the schema.
    """

    schema: Schema
    notes: Mapping[str, str]

    def without_unlabelled(self, declared: Collection[str]) -> Resolution:
        """Return the schema with texts such as NA as missing labels of targets that are not `declared`."""
        fields, notes = dict(self.schema), dict(self.notes)
        for name in self.schema.targets:
            given = fields[name]
            if name in declared or not isinstance(given, Category):
                continue
            fields[name] = found = find_unlabelled(given)
            if found.unlabelled and given.values is not None:
                words = list_texts(found.unlabelled)
                kept = f"To keep them as classes: {declare(name, 'Category()')}"
                notes[name] = f"{notes.get(name, 'declared')}; {words} {_ARE_MISSING}. {kept}"
        return Resolution(Schema(fields), notes)

    def list_warnings(self) -> Iterator[str]:
        """Yield the notes that users should see: fields that are not read, decisions that may be wrong."""
        for name, note in self.notes.items():
            if name not in self.schema:
                yield f"field {show(name)} is not read: {note}"
            elif (
                note.endswith(SHARE_KEY)
                or _ARE_MISSING in note
                or (note.endswith((NOT_AN_INPUT, ARE_QUANTITIES)) and self.schema[name].role != "input")
            ):
                yield f"field {show(name)}: {note}"


def resolve_schema(
    survey: Survey,
    schema: Mapping[str, Field] | None = None,
    fields: Mapping[str, Field] | None = None,
    target: str | SequenceOf[str] | None = None,
    weight: str | None = None,
    id: str | None = None,
) -> Resolution:
    """Return the schema of surveyed records: declared fields, and inferred fields for all other keys.

    A declared field whose name differs from its key replaces the inferred field of that key. A complete
    `schema` replaces inference: other keys are not read, and its optional fields need not occur. The
    arguments `target`, `weight` and `id` take precedence over the roles of declared fields.
    """
    declared = _merge_declared(Schema(schema or {}), Schema(fields or {}))
    has_roles = target is not None or weight is not None or id is not None
    if survey.payload == "other" and (declared or has_roles):
        advice = "Open the files without schema, fields and roles, and read their records()."
        raise PayloadError("payload of the records", expected="Examples", got="other payloads", advice=advice)
    if survey.payload == "empty":
        notes = dict.fromkeys(declared, "declared; there is no record to compare with")
        return Resolution(declared.with_roles(target, weight, id), notes)
    targets = [name for name, field in declared.items() if field.role == "target"]
    inference = infer_fields(survey, targets if target is None else _list_names(target))
    fitted = _fit_declared(survey, inference, declared, frozenset(fields or ()))
    joined, notes = _join(inference if schema is None else Inference({}, {}), fitted)
    for name in _list_names(target, weight, id):
        if name in notes and name not in joined:
            raise SchemaError(f"field {show(name)} was {notes[name]}", field=name)
    return Resolution(joined.with_roles(target, weight, id), notes)


def _merge_declared(schema: Schema, fields: Schema) -> Schema:
    """Replace fields of a complete schema; they keep its keys, unless they have their own."""
    merged = dict(schema)
    for name, field in fields.items():
        key = schema[name].key if name in schema and field.key is None else field.key
        merged[name] = replace(field, key=key)
    return Schema(merged)


class _Fitted(NamedTuple):
    """A declared field that matches the records, and the inferred name of its key, if the key occurs."""

    name: str
    inferred_name: str | None
    field: Field
    note: str


def _fit_declared(
    survey: Survey, inference: Inference, declared: Schema, partial: frozenset[str]
) -> list[_Fitted]:
    entries = name_entries(survey)
    names = {(isinstance(entry, ListSurvey), entry.key): name for name, entry in entries.items()}
    fitted: list[_Fitted] = []
    owners: dict[str, str] = {}
    for name, field in declared.items():
        inferred = _find_name(name, field, entries, names, name in partial)
        if inferred is None:
            # A sample does not show that no record has the field.
            if (name in partial and not survey.is_sample) or not field.optional:
                known = entries if field.key is None else [entry.key for entry in entries.values()]
                raise unknown_name(field.wire_key(name), known)
            fitted.append(_Fitted(name, None, field, "declared; not in the records"))
            continue
        owner = owners.setdefault(inferred, name)
        if owner != name:
            got = f"{show(entries[inferred].key)}, which is also the key of {show(owner)}"
            raise SchemaError(f"key of field {show(name)}", field=name, expected="a unique key", got=got)
        guess = inference.fields.get(inferred)
        fit = _fit_field(name, field, entries[inferred], guess=guess, is_partial=name in partial)
        fitted.append(_Fitted(name, inferred, *fit))
    return fitted


def _find_name(
    name: str,
    field: Field,
    entries: Collection[str],
    names: Mapping[tuple[bool, str], str],
    is_partial: bool,
) -> str | None:
    """Return the inferred name of the entry that a declared field refers to."""
    key = field.wire_key(name)
    own = names.get((field.is_feature_list, key))
    # With inferred fields, a name refers to the inferred field of that name: `context/NAME` needs no key. A
    # complete schema refers to a feature or a feature list, as it declares.
    if field.key is None and name in entries and (is_partial or own is None):
        return name
    # If only the other kind exists, it is used: `_fit_field` adapts the declaration, or raises the error.
    return names.get((not field.is_feature_list, key)) if own is None else own


def _join(inference: Inference, fitted: list[_Fitted]) -> tuple[Schema, dict[str, str]]:
    """Replace inferred fields by the declared ones, and append those that replace none."""
    replacements = {each.inferred_name: each for each in fitted if each.inferred_name is not None}
    names = {each.name for each in fitted}
    fields: dict[str, Field] = {}
    notes: dict[str, str] = {}
    for name, note in inference.notes.items():
        declared = replacements.get(name)
        if declared is not None:
            fields[declared.name], notes[declared.name] = declared.field, declared.note
            continue
        if name in names:
            advice = "Choose another name, or declare a field for that key too."
            got = f"{show(name)}, which is another key of the records"
            what = f"name of field {show(name)}"
            raise SchemaError(what, field=name, expected="an unused name", got=got, advice=advice)
        notes[name] = note
        if name in inference.fields:
            fields[name] = inference.fields[name]
    for each in fitted:
        fields.setdefault(each.name, each.field)
        notes.setdefault(each.name, each.note)
    return Schema(fields), notes


def _list_names(*roles: str | SequenceOf[str] | None) -> list[str]:
    names: list[str] = []
    for given in roles:
        names.extend([given] if isinstance(given, str) else given or ())
    return names
