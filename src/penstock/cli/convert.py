"""`penstock convert`: make a data set from raw data, or a table from a data set."""

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

from penstock.cli.next_command import list_paths, name_output, repeat_words, suggest_next, suggest_use
from penstock.cli.option_values import flatten, list_given, put_once, read_declaration
from penstock.cli.terminal import (
    ProgressBar,
    format_count,
    format_duration,
    print_note,
    print_options,
    print_table,
    print_warning,
)
from penstock.errors import OptionError
from penstock.foundation.terminal import escape
from penstock.foundation.wording import format_size
from penstock.jobs.convert.convert import Converted, plan_conversion, run_conversion
from penstock.jobs.convert.table_file import TABLE_SUFFIXES, write_table
from penstock.plan.plan_file import dump_yaml, read_plan
from penstock.plan.planner import PlanOverrides
from penstock.shards.conversion import ConversionProgress
from penstock.shards.options import ConvertOptions, make_options

_OPTIONS: Final = (
    *("split", "group", "stratify", "split_by", "time", "seed", "num_shards", "compression", "resize"),
    *(
        "workers",
        "engine",
        "address",
        "on_error",
        "max_rejects",
        "delimiter",
        "encoding",
        "missing",
        "nan",
        "short_rows",
        "header",
        "sheet",
        "decimal",
        "thousands",
        "files_from",
    ),
)

_COLLECT_EVERY: Final = 200_000
"""New objects between two garbage collections; Python's default is 700."""

_MAX_FIELDS: Final = 1_000
"""Fields that are printed; more would hide the splits and notes that follow."""

_OTHER_TABLES: Final = (".csv", ".tsv", ".json", ".jsonl", ".txt")


def run(args: argparse.Namespace) -> int:
    """Convert, print, and return the exit status."""
    if args.plan:
        return _print_plan(args)
    *sources, out = args.paths or [None]
    if not sources:
        raise OptionError(
            "arguments",
            expected="SOURCE and OUT",
            got="one" if args.paths else "none",
            advice="Run 'penstock convert pets.csv pets/'.",
        )
    source = sources[0] if len(sources) == 1 else sources
    if out.endswith(TABLE_SUFFIXES):
        return _write_table(source, out, args)
    if out.lower().endswith(_OTHER_TABLES):
        raise OptionError(
            "OUT",
            path=out,
            expected=f"a folder, or a name that ends in {' or '.join(TABLE_SUFFIXES)}",
            got=f"a name that ends in {out[out.rindex('.') :]!r}",
            advice=f"Use {out[: out.rindex('.')] + '.parquet'!r}.",
        )
    overrides, options = read_overrides(args), _read_options(args)
    print_options(vars(options))
    start = time.monotonic()
    display = ConversionDisplay()
    try:
        with display, _rare_collections():
            done = run_conversion(source, out, overrides, options, display.update)
    except KeyboardInterrupt as error:
        error.add_note("To continue, run the same command with --resume.")
        raise
    if args.json:
        print(json.dumps(_to_json(done)))
    else:
        print_converted(done, time.monotonic() - start)
    suggest_use(args, [list_paths(args)[-1]], has_target=bool(done.manifest.schema.targets))
    return 0


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Let Python collect garbage less often.

    100,000 columns are millions of objects, none of which a collection can free: the collections took a
    quarter of the time. Other conversions have too few objects to need any.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(_COLLECT_EVERY, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def _read_options(args: argparse.Namespace) -> ConvertOptions:
    given = list_given(args, _OPTIONS)
    if args.shard_size is not None:
        given["shard_bytes"] = args.shard_size
    flags = {name: getattr(args, name) for name in ("overwrite", "resume", "clean")}
    return make_options(**given, shuffle=not args.no_shuffle, **flags)


def read_overrides(args: argparse.Namespace) -> PlanOverrides:
    """Return what the command line and the plan file declare about columns.

    Raises:
        OptionError: A column has two types or two names.
        NoSuchPathError: The plan file does not exist.
        SchemaError: The plan file is not valid.
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


def _print_plan(args: argparse.Namespace) -> int:
    overrides, options = read_overrides(args), _read_options(args)
    # OUT is optional here: a plan writes nothing.
    sources = args.paths[:-1] if len(args.paths) > 1 else args.paths
    if not sources:
        raise OptionError("arguments", expected="SOURCE", got="none")
    plan = plan_conversion(sources[0] if len(sources) == 1 else sources, overrides, options)
    if args.json:
        columns = {
            each.column: {"reason": each.reason, "warnings": list(each.warnings)} for each in plan.columns
        }
        print(json.dumps({"plan": plan.to_form(), "columns": columns, "dropped": dict(plan.dropped)}))
    else:
        print(dump_yaml(plan), end="")
    words = repeat_words(args, {"--plan": 0})
    if len(args.paths) == 1 and args.paths[0] in words:
        words.insert(words.index(args.paths[0]) + 1, name_output(args.paths[0], ""))
    suggest_next(args, "convert", *words)
    return 0


def _write_table(source: Any, out: str, args: argparse.Namespace) -> int:
    given = (read_overrides(args), _read_options(args))
    if given != (PlanOverrides(), ConvertOptions(overwrite=args.overwrite)):
        raise OptionError(
            "options",
            path=out,
            expected="only --overwrite and --json when a data set is converted to a table",
            got="others",
            advice="Convert to another data set first, and convert that to the table.",
        )
    with ProgressBar("convert") as bar:
        done = write_table(source, out, overwrite=args.overwrite, on_progress=bar.show)
    if args.json:
        print(json.dumps({"out": out, "rows": done.num_rows, "bytes": done.num_bytes}))
    else:
        print(f"{format_count(done.num_rows, 'row')}, {format_size(done.num_bytes)} in {escape(out)}")
    suggest_next(args, "convert", list_paths(args)[-1], "--plan")
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
    for note in _list_notes(done):
        print_note(note)
    if warning := _describe_rejects(done):
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


def _describe_rejects(done: Converted) -> str:
    """Return how many rows were rejected; an empty text if none were."""
    rejects = done.manifest.rejects
    if not rejects.get("count"):
        return ""
    where = f", see {rejects['file']}" if rejects.get("file") else ""
    return f"{format_count(rejects['count'], 'row')} rejected{where}"


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
        "notes": [*_list_notes(done), *filter(None, [_describe_rejects(done)])],
    }
