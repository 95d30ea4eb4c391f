"""Raw data for `penstock inspect`; a separate module, because only raw data needs pyarrow.

In: a `Call`. Out: the columns with types, roles and counts as a table or JSON, and the exit status.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from penstock.cli.arguments import one_or_all, read_declaration
from penstock.cli.next_command import can_train, has_model_fields, repeat_words, suggest_next
from penstock.cli.terminal import (
    format_count,
    format_value,
    output_width,
    print_classes,
    print_notes,
    print_table,
    print_warning,
)
from penstock.errors import OptionError
from penstock.foundation.terminal import escape, shorten
from penstock.foundation.wording import format_size
from penstock.jobs.check.inspect_raw import RawInspection, inspect_raw
from penstock.plan.planner import PlanOverrides
from penstock.settings.command_line import Call
from penstock.settings.commands import InspectOptions
from penstock.settings.groups import TextFiles

_MAX_COLUMNS: Final = 1_000
_EXAMPLE_CHARS: Final = 40


def run(call: Call) -> int:
    """Inspect, print, and return the exit status."""
    options = call.read(InspectOptions)
    for each in InspectOptions.list_settings():
        if each.name != "head" and each.name in options.given:
            raise OptionError(
                each.flag,
                field=each.name,
                expected="TFRecords or a data set",
                got="raw data",
                advice="Convert it first: 'penstock convert'.",
            )
    declared = read_declaration(call)
    overrides = PlanOverrides(
        types=declared.types, target=declared.target, weight=declared.weight, id=declared.id
    )
    head = options.head
    found = inspect_raw(one_or_all(call.arguments), overrides, call.read(TextFiles), head)
    if call.common.json:
        form = found.to_json()
        print(json.dumps({**form, "head": list(found.rows[:head])} if head else form))
    else:
        _print(found, head)
    words = repeat_words(call, ["--head"])
    fields = {each.name: each.field for each in found.plan}
    if has_model_fields(fields) and can_train():
        suggest_next(call, "train", *words)
    else:
        suggest_next(call, "convert", *words, "--plan")
    return 0


def _print(found: RawInspection, num_rows: int) -> None:
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
    print_classes(found.classes)
    for number, row in enumerate(found.rows[:num_rows], 1):
        _print_row(number, row)
    print_notes(found.notes, found.cautions)
    for warning in found.plan.warnings:
        print_warning(warning)
    more = "" if found.is_whole else "the first "
    size = "" if found.num_bytes is None else f", {format_size(found.num_bytes)}"
    print(f"{more}{format_count(found.num_rows, 'row')} of {escape(found.name)}{size}")


def _print_row(number: int, row: Mapping[str, object]) -> None:
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
