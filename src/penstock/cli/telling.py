"""Options that tell what the bytes of a field cannot: its type, its shape, its role.

In: the parser of a command, and later what it parsed. Out: its options, and declarations for a job.
"""

from __future__ import annotations

import argparse
import re
from typing import Any, get_args

from penstock.errors import OptionError, SchemaError
from penstock.jobs.told import FieldType
from penstock.schema.array import Tensor
from penstock.schema.field import Field

_TYPES: tuple[FieldType, ...] = get_args(FieldType)
# NAME:64x64x3[:float32[:raw]]; a name may hold colons itself.
_TENSOR = re.compile(
    r"(?P<name>.+?):(?P<shape>\d+(x\d+)*)(:(?P<dtype>[a-z]+\d*))?(:(?P<encoding>auto|list|raw))?", re.DOTALL
)


def add_telling(parser: argparse.ArgumentParser) -> None:
    """Add what can be told of fields."""
    group = parser.add_argument_group(
        "what the bytes cannot tell", "Each takes field names, with commas between them, and may come again."
    )
    group.add_argument(
        "--tensor",
        action="append",
        default=[],
        type=parse_tensor,
        metavar="NAME:DIMS[:DTYPE]",
        help="fields that are arrays of one shape, such as image:64x64:float32",
    )
    for each in _TYPES:
        helped = f"fields that are of type {each}"
        group.add_argument(
            f"--{each}", action="append", default=[], type=_split, metavar="NAMES", help=helped
        )
    group.add_argument(
        "--target",
        action="append",
        default=[],
        type=_split,
        metavar="NAMES",
        help="fields that a model predicts",
    )
    group.add_argument("--weight", metavar="NAME", help="the field that weighs each record")
    group.add_argument("--id", metavar="NAME", help="the field that identifies each record")


def told_fields(args: argparse.Namespace) -> dict[str, Any]:
    """Return what was told, as arguments of `InspectOptions`.

    Raises:
        OptionError: A field was told twice.
    """
    fields: dict[str, Field] = {}
    types: dict[str, FieldType] = {}
    for name, tensor in args.tensor:
        _refuse_twice(name, fields)
        fields[name] = tensor
    for each in _TYPES:
        for name in _flatten(getattr(args, each)):
            _refuse_twice(name, fields, types)
            types[name] = each
    target = _flatten(args.target) or None
    return {"fields": fields, "types": types, "target": target, "weight": args.weight, "id": args.id}


def parse_tensor(text: str) -> tuple[str, Tensor]:
    """Read `NAME:64x64:float32`.

    Raises:
        argparse.ArgumentTypeError: It is not of that form, or there is no such tensor.

    Example:
        >>> parse_tensor("image:64x64:uint8")
        ('image', Tensor(shape=(64, 64), dtype='uint8'))
    """
    match = _TENSOR.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"expected NAME:DIMS[:DTYPE], such as image:64x64:float32, got {text!r}"
        )
    shape = tuple(int(dim) for dim in match["shape"].split("x"))
    told: dict[str, Any] = {key: match[key] for key in ("dtype", "encoding") if match[key] is not None}
    try:
        return match["name"], Tensor(shape, **told)
    except SchemaError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _split(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _flatten(lists: list[list[str]]) -> list[str]:
    return [name for names in lists for name in names]


def _refuse_twice(name: str, *told: dict[str, Any]) -> None:
    if any(name in each for each in told):
        raise OptionError(
            f"field {name!r}", field=name, expected="one type", got="two", advice="Tell it once."
        )
