"""`penstock convert`: make a data set from raw data, or a table from a data set."""

from __future__ import annotations

import gc
import json
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final

from penstock.cli.arguments import one_or_all, read_declaration
from penstock.cli.next_command import (
    has_model_fields,
    list_paths,
    name_output,
    repeat_words,
    suggest_next,
    suggest_use,
)
from penstock.cli.terminal import (
    ProgressBar,
    format_count,
    format_duration,
    print_notes,
    print_options,
    print_table,
    print_warning,
)
from penstock.errors import OptionError
from penstock.foundation.terminal import escape
from penstock.foundation.wording import format_size
from penstock.jobs.convert.convert import Converted, plan_conversion, run_conversion
from penstock.jobs.convert.table_file import TABLE_SUFFIXES, write_table
from penstock.plan.plan_file import dump_yaml
from penstock.plan.planner import PlanOverrides
from penstock.settings.advice import to_flags
from penstock.settings.command_line import Call, Common
from penstock.settings.commands import Planning
from penstock.settings.conversion import ConvertOptions
from penstock.settings.groups import Output
from penstock.shards.conversion import ConversionProgress

_COLLECT_EVERY: Final = 200_000
"""New objects between two garbage collections; Python's default is 700."""

_MAX_FIELDS: Final = 1_000
"""Fields that are printed; more would hide the splits and notes that follow."""

_OTHER_TABLES: Final = (".csv", ".tsv", ".json", ".jsonl", ".txt")


