"""Join what a user told about the fields with what the records show.

In: a survey; a schema, fields and roles that were told. Out: the schema to decode with, and notes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import replace
from typing import NamedTuple

from penstock.errors import PayloadError, SchemaError
from penstock.foundation.wording import show, unknown_name
from penstock.schema.field import Field
from penstock.schema.fit import fit_field
from penstock.schema.inference import Inference, infer_fields, name_entries
from penstock.schema.schema import Schema
from penstock.schema.survey import ListSurvey, Survey


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
