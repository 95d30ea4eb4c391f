"""A pipeline as JSON, version 1: how it is kept beside a model.

In: an assembly, or parsed JSON from anywhere. Out: the other. Loading trusts nothing: every fault is a
`SchemaError` whose `field` is the place, such as `$.transforms.age.method`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from penstock.errors import NoSuchPathError, OptionError, PathError, PenstockError, SchemaError
from penstock.foundation.json_text import write_json
from penstock.foundation.wording import join_place, list_choices, show, unknown_name
from penstock.schema.field import Field
from penstock.schema.scalar import Category
from penstock.schema.schema import Schema
from penstock.storage.atomic import AtomicFile
from penstock.transform.assembly import Assembly
from penstock.transform.base import Transform
from penstock.transform.form import (
    fault_at,
    load_flag,
    load_list,
    load_text,
    load_value,
    need_object,
)
from penstock.transform.kinds import load_transform
from penstock.transform.map import MapFunction, Mapped
from penstock.transform.output import Output

VERSION: Final = 1

_load_names = load_list(load_text)


def dump_pipeline(assembly: Assembly) -> dict[str, Any]:
    """Return the JSON form, in plain dicts and lists."""
    schema = Schema({name: _trim(assembly.schema[name]) for name in assembly.fields})
    return {
        "version": VERSION,
        "schema": schema.to_json(),
        "transforms": {name: each.to_json() for name, each in assembly.fed.items()},
        "maps": [_dump_map(each) for each in assembly.maps],
        "groups": [{"name": each.name, "members": list(each.members)} for each in assembly.groups],
    }


def load_pipeline(form: object, functions: Mapping[str, MapFunction] | None = None) -> Assembly:
    """Return the assembly that a form holds.

    Args:
        form: After `json.loads`.
        functions: The functions of its maps, by the names of the maps.

    Raises:
        SchemaError: The form is not what `dump_pipeline` makes; `field` and the message give the place.
        OptionError: A map has no function, or a function has no map.
    """
    root = need_object("$", form, ("version", "schema", "transforms", "maps", "groups"))
    _need_version(root.get("version"))
    schema = _load_schema(root.get("schema"))
    transforms = {}
    for name, each in need_object("$.transforms", root.get("transforms")).items():
        place = join_place("$.transforms", name)
        if name not in schema:
            raise fault_at(place, "a field of the schema", show(name), str(unknown_name(name, schema).advice))
        transforms[name] = _load_transform(place, each, name, schema[name])
    maps = _load_maps(root.get("maps", []), schema, functions or {})
    groups = []
    for i, each in enumerate(_need_array("$.groups", root.get("groups", []))):
        given = need_object(f"$.groups[{i}]", each, ("name", "members"))
        members = _load_names(f"$.groups[{i}].members", given.get("members"))
        groups.append((load_text(f"$.groups[{i}].name", given.get("name")), members))
    try:
        places = [f"$.groups[{i}]" for i in range(len(groups))]
        return Assembly(schema, transforms, maps, groups, places)
    except PenstockError as error:
        place = error.field if error.field and error.field.startswith("$.") else "$"
        place = place.replace("][", "].members[")
        facts = {"expected": error.expected, "got": error.got, "advice": error.advice}
        raise SchemaError(f"pipeline at {place}: {error.what}", field=place, **facts) from None  # type: ignore[arg-type]


def write_pipeline(assembly: Assembly, path: str | os.PathLike[str]) -> None:
    """Write a file, which takes the place of one that is there."""
    text = write_json(dump_pipeline(assembly), 1)
    with AtomicFile(Path(path), overwrite=True) as file:
        file.write(f"{text}\n".encode("ascii"))


def read_pipeline(
    path: str | os.PathLike[str], functions: Mapping[str, MapFunction] | None = None
) -> Assembly:
    """Read a file that `write_pipeline` wrote.

    Raises:
        NoSuchPathError: There is no such file.
        PathError: It cannot be read.
        SchemaError: It holds no pipeline; the message says where.
        OptionError: A map has no function, or a function has no map.
    """
    try:
        form = json.loads(Path(path).read_bytes())
    except FileNotFoundError:
        raise NoSuchPathError("no such pipeline", path=path) from None
    except OSError as error:
        raise PathError(f"cannot be read ({error.strerror})", path=path) from None
    except (ValueError, RecursionError) as error:
        raise SchemaError("pipeline", path=path, expected="JSON", got=show(str(error))) from None
    try:
        return load_pipeline(form, functions)
    except SchemaError as error:
        error.path = os.fspath(path)
        error.args = (str(error),)
        raise


def _trim(field: Field) -> Field:
    """Return a field without what no transform needs: a vocabulary holds the domain, if one is fitted."""
    field = replace(field, key=None)
    return replace(field, values=None) if isinstance(field, Category) else field


def _dump_map(mapped: Mapped) -> dict[str, Any]:
    return {
        "name": mapped.name,
        "fields": list(mapped.fields),
        "outputs": [output.to_json() for output in mapped.outputs],
        "keep": mapped.keep,
    }


def _load_schema(form: object) -> Schema:
    try:
        return Schema.from_json(form)
    except SchemaError as error:
        place = f"$.schema{(error.field or '$').removeprefix('$')}"
        raise fault_at(place, error.expected, error.got, error.advice) from None


def _load_transform(place: str, form: object, name: str, field: Field) -> Transform:
    transform = load_transform(form, place)
    if not transform.is_fitted:
        raise fault_at(f"{place}.fitted", "what was fitted", "nothing", "Fit a pipeline; this holds options.")
    transform.check_fitted(name, field, place)
    return transform


def _load_maps(form: object, schema: Schema, functions: Mapping[str, MapFunction]) -> list[Mapped]:
    maps = [
        _load_map(f"$.maps[{i}]", each, schema, functions)
        for i, each in enumerate(_need_array("$.maps", form))
    ]
    for name in functions:
        if name not in {each.name for each in maps}:
            raise OptionError(
                f"function {name!r}",
                expected="the name of a map in the pipeline",
                got=list_choices(each.name for each in maps) if maps else "no map",
            )
    return maps


def _load_map(place: str, form: object, schema: Schema, functions: Mapping[str, MapFunction]) -> Mapped:
    given = need_object(place, form, ("name", "fields", "outputs", "keep"))
    name = load_text(f"{place}.name", given.get("name"))
    fields = _load_names(f"{place}.fields", given.get("fields"))
    for i, field in enumerate(fields):
        if field not in schema:
            raise fault_at(f"{place}.fields[{i}]", "a field of the schema", show(field))
    if name not in functions:
        raise OptionError(
            f"map {name!r}",
            field=name,
            expected="its function",
            got="none",
            advice=f"A file holds no code: load with functions={{{name!r}: …}}.",
        )
    outputs = tuple(
        _load_output(f"{place}.outputs[{i}]", each)
        for i, each in enumerate(_need_array(f"{place}.outputs", given.get("outputs")))
    )
    return Mapped(name, functions[name], fields, outputs, load_flag(f"{place}.keep", given.get("keep")))


def _load_output(place: str, form: object) -> Output:
    given = need_object(place, form, ("name", "dtype", "shape", "is_ragged"))
    try:
        return Output(
            load_text(f"{place}.name", given.get("name")),
            load_text(f"{place}.dtype", given.get("dtype")),
            load_value(f"{place}.shape", given.get("shape")),
            load_flag(f"{place}.is_ragged", given.get("is_ragged", False)),
        )
    except OptionError as error:
        raise fault_at(place, error.expected, error.got) from None


def _need_array(place: str, form: object) -> list[Any]:
    if not isinstance(form, list):
        raise fault_at(place, "an array", "nothing" if form is None else show(form))
    return form


def _need_version(version: object) -> None:
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise fault_at("$.version", VERSION, "nothing" if version is None else show(version))
    if version > VERSION:
        advice = "A newer Penstock wrote this pipeline: upgrade this one."
        raise fault_at("$.version", f"at most {VERSION}", version, advice)
