"""Raw data for `penstock inspect`; a module of its own, because only raw data needs pyarrow.

In: parsed arguments. Out: the columns with types, roles and counts as a table or JSON, and the exit status.
"""

from __future__ import annotations

import argparse
import json
from itertools import islice
from typing import Any, Final

from penstock.cli.next_command import can_train, repeat_words, suggest_next
from penstock.cli.option_values import list_given, read_declaration
from penstock.cli.terminal import (
    format_count,
    format_value,
    output_width,
    print_note,
    print_table,
    print_warning,
)
from penstock.errors import OptionError
from penstock.foundation.terminal import escape, shorten
from penstock.foundation.wording import format_size
from penstock.jobs.check.inspect_raw import RawInspection, inspect_raw
from penstock.plan.planner import PlanOverrides
from penstock.shards.options import make_options

READING: Final = (
    *("delimiter", "header", "sheet", "encoding", "missing", "decimal", "thousands", "short_rows"),
    "files_from",
)
_RECORDS_ONLY: Final = ("compare", "tf", "pipeline", "split", "code")
_MAX_COLUMNS: Final = 1_000
_EXAMPLE_CHARS: Final = 40


def run(args: argparse.Namespace) -> int:
    """Inspect, print, and return the exit status.

    Raises:
        OptionError: An option needs TFRecords.
        PenstockError: The data cannot be read.
    """
    for name in _RECORDS_ONLY:
        if getattr(args, name, None):
            raise OptionError(
                f"--{name}",
                expected="TFRecords or a data set",
                got="raw data",
                advice="Convert it first: 'penstock convert'.",
            )
    declared = read_declaration(args)
    overrides = PlanOverrides(
        types=declared.types, target=declared.target, weight=declared.weight, id=declared.id
    )
    source = args.paths[0] if len(args.paths) == 1 else args.paths
    found = inspect_raw(source, overrides, make_options(**list_given(args, READING)), args.head)
    if args.json:
        form = found.to_json()
        print(json.dumps({**form, "head": list(found.rows[: args.head])} if args.head else form))
    else:
        _print(found, args)
    words = repeat_words(args, {"--head": 1})
    if overrides.target is not None and can_train():
        suggest_next(args, "train", *words)
    else:
        suggest_next(args, "convert", *words, "--plan")
    return 0


def _print(found: RawInspection, args: argparse.Namespace) -> None:
    kept = [each for each in islice(found.plan, _MAX_COLUMNS) if each.column in found.profiles]
    rows = [
        [
            escape(each.column),
            each.field.type_name,
            each.field.role,
            each.field.describe(),
            f"{found.profiles[each.column].num_missing:,}",
            _format_distinct(found.profiles[each.column].num_distinct),
            _format_example(found.find_example(each)),
        ]
        for each in kept
    ]
    header = ("column", "type", "role", "values", "missing", "distinct", "example")
    print_table(header, rows, right=("missing", "distinct"))
    if num_more := len(found.plan) - len(kept):
        print(f"and {format_count(num_more, 'more column')}: --json lists all.")
    print()
    for number, row in enumerate(found.rows[: args.head], 1):
        _print_row(number, row)
    for note in found.notes:
        print_note(note)
    for warning in found.plan.warnings:
        print_warning(warning)
    more = "" if found.is_whole else "the first "
    size = "" if found.num_bytes is None else f", {format_size(found.num_bytes)}"
    print(f"{more}{format_count(found.num_rows, 'row')} of {escape(found.name)}{size}")


def _print_row(number: int, row: dict[str, Any]) -> None:
    names = {escape(name): "–" if value is None else format_value(value) for name, value in row.items()}
    indent = max(map(len, names), default=0)
    print(f"row {number}")
    for name, value in names.items():
        print(f"  {name:{indent}}  {shorten(value, max(20, output_width() - indent - 4))}")
    print()


def _format_distinct(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


def _format_example(value: Any) -> str:
    return "–" if value is None else shorten(format_value(value), _EXAMPLE_CHARS)
