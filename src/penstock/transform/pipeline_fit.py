"""Fitting of a pipeline: choose one transform per field, and fit it to the train split.

In: a data set, and settings from a program, a mapping or a YAML file. Out: an `Assembly` of fitted
transforms, and notes about the fields.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from penstock.columns import Bytes, Dense
from penstock.errors import MissingPackageError, OptionError, PenstockError
from penstock.foundation.json_form import JsonValue, list_of
from penstock.foundation.wording import join_path, unknown_name
from penstock.read.bitmap import Bitmap
from penstock.schema.array import Tensor
from penstock.schema.byte_array import advise_declaration, find_odd_values
from penstock.schema.field import Field
from penstock.schema.scalar import Bytes as BytesField
from penstock.schema.scalar import Number
from penstock.schema.schema import Schema
from penstock.transform.assembly import Assembly
from penstock.transform.base import PIPELINE, Transform
from penstock.transform.category import Encode
from penstock.transform.class_codes import find_classes, note_renumbered
from penstock.transform.fit_source import SplitFit, find_source
from penstock.transform.image import Image
from penstock.transform.keep import Keep
from penstock.transform.kinds import IDENTIFIES, UNUSED, choose_transform, load_override


class Settings(NamedTuple):
    """Settings of a pipeline.

    Attributes:
        fields: Override by field name: a transform, its options with their `kind`, the name of a kind, or
            None to leave the field out.
        groups: Members of each group, by name of the new input.
    """

    fields: Mapping[str, object]
    groups: Mapping[str, tuple[str, ...]]


def load_settings(form: object) -> Settings:
    """Return the settings of a parsed YAML or JSON mapping.

    Raises SchemaError: the mapping is not valid; `field` and the message give the path of the fault.
    """
    given = JsonValue({} if form is None else form, PIPELINE).children("fields", "groups")
    fields, groups = (
        {} if name not in given or given[name].value is None else given[name].children()
        for name in ("fields", "groups")
    )
    load_names = list_of(JsonValue.text)
    return Settings(
        {name: value.value for name, value in fields.items()},
        {name: load_names(value) for name, value in groups.items()},
    )


_log = logging.getLogger("penstock")

_NUM_READ: Final = 16  # values, to judge what arrays they may be
_LEFT_OUT: Final = "it was left out"
_ASKED_FOR: Final = (_LEFT_OUT, IDENTIFIES, UNUSED)
_UNSCALED: Final = (
    "vectors are passed as stored, and not scaled: Scale(), in a config file {kind: scale}, scales them; "
    "built models normalize them with a layer"
)
_AUGMENTED: Final = "training images are changed at random: "


def fit_assembly(
    data: Any, settings: Settings, part: tuple[float, float] | Bitmap | None = None
) -> tuple[Assembly, dict[str, str]]:
    """Fit a transform for each field of a data set, or of a split.

    `part`: two fractions, as for a loader, or rows: fit only on that part of the records. A target always has
    the classes of all records. The notes by field name are reasons why fields are left out, and warnings.
    """
    source = find_source(data, part)
    whole = source if part is None else find_source(data)
    schema = source.schema
    for name in settings.fields:
        if name not in schema:
            raise unknown_name(name, schema)
    chosen, notes = _choose(schema, settings)
    notes |= {name: _explain_bytes(source, name, note) for name, note in notes.items()}
    # Numbers add almost no cost to the pass, and may need a warning.
    measured = [
        name
        for name, each in chosen.items()
        if each.is_measured(schema[name]) or isinstance(schema[name], Number)
    ]
    source.expect(measured, [name for name, each in chosen.items() if each.is_sampled(schema[name])])
    fitted = {}
    for name, each in chosen.items():
        has_classes = isinstance(each, Encode) and schema[name].role == "target"
        fitted[name] = _fit(name, each, whole if has_classes else source)
    paths = [join_path("$.groups", name) for name in settings.groups]
    assembly = Assembly(schema, fitted, (), list(settings.groups.items()), paths)
    for name, each in fitted.items():
        # Use only statistics that fitting computed: a pass just for warnings would be expensive.
        caution = each.caution(schema[name], source.statistics(name)) if source.knows(name) else ""
        if caution:
            notes[name] = caution
        elif odd := _find_odd_values(source, name):
            notes[name] = odd
    for name, note in list_remarks(schema, fitted, settings.fields).items():
        notes[name] = "; ".join(filter(None, (notes.get(name), note)))
    for warning in list_warnings(schema, notes):
        _log.warning("%s", warning)
    return assembly, notes


def list_warnings(schema: Schema, notes: Mapping[str, str]) -> Iterator[str]:
    """Yield one sentence per field that is left out without being asked for, or that needs attention."""
    for name, note in notes.items():
        role = schema[name].role
        if note in _ASKED_FOR or note.startswith(_AUGMENTED):
            continue
        if note.startswith(_list_reasons(name, schema)):
            yield (
                f"target {name!r} is left out: {note}"
                if role == "target"
                else (f"field {name!r} is not used as an input: {note}")
            )
        else:
            yield f"field {name!r}: {note}"


def _list_reasons(name: str, schema: Schema) -> tuple[str, ...]:
    found = choose_transform(name, schema[name])
    return (found,) if isinstance(found, str) else ()


def list_remarks(
    schema: Schema, fitted: Mapping[str, Transform], chosen: Collection[str] = ()
) -> dict[str, str]:
    """Return notes by field name on what transforms do unnoticed, or leave undone.

    These are vectors that are passed as stored, unless the user chose that, images that are augmented, and
    labels that are whole numbers and get other numbers as codes, unless the user chose the codes.
    """
    default_codes = {name: each for name, each in fitted.items() if getattr(each, "vocabulary", None) is None}
    notes = note_renumbered(find_classes(default_codes, schema))
    for name, transform in fitted.items():
        if isinstance(transform, Keep) and name not in chosen and _is_vector(schema[name]):
            notes[name] = _UNSCALED
        elif isinstance(transform, Image) and transform.augments:
            notes[name] = f"{_AUGMENTED}{transform.describe_augmentation()}"
    return notes


def _explain_bytes(source: SplitFit, name: str, note: str) -> str:
    """Return the reason why a field is left out; for bytes, also the arrays that they may be."""
    field = source.schema[name]
    if not isinstance(field, BytesField) or note not in _list_reasons(name, source.schema):
        return note
    values = [value for value in Bytes.of(source.head(name, _NUM_READ)).tolist() if value]
    advice = advise_declaration(name, values)
    return f"{note}. {advice.removesuffix('.')}" if advice else note


def _find_odd_values(source: SplitFit, name: str) -> str:
    """Return a note about elements that hint at a wrong declaration of an array of bytes."""
    field = source.schema[name]
    if not isinstance(field, Tensor) or field.kind != "bytes":
        return ""
    return find_odd_values(Dense.of(source.head(name, _NUM_READ)).values)


def _is_vector(field: Field) -> bool:
    return field.role == "input" and isinstance(field, Tensor) and len(field.shape) == 1


def fit_by_config(
    data: Any,
    config: str | os.PathLike[str] | Mapping[str, Any],
    part: tuple[float, float] | Bitmap | None = None,
) -> tuple[Assembly, dict[str, str]]:
    """Fit transforms as specified by a YAML file or a mapping; see `fit_assembly`."""
    if isinstance(config, Mapping):
        return fit_assembly(data, load_settings(config), part)
    try:
        # The YAML package is optional.
        from penstock.foundation.safe_yaml import add_line, read_yaml  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingPackageError.from_import(error, "Pipeline.fit_config") from error
    form, lines = read_yaml(config)
    try:
        return fit_assembly(data, load_settings(form), part)
    except PenstockError as error:
        named = error.field or ""
        path = named if named.startswith("$") else join_path("$.fields", named)
        inner = {key: line for key, line in lines.items() if key not in ("$", "$.fields")}
        raise add_line(error, path, inner, config) from None


def _fit(name: str, transform: Transform, source: SplitFit) -> Transform:
    try:
        return transform.fit(name, source.schema[name], source)
    except OptionError as error:
        # The error names only the option: add the field, also to find the line of a YAML file.
        if error.field != name:
            error.field = name
            if repr(name) not in str(error):
                error.what = f"{error.what} for field {name!r}"
            error.args = (str(error),)
        raise


def _choose(schema: Schema, settings: Settings) -> tuple[dict[str, Transform], dict[str, str]]:
    chosen: dict[str, Transform] = {}
    notes: dict[str, str] = {}
    for name, field in schema.items():
        if name in settings.fields:
            found = load_override(name, field, settings.fields[name]) or _LEFT_OUT
        else:
            found = choose_transform(name, field)
        if isinstance(found, str):
            notes[name] = found
        else:
            chosen[name] = found
    return chosen, notes
