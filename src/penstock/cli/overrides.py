"""What was told of the columns on the command line, as a job takes it; loaded only by what converts.

In: parsed arguments. Out: `PlanOverrides`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from penstock.cli.planning import PLAIN_TYPES
from penstock.errors import OptionError
from penstock.jobs.plan import PlanOverrides
from penstock.jobs.planfile import read_plan
from penstock.schema.told import Told, TypeName


def read_overrides(args: argparse.Namespace) -> PlanOverrides:
    """Return what was told.

    Raises:
        OptionError: A column was told two types or two names.
        NoSuchPathError: There is no such plan file.
        SchemaError: The plan file is not one.
    """
    types: dict[str, TypeName | Told] = {}
    for name, tensor in _flatten(args.tensor):
        _put_once(types, name, tensor, "type")
    for each in PLAIN_TYPES:
        for name in _flatten(getattr(args, each)):
            _put_once(types, name, each, "type")
    rename: dict[str, str] = {}
    for old, new in _flatten(args.rename):
        _put_once(rename, old, new, "name")
    return PlanOverrides(
        types=types,
        target=_flatten(args.target) or None,
        weight=args.weight,
        id=args.id,
        drop=tuple(_flatten(args.drop)),
        rename=rename,
        form=None if args.plan_file is None else read_plan(args.plan_file),
    )


def _flatten(lists: Iterable[Iterable[Any]]) -> list[Any]:
    return [item for items in lists for item in items]


def _put_once(told: dict[str, Any], name: str, what: object, noun: str) -> None:
    if name in told and told[name] != what:
        raise OptionError(
            f"column {name!r}", field=name, expected=f"one {noun}", got="two", advice="Tell it once."
        )
    told[name] = what
