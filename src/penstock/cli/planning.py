"""Options that tell what the columns of a source are: types, roles, names, what to leave out.

In: the parser of a command. Out: its options; `overrides.py` reads what it parsed.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any, Final

from penstock.errors import SchemaError
from penstock.schema.told import Told, TypeName, declare_field

PLAIN_TYPES: Final[tuple[TypeName, ...]] = ("image", "text", "category", "number", "sequence", "bytes")
# NAME[:64x64x3[:float32]]; a name may hold colons itself.
_TENSOR = re.compile(r"(?P<name>.+?)(:(?P<shape>\d+(x\d+)*)(:(?P<dtype>\w+))?)?", re.DOTALL)


def add_planning(parser: argparse.ArgumentParser) -> None:
    """Add what can be told of columns."""
    group = parser.add_argument_group(
        "columns", "Each takes names of columns, with commas between them, and may come again."
    )
    for each in PLAIN_TYPES:
        _add_list(group, f"--{each}", _split, "NAMES", f"columns that are of type {each}")
    shape = "columns that are arrays of one shape, such as embedding or mask:64x64:uint8"
    _add_list(group, "--tensor", _parse_tensors, "NAME[:DIMS[:DTYPE]]", shape)
    _add_list(group, "--target", _split, "NAMES", "columns that a model predicts")
    group.add_argument("--weight", metavar="NAME", help="the column that weighs each row")
    group.add_argument("--id", metavar="NAME", help="the column that names each row")
    _add_list(group, "--drop", _split, "NAMES", "columns to leave out")
    _add_list(group, "--rename", _parse_renames, "OLD=NEW", "other names for columns")


def _add_list(
    group: argparse._ArgumentGroup, flag: str, parse: Callable[[str], Any], metavar: str, helped: str
) -> None:
    group.add_argument(flag, action="append", default=[], type=parse, metavar=metavar, help=helped)


def _split(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _parse_tensors(text: str) -> list[tuple[str, Told]]:
    return [_parse_tensor(part) for part in _split(text)]


def _parse_tensor(text: str) -> tuple[str, Told]:
    match = _TENSOR.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"expected NAME[:DIMS[:DTYPE]], such as mask:64x64:uint8, got {text!r}"
        )
    attributes: dict[str, Any] = {}
    if match["shape"] is not None:
        attributes["shape"] = [int(dim) for dim in match["shape"].split("x")]
    if match["dtype"] is not None:
        attributes["dtype"] = match["dtype"]
    try:
        declare_field(match["name"], "tensor", {"shape": [1], **attributes})
    except SchemaError as error:
        raise argparse.ArgumentTypeError(
            f"tensor {match['name']!r}: expected {error.expected}, got {error.got}"
        ) from None
    return match["name"], Told("tensor", attributes)


def _parse_renames(text: str) -> list[tuple[str, str]]:
    renames = []
    for part in _split(text):
        old, equals, new = part.partition("=")
        if not (old and equals and new):
            raise argparse.ArgumentTypeError(f"expected OLD=NEW, got {part!r}")
        renames.append((old, new))
    return renames
