"""The origin of an opened data set: the path and the options of `open`, as plain values that can be stored.

In: the arguments. Out: an `Origin`, its JSON form, and a check that the files have not changed. A data set is
pickled this way: by reference to its files, without its records.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import ChangedFileError, SchemaError
from penstock.foundation.wording import show
from penstock.read.opened_files import OpenedFiles, open_files
from penstock.schema.json_form import dump_fields, load_fields
from penstock.schema.resolution import Resolution, resolve_schema
from penstock.schema.schema import Schema
from penstock.settings.groups import ReadOptions
from penstock.settings.loading import OpenCall
from penstock.storage.paths import PathLike
from penstock.storage.store_path import make_absolute


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
        options: Options of `penstock.open`.
        folder: Current folder when the data set was opened; relative paths start from it.
    """

    path: PathLike | Iterable[PathLike]
    options: OpenCall = field(default_factory=OpenCall)
    folder: str = field(default_factory=_find_current_folder)

    def __post_init__(self) -> None:
        for argument in ("schema", "fields"):
            given = getattr(self.options, argument)
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
        """Open the files and resolve their schema."""
        options = self.options
        opened = open_files(self.path, options.read_options, options.on_error)
        roles = (options.target, options.weight, options.id)
        declared = opened.declared_schema() if options.schema is None else options.schema
        is_declared = opened.is_described and options.schema is None and not options.fields
        targets = declared.targets if isinstance(declared, Schema) else ()
        known = {*targets, *(options.schema or ()), *(options.fields or ())}
        if is_declared and isinstance(declared, Schema):
            notes = dict.fromkeys(declared, "declared in the manifest")
            resolution = Resolution(declared.with_roles(*roles), notes)
        else:
            resolution = resolve_schema(opened.survey(), declared, options.fields, *roles)
        return opened, resolution.without_unlabelled(known)

    def to_json(self) -> dict[str, Any]:
        """Return the arguments as dicts, lists and scalars."""
        if isinstance(self.path, str | os.PathLike):
            path: str | list[str] = self._make_absolute(self.path)
        else:
            path = [self._make_absolute(each) for each in self.path]
        schema, fields = self.options.schema, self.options.fields
        return {
            **self.options.to_json(),
            "path": path,
            "schema": None if schema is None else dump_fields(schema),
            "fields": None if fields is None else dump_fields(fields),
            "options": self.options.read_options.to_json(only_given=True),
        }

    def _make_absolute(self, path: PathLike) -> str:
        return make_absolute(path, self.folder)

    @classmethod
    def from_json(cls, json_form: Mapping[str, Any]) -> Origin:
        """Return the origin from the JSON form that `to_json` makes."""
        given = dict(json_form)
        path, schema, fields = given.pop("path"), given.pop("schema"), given.pop("fields")
        return cls(
            path,
            OpenCall(
                **given
                | {
                    "schema": None if schema is None else Schema(load_fields(schema)),
                    "fields": None if fields is None else load_fields(fields),
                    "options": ReadOptions(**given["options"]),
                }
            ),
        )

    def check(self, expected: Mapping[str, str], found: Mapping[str, str]) -> None:
        """Compare the fingerprints of a pickled data set with the files now."""
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
