"""Objects that jobs take, made from the options that several commands share.

In: parsed arguments. Out: `ReadOptions`, `Declaration`, and the options that were given. Loaded by commands
that run, not for their help.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any, Final

from penstock.cli.option_groups import FIELD_TYPES
from penstock.errors import OptionError, SchemaError
from penstock.jobs.stored_data import Declaration
from penstock.read.options import ReadOptions
from penstock.schema.declaration import ColumnDeclaration, declare_field

_READING: Final = ("compression", "max_record_bytes", "allow_trailing_zeros", "store_cache_bytes")


def list_given(args: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Return the options that were given, by name; the job has the defaults of the others."""
    given = {name: getattr(args, name) for name in names if getattr(args, name, None) is not None}
    if "missing" in given:
        given["missing"] = ("", *given["missing"])  # an empty cell is always missing
    return given


def read_options(args: argparse.Namespace) -> ReadOptions:
    """Return how to read TFRecord files."""
    return ReadOptions(**list_given(args, _READING))


def read_declaration(args: argparse.Namespace) -> Declaration:
    """Return the types and roles that were declared.

    Raises:
        OptionError: A field has two types, or a tensor has an invalid shape or dtype.
    """
    types: dict[str, Any] = {}
    for name, attributes in flatten(args.tensor):
        put_once(types, name, _make_tensor(name, attributes), "type")
    for each in FIELD_TYPES:
        for name in flatten(getattr(args, each)):
            put_once(types, name, each, "type")
    return Declaration(types=types, target=flatten(args.target) or None, weight=args.weight, id=args.id)


def _make_tensor(name: str, attributes: dict[str, Any]) -> ColumnDeclaration:
    try:
        declare_field(name, "tensor", {"shape": [1], **attributes})
    except SchemaError as error:
        raise OptionError(f"--tensor {name!r}", field=name, expected=error.expected, got=error.got) from error
    return ColumnDeclaration("tensor", attributes)


def flatten(lists: Iterable[Iterable[Any]]) -> list[Any]:
    """Return the items of an option that was given several times."""
    return [item for items in lists for item in items]


def put_once(given: dict[str, Any], name: str, value: object, noun: str) -> None:
    """Set what was given for a name.

    Raises:
        OptionError: Something else was given before.
    """
    if name in given and given[name] != value:
        raise OptionError(f"{name!r}", field=name, expected=f"one {noun}", got="two", advice="Give it once.")
    given[name] = value