def run(call: Call) -> int:
    """Convert, print, and return the exit status."""
    if call.read(Planning).prints_plan:
        return _print_plan(call)
    *sources, out = call.arguments or [""]
    if not sources:
        raise OptionError(
            "arguments",
            expected="SOURCE and OUT",
            got="one" if call.arguments else "none",
            advice="Run 'penstock convert pets.csv pets/'.",
        )
    if out.endswith(TABLE_SUFFIXES):
        return _write_table(one_or_all(sources), out, call)
    if out.lower().endswith(_OTHER_TABLES):
        raise OptionError(
            "OUT",
            path=out,
            expected=f"a folder, or a name that ends in {' or '.join(TABLE_SUFFIXES)}",
            got=f"a name that ends in {out[out.rindex('.') :]!r}",
            advice=f"Use {out[: out.rindex('.')] + '.parquet'!r}.",
        )
    overrides, options = _declare_columns(call), call.read(ConvertOptions)
    print_options(options.to_json())
    start = time.monotonic()
    display = ConversionDisplay()
    try:
        with display, _rare_collections():
            done = run_conversion(one_or_all(sources), out, overrides, options, display.update)
    except KeyboardInterrupt as error:
        error.add_note("To continue, run the same command with --resume.")
        raise
    if call.common.json:
        print(json.dumps(_to_json(done)))
    else:
        print_converted(done, time.monotonic() - start)
    suggest_use(call, [list_paths(call)[-1]], has_target=has_model_fields(done.manifest.schema))
    return 0


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Let Python collect garbage less often.

    100,000 columns are millions of objects that no collection can free: the collections took a
    quarter of the time. Other conversions have too few objects to need any.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(_COLLECT_EVERY, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def _declare_columns(call: Call) -> PlanOverrides:
    declared = read_declaration(call)
    return PlanOverrides(types=declared.types, target=declared.target, weight=declared.weight, id=declared.id)


def _print_plan(call: Call) -> int:
    overrides, options = _declare_columns(call), call.read(ConvertOptions)
    # OUT is optional here: a plan writes nothing.
    sources = call.arguments[:-1] if len(call.arguments) > 1 else call.arguments
    if not sources:
        raise OptionError("arguments", expected="SOURCE", got="none")
    plan = plan_conversion(one_or_all(sources), overrides, options)
    if call.common.json:
        columns = {
            each.column: {"reason": each.reason, "warnings": [*map(to_flags, each.warnings)]}
            for each in plan.columns
        }
        print(
            json.dumps(
                {
                    "plan": plan.to_form(),
                    "columns": columns,
                    "dropped": {name: to_flags(why) for name, why in plan.dropped.items()},
                }
            )
        )
    else:
        print(dump_yaml(plan, to_flags), end="")
    words = repeat_words(call, ["--plan"])
    if len(call.arguments) == 1 and call.arguments[0] in words:
        words.insert(words.index(call.arguments[0]) + 1, name_output(call.arguments[0], ""))
    suggest_next(call, "convert", *words)
    return 0


def _write_table(source: Any, out: str, call: Call) -> int:
    common = {each.flag for each in Common.list_settings()}
    others = [flag for flag in call.values if flag not in (*common, "--overwrite")]
    if others:
        raise OptionError(
            "options",
            path=out,
            expected="only --overwrite and --json when a data set is converted to a table",
            got=" ".join(others),
            advice="Convert to another data set first, and convert that to the table.",
        )
    with ProgressBar("convert") as bar:
        overwrite = call.read(Output).overwrite
        done = write_table(source, out, overwrite=overwrite, on_progress=bar.show)
    if call.common.json:
        print(json.dumps({"out": out, "rows": done.num_rows, "bytes": done.num_bytes}))
    else:
        print(f"{format_count(done.num_rows, 'row')}, {format_size(done.num_bytes)} in {escape(out)}")
    suggest_next(call, "convert", list_paths(call)[-1], "--plan")
    return 0


class ConversionDisplay(ProgressBar):
    """One line with rows, speed, splits, rejects and the remaining time."""

    def __init__(self) -> None:
        super().__init__("convert")

    def update(self, progress: ConversionProgress) -> None:
        """Show the progress."""
        self.enter(progress.stage)
        self.show_line(lambda seconds: _format_progress(progress, seconds))


def _format_progress(progress: ConversionProgress, seconds: float) -> str:
    rate = progress.num_bytes / seconds if seconds else 0.0
    parts = [f"{progress.stage} {progress.num_rows:,} rows"]
    sizes = format_size(progress.num_bytes)
    if progress.total_bytes:
        sizes += f" of {format_size(progress.total_bytes)}"
    parts.append(f"{sizes}  {format_size(rate)}/s")
    if progress.total_bytes and rate:
        parts.append(f"{format_duration((progress.total_bytes - progress.num_bytes) / rate)} left")
    parts += [f"{name} {count:,}" for name, count in progress.splits.items()]
    if progress.num_rejects:
        parts.append(f"{progress.num_rejects:,} rejected")
    return "  ".join(parts)


def print_converted(done: Converted, seconds: float | None = None) -> None:
    """Print the fields, the splits and the notes."""
    manifest = done.manifest
    fields = [
        [
            escape(name),
            field.type_name,
            field.role,
            field.describe() + (", optional" if field.optional else ""),
        ]
        for name, field in islice(manifest.schema.items(), _MAX_FIELDS)
    ]
    print_table(("field", "type", "role", "values"), fields)
    if num_more := len(manifest.schema) - len(fields):
        folder = escape(shlex.quote(str(done.out)))
        print(f"and {format_count(num_more, 'more field')}: 'penstock inspect {folder}' lists all.")
    print()
    rows = [
        [name, f"{split.num_records:,}", f"{len(split.shards):,}", format_size(split.num_bytes)]
        for name, split in manifest.splits.items()
    ]
    header = ("split", "records", "shards", "size")
    print_table(header, rows, right=header[1:])
    print()
    print_notes(_list_notes(done), done.cautions)
    if warning := done.describe_rejects():
        print_warning(warning)
    took = "" if seconds is None else f" in {seconds:.1f} s"
    counts = f"{format_count(manifest.num_records, 'record')} from {format_count(done.num_rows, 'row')}"
    print(f"{counts}{took}: {escape(shlex.quote(str(done.out)))}")


def _list_notes(done: Converted) -> list[str]:
    notes = list(done.notes)
    split = done.manifest.split
    equal, apart = split.get("equal_rows"), split.get("duplicates")
    if equal and not (apart and split.get("notes")):
        moved = f" ({apart:,} of them were moved)" if apart else ""
        notes.append(f"{format_count(equal, 'duplicate row')} kept in the split of the first one{moved}")
    return notes


def _to_json(done: Converted) -> dict[str, object]:
    manifest = done.manifest
    return {
        "out": str(done.out),
        "rows": done.num_rows,
        "records": manifest.num_records,
        "bytes": manifest.num_bytes,
        "splits": {
            name: {"records": split.num_records, "bytes": split.num_bytes, "shards": len(split.shards)}
            for name, split in manifest.splits.items()
        },
        "split": dict(manifest.split),
        "rejects": dict(manifest.rejects),
        "schema": manifest.schema.to_json(),
        "notes": [*map(to_flags, _list_notes(done)), *filter(None, [done.describe_rejects()])],
    }
