"""Open the data sets and TFRecords that callers give; `source.recognition` recognizes them.

In: paths, and declarations of fields. Out: the opened `Dataset`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.dataset import Dataset, open_with_target
from penstock.dataset import open as open_dataset
from penstock.errors import OptionError, SchemaError
from penstock.foundation.wording import declare, show
from penstock.read.opened_files import open_files
from penstock.schema.array import Sequence
from penstock.schema.date import Date, choose_unit
from penstock.schema.declaration import ColumnDeclaration, TypeName, declare_field
from penstock.schema.field import Field
from penstock.schema.inference import infer_fields, name_entries
from penstock.schema.scalar import Bytes, Category, Image, Number, Text, find_unlabelled
from penstock.schema.schema import Schema
from penstock.schema.survey import FieldSurvey, ListSurvey, Survey
from penstock.settings.groups import OnError, ReadOptions
from penstock.settings.loading import OpenCall
from penstock.storage.paths import PathLike


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """Declared types and roles of fields; empty by default.

    Attributes:
        types: Types by field name, with or without attributes.
        fields: Complete fields by name, as in `penstock.open`.
        target: Name of the field or fields to predict.
        weight: Name of the field with the weight of each record.
        id: Name of the field that identifies each record.
    """

    types: Mapping[str, TypeName | ColumnDeclaration] = field(default_factory=dict)
    fields: Mapping[str, Field] = field(default_factory=dict)
    target: str | SequenceOf[str] | None = None
    weight: str | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        twice = next((name for name in self.types if name in self.fields), None)
        if twice is not None:
            raise OptionError(f"field {twice!r}", field=twice, expected="one type", got="two")

    def __bool__(self) -> bool:
        """Return whether anything is declared."""
        return self != Declaration()

    def list_fields(self, survey: Survey) -> dict[str, Field]:
        """Return all declared fields; `resolve_schema` decides whether the records can hold them."""
        return {**declare_fields(survey, self.types), **self.fields}

    def make_call(
        self,
        paths: PathLike | Iterable[PathLike],
        on_error: OnError,
        read: ReadOptions,
        schema: Mapping[str, Field] | None = None,
    ) -> OpenCall:
        """Return the keywords of `penstock.open` for files; declared types need a survey of their records."""
        fields = dict(self.fields)
        if self.types:
            fields = self.list_fields(open_files(paths, read, on_error).survey())
        return OpenCall(
            schema=None if schema is None else Schema(schema),
            fields=fields or None,
            target=self.target,
            weight=self.weight,
            id=self.id,
            on_error=on_error,
            options=read,
        )


def declare_fields(survey: Survey, types: Mapping[str, TypeName | ColumnDeclaration]) -> dict[str, Field]:
    """Return a field for each declared type."""
    guesses = infer_fields(survey).fields
    entries = name_entries(survey)
    fields: dict[str, Field] = {}
    for name, given in types.items():
        wanted, attributes = (
            (given.type_name, given.attributes) if isinstance(given, ColumnDeclaration) else (given, {})
        )
        guess = guesses.get(name)
        if guess is not None and wanted in (None, guess.type_name) and not attributes:
            fields[name] = replace(guess, role="input")  # an identifier that is declared is an input
            continue
        entry = entries.get(name)
        counted = entry.steps if isinstance(entry, ListSurvey) else entry
        if wanted == "tensor":
            fields[name] = _declare_tensor(name, attributes, counted)
        elif attributes:
            fields[name] = declare_field(name, wanted or "bytes", attributes)
        else:
            fields[name] = _declare(wanted, counted)
    return fields


def _declare_tensor(name: str, attributes: Mapping[str, Any], entry: FieldSurvey | None) -> Field:
    kind = None if entry is None else entry.kind
    found = {"dtype": "int64"} if kind == "int64" else {}
    if "shape" not in attributes:
        if entry is None or kind == "bytes" or entry.min_len != entry.max_len:
            raise OptionError(
                f"shape of tensor {show(name)}",
                field=name,
                expected="a declared shape, because the records do not define one",
                got="none",
                advice=f"For example: {declare(name, 'Tensor((64, 64))')}. 'penstock inspect' without the "
                "declaration shows the shapes that fit.",
            )
        return declare_field(name, "tensor", {"shape": [entry.max_len], **found, **attributes})
    return declare_field(name, "tensor", {**found, **attributes})


def _declare(wanted: TypeName | None, entry: FieldSurvey | None) -> Field:
    kind = None if entry is None else entry.kind
    dates = Date() if entry is None else Date(choose_unit(entry.int_min, entry.int_max))
    if wanted == "number":
        return Number("int64" if kind == "int64" else "float32")
    if wanted == "category":
        if entry is not None and kind == "int64":
            return Category("int64", entry.int_values or None)
        return Category("string")
    if wanted == "sequence":
        if kind == "bytes":
            return Sequence("string" if entry is not None and entry.is_text else "bytes")
        return Sequence("float32" if kind == "float" else "int64")
    return {"date": dates, "text": Text(), "image": Image()}.get(wanted or "", Bytes())


def open_declared(
    paths: PathLike | Iterable[PathLike],
    declaration: Declaration,
    on_error: OnError = "raise",
    read: ReadOptions | None = None,
    schema: Mapping[str, Field] | None = None,
) -> Dataset:
    """Open TFRecords with declared fields."""
    call = declaration.make_call(paths, on_error, read or ReadOptions(), schema)
    return open_dataset(paths, **call.list_given())


def _open_labels(
    schema: Mapping[str, Field], stored: Mapping[str, Field], targets: Iterable[str]
) -> dict[str, Field]:
    """Return targets of a run with texts such as NA as missing labels, where records may hold such texts."""
    found: dict[str, Field] = {}
    for name in targets:
        field, there = schema[name], stored[name]
        if isinstance(field, Category) and (
            not isinstance(there, Category) or find_unlabelled(there).unlabelled
        ):
            found[name] = find_unlabelled(replace(field, values=None))
    return found


def open_as_trained(
    paths: PathLike | Iterable[PathLike], schema: Mapping[str, Field], on_error: OnError = "raise"
) -> Dataset:
    """Open records with the fields that a run was trained with.

    Records without a manifest get the fields of the run. With a manifest, only fields whose type differs in
    the run are replaced. Targets of the run are targets, so that texts such as NA, unless they are classes of
    the run, are missing labels.
    """
    dataset = open_dataset(paths, on_error=on_error)
    targets = [name for name, each in schema.items() if each.role == "target" and name in dataset.schema]
    if dataset.manifest is None:
        schema = {**schema, **_open_labels(schema, dataset.schema, targets)}
    elif not {*targets} <= {*dataset.schema.targets}:
        dataset = open_with_target(dataset, targets)
    stored = dataset.schema
    known = {
        name: each
        for name, each in schema.items()
        if name in stored and (dataset.manifest is None or stored[name].type_name != each.type_name)
    }
    if all(stored[name] == each for name, each in known.items()):
        return dataset
    try:
        return open_dataset(paths, fields=known, on_error=on_error)
    except SchemaError:
        if dataset.manifest is None:
            raise
        return dataset  # the pipeline refuses fields of another type
