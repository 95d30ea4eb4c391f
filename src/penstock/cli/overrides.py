"""What the command line says about the columns of raw data; loaded only by what converts.

In: parsed arguments. Out: `PlanOverrides`.
"""

from __future__ import annotations

import argparse

from penstock.cli.planning import flatten, put_once, read_declaration
from penstock.plan.plan_file import read_plan
from penstock.plan.planner import PlanOverrides


def read_overrides(args: argparse.Namespace) -> PlanOverrides:
    """Return what was declared.

    Raises:
        OptionError: A column was given two types or two names.
        NoSuchPathError: There is no such plan file.
        SchemaError: The plan file is not one.
    """
    declared = read_declaration(args)
    rename: dict[str, str] = {}
    for old, new in flatten(args.rename):
        put_once(rename, old, new, "name")
    return PlanOverrides(
        types=declared.types,
        target=declared.target,
        weight=declared.weight,
        id=declared.id,
        drop=tuple(flatten(args.drop)),
        rename=rename,
        form=None if args.plan_file is None else read_plan(args.plan_file),
    )
