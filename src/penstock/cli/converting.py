"""What `penstock convert` does with its arguments; loaded only when it runs, for it needs pyarrow.

In: parsed arguments. Out: a data set, and a summary of it, or the plan.
"""

from __future__ import annotations

import argparse
import gc
import json
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final

from penstock.cli.overrides import read_overrides
from penstock.cli.terminal import (
    ProgressBar,
    format_count,
    format_duration,
    format_size,
    print_message,
    print_table,
)
from penstock.errors import OptionError
from penstock.foundation.terminal import escape
from penstock.jobs.convert.convert import Converted, plan_conversion, run_conversion
from penstock.jobs.convert.table_file import TABLE_SUFFIXES, write_table
from penstock.plan.plan_file import dump_yaml
from penstock.plan.planner import PlanOverrides
from penstock.shards.conversion import Progress
from penstock.shards.options import ConvertOptions, make_options

_CHOICES: Final = (
    *("split", "group", "stratify", "split_by", "time", "seed", "num_shards", "compression", "resize"),
    *("workers", "on_error", "max_rejects", "delimiter", "encoding", "nan", "short_rows"),
)

_OBJECTS_BETWEEN: Final = 200_000
"""New objects after which unused ones are looked for; Python's own number is 700."""

_MOST_FIELDS: Final = 1_000
"""Fields that are printed; more are a page that hides the splits and the notes after it."""

_NOT_WRITTEN: Final = (".csv", ".tsv", ".json", ".jsonl", ".txt")


def run_convert(args: argparse.Namespace) -> int:
    """Convert, print, and return the exit status."""
    if args.plan:
        return _print_plan(args)
    *sources, out = args.paths or [None]
    if not sources:
        raise OptionError(
            "arguments",
            expected="SOURCE and OUT",
            got="one" if args.paths else "none",
            advice="Say 'penstock convert pets.csv pets/'.",
        )
    source = sources[0] if len(sources) == 1 else sources
    if out.endswith(TABLE_SUFFIXES):
        return _write_table(source, out, args)
    if out.lower().endswith(_NOT_WRITTEN):
        raise OptionError(
            "OUT",
            path=out,
            expected=f"a folder, or a name that ends in {' or '.join(TABLE_SUFFIXES)}",
            got=f"a name that ends in {out[out.rindex('.') :]!r}",
            advice=f"Say {out[: out.rindex('.')] + '.parquet'!r}.",
        )
    told, options = _read_arguments(args)
    began = time.monotonic()
    display = ConversionDisplay()
    try:
        with display, _rare_collections():
            done = run_conversion(source, out, told, options, display.tell)
    except KeyboardInterrupt as error:
        error.add_note("To continue, run the same command with --resume.")
        raise
    if args.json:
        print(json.dumps(_to_json(done)))
    else:
        print_converted(done, time.monotonic() - began)
    return 0


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Let Python look for unused objects less often.

    100,000 columns are millions of objects, of which the usual collections free none: they took a quarter of
    the time. Other conversions have too few objects to need any.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(_OBJECTS_BETWEEN, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def _read_arguments(args: argparse.Namespace) -> tuple[PlanOverrides, ConvertOptions]:
    choices: dict[str, Any] = {
        name: getattr(args, name) for name in _CHOICES if getattr(args, name) is not None
    }
    if args.shard_size is not None:
        choices["shard_bytes"] = args.shard_size
    if args.missing:
        choices["missing"] = ("", *args.missing)
    options = make_options(
        **choices,
        shuffle=not args.no_shuffle,
        overwrite=args.overwrite,
        resume=args.resume,
    )
    return read_overrides(args), options


def _print_plan(args: argparse.Namespace) -> int:
    told, options = _read_arguments(args)
    # OUT may be there or not: a plan writes nothing.
    sources = args.paths[:-1] if len(args.paths) > 1 else args.paths
    if not sources:
        raise OptionError("arguments", expected="SOURCE", got="none")
    plan = plan_conversion(sources[0] if len(sources) == 1 else sources, told, options)
    if args.json:
        columns = {
            each.column: {"reason": each.reason, "warnings": list(each.warnings)} for each in plan.columns
        }
        print(json.dumps({"plan": plan.to_form(), "columns": columns, "dropped": dict(plan.dropped)}))
    else:
        print(dump_yaml(plan), end="")
    return 0


def _write_table(source: Any, out: str, args: argparse.Namespace) -> int:
    if _read_arguments(args) != (PlanOverrides(), ConvertOptions(overwrite=args.overwrite)):
        raise OptionError(
            "options",
            path=out,
            expected="--overwrite and --json alone where a data set goes back to a table",
            got="others",
            advice="Convert to another data set first, and that to the table.",
        )
    with ProgressBar("convert") as bar:
        done = write_table(source, out, overwrite=args.overwrite, on_progress=bar.show)
    if args.json:
        print(json.dumps({"out": out, "rows": done.num_rows, "bytes": done.num_bytes}))
    else:
        print(f"{format_count(done.num_rows, 'row')}, {format_size(done.num_bytes)} in {escape(out)}")
    return 0


class ConversionDisplay(ProgressBar):
    """A line with rows, speed, splits, rejects and the time that is left."""

    def __init__(self) -> None:
        super().__init__("convert")

    def tell(self, progress: Progress) -> None:
        """Take notice of how far it has come."""
        self.show_line(lambda seconds: _write_line(progress, seconds))


def _write_line(progress: Progress, seconds: float) -> str:
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
    """Print the fields, the splits, and what a person should know."""
    manifest = done.manifest
    fields = [
        [
            escape(name),
            field.type_name,
            field.role,
            field.describe() + (", optional" if field.optional else ""),
        ]
        for name, field in islice(manifest.schema.items(), _MOST_FIELDS)
    ]
    print_table(("field", "type", "role", "values"), fields)
    if num_more := len(manifest.schema) - len(fields):
        place = escape(shlex.quote(str(done.out)))
        print(f"and {format_count(num_more, 'more field')}: 'penstock inspect {place}' lists all.")
    print()
    rows = [
        [name, f"{split.num_records:,}", f"{len(split.shards):,}", format_size(split.num_bytes)]
        for name, split in manifest.splits.items()
    ]
    header = ("split", "records", "shards", "size")
    print_table(header, rows, right=header[1:])
    print()
    for note in _list_notes(done):
        print_message(f"note: {note}")
    took = "" if seconds is None else f" in {seconds:.1f} s"
    counts = f"{format_count(manifest.num_records, 'record')} from {format_count(done.num_rows, 'row')}"
    print(f"{counts}{took}: {escape(shlex.quote(str(done.out)))}")


def _list_notes(done: Converted) -> list[str]:
    notes = list(done.notes)
    split = done.manifest.split
    equal, apart = split.get("equal_rows"), split.get("duplicates")
    if equal and not (apart and split.get("notes")):
        moved = f" ({apart:,} of them were moved there)" if apart else ""
        notes.append(f"{format_count(equal, 'row')} equal to an earlier one, and in its split{moved}")
    rejects = done.manifest.rejects
    if rejects.get("count"):
        place = f", see {rejects['file']}" if rejects.get("file") else ""
        notes.append(f"{format_count(rejects['count'], 'row')} rejected{place}")
    return notes


def _to_json(done: Converted) -> dict[str, Any]:
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
        "notes": _list_notes(done),
    }
