"""Fields of which only the type was told, such as "age is a number".

In: names and types, and a survey. Out: declarations; what the type leaves open is taken from the records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from penstock.schema.array import Sequence
from penstock.schema.field import Field
from penstock.schema.infer import infer_fields
from penstock.schema.naming import name_entries
from penstock.schema.scalar import Bytes, Category, Image, Number, Text
from penstock.schema.survey import FieldSurvey, ListSurvey, Survey

FieldType: TypeAlias = Literal["number", "category", "text", "image", "sequence", "bytes"]


def declare_fields(survey: Survey, types: Mapping[str, FieldType]) -> dict[str, Field]:
    """Return a declaration for each field; whether the records can hold it is for `resolve_schema` to say."""
    guesses = infer_fields(survey).fields
    entries = name_entries(survey)
    fields: dict[str, Field] = {}
    for name, wanted in types.items():
        guess = guesses.get(name)
        if guess is not None and guess.type_name == wanted:
            fields[name] = guess
            continue
        entry = entries.get(name)
        fields[name] = _declare(wanted, entry.steps if isinstance(entry, ListSurvey) else entry)
    return fields


def _declare(wanted: FieldType, entry: FieldSurvey | None) -> Field:
    kind = None if entry is None else entry.kind
    if wanted == "number":
        return Number("int64" if kind == "int64" else "float32")
    if wanted == "category":
        return Category("int64" if kind == "int64" else "string")
    if wanted == "sequence":
        if kind == "bytes":
            return Sequence("string" if entry is not None and entry.is_text else "bytes")
        return Sequence("float32" if kind == "float" else "int64")
    return {"text": Text(), "image": Image(), "bytes": Bytes()}[wanted]
