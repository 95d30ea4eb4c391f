"""Options that declare what columns and fields are: their types, shapes and roles; the same in every command.

In: the parser of a command, and later what it parsed. Out: its options, and a `Declaration`; `overrides.py`
reads what only a conversion takes.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from penstock.errors import OptionError, SchemaError
from penstock.jobs.stored_data import Declaration
from penstock.schema.declaration import Told, TypeName, declare_field

PLAIN_TYPES: Final[tuple[TypeName, ...]] = ("image", "text", "category", "number", "sequence", "bytes")
# NAME[:64x64x3[:float32[:raw]]]; a name may hold colons itself.
_TENSOR = re.compile(
    r"(?P<name>.+?)(:(?P<shape>\d+(x\d+)*)(:(?P<dtype>\w+))?(:(?P<encoding>auto|list|raw))?)?", re.DOTALL
)


def add_declaring(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the types and roles that can be declared."""
    group = parser.add_argument_group(
        "columns and fields", "Each takes names, separated by commas, and may be given again."
    )
    for each in PLAIN_TYPES:
        _add_list(group, f"--{each}", _split, "NAMES", f"those of type {each}")
    shape = "those that are arrays of one shape, such as embedding or mask:64x64:uint8"
    _add_list(group, "--tensor", _parse_tensors, "NAME[:DIMS[:DTYPE]]", shape)
    _add_list(group, "--target", _split, "NAMES", "those that a model predicts")
    group.add_argument("--weight", metavar="NAME", help="the one that weighs each row")
    group.add_argument("--id", metavar="NAME", help="the one that identifies each row")
    return group


def add_planning(parser: argparse.ArgumentParser) -> None:
    """Add the same, and what is left out or renamed."""
    group = add_declaring(parser)
    _add_list(group, "--drop", _split, "NAMES", "those to leave out")
    _add_list(group, "--rename", _parse_renames, "OLD=NEW", "other names for columns")


def read_declaration(args: argparse.Namespace) -> Declaration:
    """Return what was declared.

    Raises:
        OptionError: A name was given two types.
    """
    types: dict[str, TypeName | Told] = {}
    for name, tensor in flatten(args.tensor):
        put_once(types, name, tensor, "type")
    for each in PLAIN_TYPES:
        for name in flatten(getattr(args, each)):
            put_once(types, name, each, "type")
    return Declaration(types=types, target=flatten(args.target) or None, weight=args.weight, id=args.id)


def flatten(lists: Iterable[Iterable[Any]]) -> list[Any]:
    """Return the items of an option that was given several times."""
    return [item for items in lists for item in items]


def put_once(given: dict[str, Any], name: str, what: object, noun: str) -> None:
    """Add what was given for a name.

    Raises:
        OptionError: Something else was given for it before.
    """
    if name in given and given[name] != what:
        raise OptionError(f"{name!r}", field=name, expected=f"one {noun}", got="two", advice="Give it once.")
    given[name] = what


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
    attributes |= {key: match[key] for key in ("dtype", "encoding") if match[key] is not None}
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
