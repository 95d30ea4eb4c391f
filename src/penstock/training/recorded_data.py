"""The record of the data of a run in `fields.json`, with which it predicts on raw rows without the data.

In: the schema and the conversion plan of a data set. Out: the file, and the same again as `RecordedData`,
which exports have as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from penstock.errors import SchemaError, StateError
from penstock.foundation.json_form import Document, JsonValue
from penstock.foundation.json_text import write_json
from penstock.schema.schema import Schema
from penstock.settings.groups import TextFiles
from penstock.storage.atomic import AtomicFile

FIELDS_NAME: Final = "fields.json"


@dataclass(frozen=True, kw_only=True)
class RecordedData:
    """The record of a run or an export about the data that it was trained on.

    Attributes:
        schema: Fields of the data; None if it is not recorded.
        plan: Plan of the conversion in its JSON form; None if it is not recorded.
        reading: How the raw data was read, where the plan does not have it.
    """

    schema: Schema | None = None
    plan: Mapping[str, Any] | None = None
    reading: TextFiles = field(default_factory=TextFiles)

    @classmethod
    def from_json(cls, table: JsonValue, reading: TextFiles) -> RecordedData:
        """Return the entries `schema` and `plan` of a file; both may be missing or empty.

        Raises:
            SchemaError: An entry is not valid.
        """
        plan, schema = table.child("plan").optional_object(), table.child("schema")
        return cls(schema=_read_schema(schema) if schema.value else None, plan=plan or None, reading=reading)

    def to_json(self) -> dict[str, Any]:
        """Return the entries `schema` and `plan`, as far as they are known."""
        found = {"schema": self.schema.to_json() if self.schema else None, "plan": self.plan}
        return {name: each for name, each in found.items() if each}


def save_fields(folder: Path, schema: Schema, plan: Mapping[str, Any] | None) -> None:
    """Write schema and conversion plan of the data, for predictions on raw rows."""
    text = write_json({"schema": schema.to_json(), "plan": plan}, 1)
    with AtomicFile(folder / FIELDS_NAME, overwrite=True) as file:
        file.write(text.encode() + b"\n")


def read_fields(folder: Path, reading: TextFiles) -> RecordedData:
    """Read the file of `save_fields`; runs of earlier versions have no such file."""
    path = folder / FIELDS_NAME
    try:
        stored = json.loads(path.read_bytes())
    except FileNotFoundError:
        return RecordedData(reading=reading)
    except (OSError, ValueError, RecursionError) as error:
        raise StateError("fields of the run", path=path, expected="JSON", got=error) from None
    return RecordedData.from_json(JsonValue(stored, Document("fields of the run", path=path)), reading)


def _read_schema(value: JsonValue) -> Schema:
    try:
        return Schema.from_json(value.value)
    except SchemaError as error:
        at = (error.field or "").removeprefix("$")
        raise value.refuse(error.expected, error.got, error.advice or "", at=at) from None
