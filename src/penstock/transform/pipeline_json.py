"""Reading of the JSON form of a pipeline, version 1, which is stored with a model.

In: untrusted JSON. Out: an assembly. Every fault in the JSON is a `SchemaError` whose
`field` is the path, such as `$.transforms.age.method`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from penstock.errors import NoSuchPathError, OptionError, PathError, PenstockError, SchemaError
from penstock.foundation.json_form import JsonValue, list_of
from penstock.foundation.json_text import parse_json, write_json
from penstock.foundation.wording import list_choices, show, unknown_name
from penstock.schema.field import Field
from penstock.schema.schema import Schema
from penstock.storage.atomic import AtomicFile
from penstock.transform.assembly import VERSION, Assembly
from penstock.transform.base import PIPELINE, Transform
from penstock.transform.kinds import load_transform
from penstock.transform.map import MapFunction, Mapped
from penstock.transform.output import Output

_load_names = list_of(JsonValue.text)


def load_pipeline(form: object, functions: Mapping[str, MapFunction] | None = None) -> Assembly:
    """Return the assembly of a JSON form.

    `form`: JSON form, after `json.loads`. Raises SchemaError: the JSON form is not valid; `field` and the
    message give the path of the fault.
    """
    root = JsonValue(form, PIPELINE)
    given = root.children("version", "schema", "transforms", "maps", "groups")
    root.child("version").version(VERSION)
    schema = _load_schema(root.child("schema"))
    transforms = {}
    for name, value in root.child("transforms").children().items():
        if name not in schema:
            raise value.refuse("a field of the schema", show(name), str(unknown_name(name, schema).advice))
        transforms[name] = _load_transform(value, name, schema[name])
    maps = _load_maps(list(given["maps"].elements()) if "maps" in given else [], schema, functions or {})
    groups = []
    for value in given["groups"].elements() if "groups" in given else ():
        value.object("name", "members")
        groups.append((value.child("name").text(), _load_names(value.child("members"))))
    try:
        paths = [f"$.groups[{i}]" for i in range(len(groups))]
        return Assembly(schema, transforms, maps, groups, paths)
    except PenstockError as error:
        json_path = error.field if error.field and error.field.startswith("$.") else "$"
        json_path = json_path.replace("][", "].members[")
        details = {"expected": error.expected, "got": error.got, "advice": error.advice}
        raise SchemaError(f"pipeline at {json_path}: {error.what}", field=json_path, **details) from None  # type: ignore[arg-type]


def write_pipeline(assembly: Assembly, path: str | os.PathLike[str]) -> None:
    """Write a pipeline to a file; an existing file is replaced."""
    text = write_json(assembly.to_json(), 1)
    with AtomicFile(Path(path), overwrite=True) as file:
        file.write(f"{text}\n".encode("ascii"))


def read_pipeline(
    path: str | os.PathLike[str], functions: Mapping[str, MapFunction] | None = None
) -> Assembly:
    """Read a file that `write_pipeline` wrote."""
    try:
        form = parse_json(Path(path).read_bytes(), takes_nan=True)
    except FileNotFoundError:
        raise NoSuchPathError("no such pipeline", path=path) from None
    except OSError as error:
        raise PathError(f"cannot be read ({error.strerror})", path=path) from None
    except ValueError as error:
        raise SchemaError("pipeline", path=path, expected="JSON", got=show(str(error))) from None
    try:
        return load_pipeline(form, functions)
    except SchemaError as error:
        error.path = os.fspath(path)
        error.args = (str(error),)
        raise


def _load_schema(value: JsonValue) -> Schema:
    try:
        return Schema.from_json(value.value)
    except SchemaError as error:
        inner = (error.field or "$").removeprefix("$")
        raise value.refuse(error.expected, error.got, error.advice, at=inner) from None


def _load_transform(value: JsonValue, name: str, field: Field) -> Transform:
    transform = load_transform(value)
    if not transform.is_fitted:
        advice = "Fit the pipeline first: it has only options."
        raise value.child("fitted").refuse("the fitted state", advice=advice)
    transform.check_fitted(name, field, value)
    return transform


def _load_maps(
    values: Iterable[JsonValue], schema: Schema, functions: Mapping[str, MapFunction]
) -> list[Mapped]:
    maps = [_load_map(value, schema, functions) for value in values]
    for name in functions:
        if name not in {each.name for each in maps}:
            raise OptionError(
                f"function {name!r}",
                expected="the name of a map in the pipeline",
                got=list_choices(each.name for each in maps) if maps else "no map",
            )
    return maps


def _load_map(value: JsonValue, schema: Schema, functions: Mapping[str, MapFunction]) -> Mapped:
    value.object("name", "fields", "outputs", "keep")
    name = value.child("name").text()
    fields = _load_names(value.child("fields"))
    for field in value.child("fields").elements():
        if field.value not in schema:
            raise field.refuse("a field of the schema")
    if name not in functions:
        raise OptionError(
            f"map {name!r}",
            field=name,
            expected="its function",
            got="nothing",
            advice=f"Files contain no code: load with functions={{{name!r}: …}}.",
        )
    outputs = tuple(_load_output(each) for each in value.child("outputs").elements())
    return Mapped(name, functions[name], fields, outputs, value.child("keep").flag())


def _load_output(value: JsonValue) -> Output:
    given = value.children("name", "dtype", "shape", "is_ragged")
    try:
        return Output(
            value.child("name").text(),
            value.child("dtype").text(),
            value.child("shape").any_value(),
            given["is_ragged"].flag() if "is_ragged" in given else False,
        )
    except OptionError as error:
        raise value.refuse(error.expected, error.got) from None
