"""The origin of an opened data set: the arguments of `open`, as plain values that can be stored.

In: the arguments. Out: an `Origin`, its JSON form, and a check that the files have not changed. A data set is
pickled this way: by reference to its files, without its records.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import ChangedFileError, SchemaError
from penstock.foundation.option_checks import OnError, check_on_error
from penstock.foundation.wording import show
from penstock.read.opening import OpenedFiles, open_files
from penstock.read.options import ReadOptions, describe_options
from penstock.schema.field import Field
from penstock.schema.json_form import dump_fields, load_fields
from penstock.schema.resolution import Resolution, resolve_schema
from penstock.schema.schema import Schema
from penstock.storage.paths import PathLike
from penstock.storage.store_path import is_store_path


def _find_current_folder() -> str:
    try:
        return os.fspath(Path.cwd())
    except OSError:  # it was deleted; absolute paths work without it
        return ""


@dataclass(frozen=True)
class Origin:
    """Arguments that a data set was opened with; see `penstock.open`.

    Attributes:
        path: Path, or list of paths; absolute in the JSON form.
        schema: Declared schema, or None.
        fields: Declared fields, or None.
        target: Name or names of the target fields, or None.
        weight: Name of the weight field, or None.
        id: Name of the id field, or None.
        on_error: Policy for bad records.
        options: Options for reading.
        folder: Current folder when the data set was opened; relative paths start from it.
    """

    path: PathLike | Iterable[PathLike]
    schema: Mapping[str, Field] | None = None
    fields: Mapping[str, Field] | None = None
    target: str | Sequence[str] | None = None
    weight: str | None = None
    id: str | None = None
    on_error: OnError = "raise"
    options: ReadOptions = field(default_factory=ReadOptions)
    folder: str = field(default_factory=_find_current_folder)

    def __post_init__(self) -> None:
        check_on_error(self.on_error)
        for argument in ("schema", "fields"):
            given = getattr(self, argument)
            if given is not None and not isinstance(given, Mapping):
                raise SchemaError(
                    argument,
                    expected="fields by name",
                    got=show(given),
                    advice="Write them as {'age': ps.fields.Number('int64')}.",
                )
        if not isinstance(self.path, str | bytes | os.PathLike) and isinstance(self.path, Iterable):
            object.__setattr__(self, "path", list(self.path))  # an iterator is exhausted by the first use

    def open(self) -> tuple[OpenedFiles, Resolution]:
        """Open the files and resolve their schema.

        Raises:
            PenstockError: See `penstock.open`.
        """
        opened = open_files(self.path, self.options, self.on_error)
        roles = (self.target, self.weight, self.id)
        declared = opened.declared_schema() if self.schema is None else self.schema
        is_declared = opened.is_described and self.schema is None and not self.fields
        if is_declared and isinstance(declared, Schema):
            notes = dict.fromkeys(declared, "declared in the manifest")
            return opened, Resolution(declared.with_roles(*roles), notes)
        return opened, resolve_schema(opened.survey(), declared, self.fields, *roles)

    def to_json(self) -> dict[str, Any]:
        """Return the arguments as dicts, lists and scalars."""
        if isinstance(self.path, str | os.PathLike):
            path: str | list[str] = self._make_absolute(self.path)
        else:
            path = [self._make_absolute(each) for each in self.path]
        return {
            "path": path,
            "schema": None if self.schema is None else dump_fields(self.schema),
            "fields": None if self.fields is None else dump_fields(self.fields),
            "target": self.target if isinstance(self.target, str | None) else list(self.target),
            "weight": self.weight,
            "id": self.id,
            "on_error": self.on_error,
            "options": describe_options(self.options),
        }

    def _make_absolute(self, path: PathLike) -> str:
        return os.fspath(path) if is_store_path(path) else os.fspath(Path(self.folder, path))

    @classmethod
    def from_json(cls, json_form: Mapping[str, Any]) -> Origin:
        """Return the origin from the JSON form that `to_json` makes."""
        schema, fields = json_form["schema"], json_form["fields"]
        return cls(
            **{
                **json_form,
                "schema": None if schema is None else Schema(load_fields(schema)),
                "fields": None if fields is None else load_fields(fields),
                "options": ReadOptions(**json_form["options"]),
            }
        )

    def check(self, expected: Mapping[str, str], found: Mapping[str, str]) -> None:
        """Compare the fingerprints of a pickled data set with those of the files now.

        Raises:
            ChangedFileError: They differ.
        """
        for name in {**expected, **found}:
            before, now = expected.get(name, "none"), found.get(name, "none")
            if before != now:
                raise ChangedFileError(
                    f"{name} of the data set",
                    path=self.path if isinstance(self.path, str | os.PathLike) else None,
                    expected=f"{before[:12]}, as when it was pickled",
                    got=now[:12],
                    advice="The files have changed. Open the data set again with ps.open(…).",
                )
