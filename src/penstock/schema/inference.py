"""Inference of a schema from a survey of records.

In: a survey. Out: one field per feature and feature list, with a note on the reason for its type.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from penstock.foundation.wording import count, list_counts, show
from penstock.schema.array import Sequence, Tensor
from penstock.schema.field import MAX_TENSOR_BYTES, Field, Role, SequenceDtype
from penstock.schema.scalar import Bytes, Category, Image, Number, Text
from penstock.schema.survey import FieldSurvey, ListSurvey, Survey
from penstock.schema.value_kind import ValueCounts, classify_numbers, classify_strings

NOT_AN_INPUT: Final = "not an input, unless its type is declared, such as `fields={NAME: ps.fields.Number()}`"
ARE_QUANTITIES: Final = (
    "read as quantities; declare `fields={NAME: ps.fields.Category('int64')}` if they are classes"
)
SHARE_KEY: Final = "so it has another name"
"""Ends of notes that users should see, as another decision is possible."""


def name_entries(survey: Survey) -> dict[str, FieldSurvey | ListSurvey]:
    """Return the entries of a survey by field name: the key, or `context/KEY` if a list has the same key.

    A list that fewer records have than the feature is `list/KEY` instead, so that few records do not rename
    the feature of all others. If that name is also a key, `context/` or `list/` is prepended until the name
    is unused.
    """
    taken = {*survey.fields, *survey.lists}

    def rename(key: str, prefix: str) -> str:
        name = key
        while name in taken:
            name = f"{prefix}/{name}"
        taken.add(name)
        return name

    entries: dict[str, FieldSurvey | ListSurvey] = {}
    for key, feature in survey.fields.items():
        is_renamed = key in survey.lists and survey.lists[key].records >= feature.records
        entries[rename(key, "context") if is_renamed else key] = feature
    for key, each in survey.lists.items():
        entries[rename(key, "list") if key in entries else key] = each
    return entries


@dataclass(frozen=True)
class Inference:
    """Inferred fields.

    Attributes:
        fields: Fields by name, without those that cannot be decoded.
        notes: Reason for the type, or for leaving out the field, by name of each feature and list.
    """

    fields: Mapping[str, Field]
    notes: Mapping[str, str]


def infer_fields(survey: Survey, targets: Collection[str] = ()) -> Inference:
    """Infer a field for every feature and feature list, by the rules that apply to columns of raw data.

    Fields are inputs, except those whose names and values identify or count records: the first that
    identifies them has the role "id", others have the role "unused". Records that are not Examples have no
    fields.

    `targets`: names of the fields to predict, in which whole numbers may be classes.
    """
    fields: dict[str, Field] = {}
    notes: dict[str, str] = {}
    entries = {} if survey.payload == "other" else name_entries(survey)
    for name, entry in entries.items():
        if isinstance(entry, ListSurvey):
            field, notes[name] = _infer_list(entry)
        else:
            field, notes[name] = _infer_feature(entry, is_target=name in targets)
        notes[name] += _explain_name(survey, name, entry)
        if field is not None:
            key = None if name == entry.key else entry.key
            field = replace(field, optional=entry.missing > 0 or survey.is_sample, key=key)
            if field.role == "id" and any(each.role == "id" for each in fields.values()):
                field = replace(field, role="unused")
            fields[name] = field
    return Inference(fields, notes)


def _explain_name(survey: Survey, name: str, entry: FieldSurvey | ListSurvey) -> str:
    """Return the reason for a name that is not the key, unless feature and list are in the same records."""
    key = entry.key
    if name == key:
        return ""
    feature, steps = survey.fields[key].records, survey.lists[key].records
    if feature == steps:
        return ""
    own, other = ("feature list", "feature") if isinstance(entry, ListSurvey) else ("feature", "feature list")
    few, many = count(min(feature, steps), "record"), max(feature, steps)
    return f"; {show(key)} is a {own} in {few} and a {other} in {many}, {SHARE_KEY}"


def _infer_feature(entry: FieldSurvey, *, is_target: bool) -> tuple[Field | None, str]:
    found = entry.kind
    if found is None or found == "mixed":
        return None, _explain_no_kind(entry, "record")
    if not entry.has_fixed_len or entry.max_len == 0:
        lengths = f"{entry.min_len} to {entry.max_len} values per record"
        note = "no record has a value" if entry.max_len == 0 else lengths
        return Sequence(_sequence_dtype(entry)), note
    if entry.max_len > 1:
        return _infer_array(entry)
    if found == "float":
        return Number("float32"), "one float per record"
    if found == "int64":
        return _infer_int(entry, is_target)
    return _infer_bytes(entry, is_target)


def _infer_array(entry: FieldSurvey) -> tuple[Field, str]:
    dtype = _sequence_dtype(entry)
    note = f"{entry.max_len} values each in {count(entry.records, 'record')}"
    if dtype not in ("int64", "float32"):
        return Sequence(dtype), note
    if entry.max_len * np.dtype(dtype).itemsize > MAX_TENSOR_BYTES:
        return Sequence(dtype), f"{note}, too many for a tensor"
    return Tensor((entry.max_len,), dtype, "list"), note


def _infer_int(entry: FieldSurvey, is_target: bool) -> tuple[Field, str]:
    note = f"{count(entry.num_distinct, 'distinct value')} in {count(entry.records, 'record')}"
    values = entry.int_values
    if values is None:
        note = f"about {note}" if entry.num_distinct else "one int per record"
    low, high = (values[0], values[-1]) if values else (entry.int_min, entry.int_max)
    counts = ValueCounts(entry.records, entry.num_distinct or None, low, high)
    kind = classify_numbers(entry.key, counts, is_target=is_target)
    if kind in ("classes", "codes"):
        return Category("int64", values or None), note if is_target else f"{note}: codes by their name"
    if kind in ("index", "identifier"):
        reason = "that count the records" if kind == "index" else "that identify records"
        role: Role = "id" if kind == "identifier" and counts.are_distinct else "unused"
        return Number("int64", role=role), f"{note}, {reason}: {NOT_AN_INPUT}"
    if is_target and entry.num_distinct > 2:
        note = f"{note}: {ARE_QUANTITIES}"
    return Number("int64"), note


def _infer_bytes(entry: FieldSurvey, is_target: bool) -> tuple[Field, str]:
    num_images = sum(entry.formats.values())
    # The magic number of BMP is two letters, which a text may begin with; no image consists of text.
    if num_images and num_images == entry.num_bytes_values and not entry.is_text:
        formats = list(entry.formats)
        if len(formats) == 1:
            note = f"every value begins with the {formats[0].upper()} magic number"
            return Image(formats[0]), note
        note = "every value begins with the magic number of an image: " + list_counts(entry.formats)
        return Image(), note
    if not entry.is_text:
        note = f"{entry.num_utf8} of {entry.num_bytes_values} values are text"
        if num_images:
            note += f", {num_images} begin like an image"
        return Bytes(), note
    note = f"{count(entry.num_distinct, 'distinct value')} in {count(entry.records, 'record')}"
    if entry.strings is None:
        note = f"about {note}"
    counts = ValueCounts(entry.records, entry.num_distinct or None, mean_words=max(1.0, entry.mean_words))
    kind = classify_strings(entry.key, counts, is_target=is_target)
    if kind == "category":
        values = None if entry.strings is None else tuple(value.decode() for value in entry.strings)
        return Category("string", values), note
    if kind == "identifier":
        role: Role = "id" if counts.are_distinct else "unused"
        return Text(role=role), f"{note}, that identify records: {NOT_AN_INPUT}"
    return Text(), f"every value is UTF-8; {note}"


def _infer_list(entry: ListSurvey) -> tuple[Field | None, str]:
    steps = entry.steps
    if steps.kind is None or steps.kind == "mixed":
        return None, _explain_no_kind(steps, "step")
    shape: tuple[int, ...] | None = None
    note = f"feature list, {steps.min_len} to {steps.max_len} values per step"
    if steps.num_unset:
        # A step without a kind has no values.
        note = f"feature list, {steps.num_unset} of {count(steps.total, 'step')} without a kind"
    elif steps.has_fixed_len and steps.max_len > 0:
        shape = () if steps.max_len == 1 else (steps.max_len,)
        note = f"feature list, {count(steps.max_len, 'value')} in every step"
    return Sequence(_sequence_dtype(steps), shape, "feature_list"), note


def _sequence_dtype(entry: FieldSurvey) -> SequenceDtype:
    if entry.kind == "int64":
        return "int64"
    if entry.kind == "float":
        return "float32"
    return "string" if entry.is_text else "bytes"


def _explain_no_kind(entry: FieldSurvey, unit: str) -> str:
    if not entry.kinds:
        return f"left out: its value is not set in any {unit}"
    return f"left out: mixed kinds: {list_counts(entry.kinds)}; declare its type with `fields`"
