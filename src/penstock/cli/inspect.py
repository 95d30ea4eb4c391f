"""`penstock inspect`: what is in files that nobody described."""

from __future__ import annotations

import argparse
import json
import math
import shlex
from collections.abc import Iterable
from typing import Any

import numpy as np

from penstock.cli.making import summarise_fields, write_making
from penstock.cli.planning import add_declaring, read_declaration
from penstock.cli.reading import add_json, add_reading, read_options
from penstock.cli.terminal import (
    ProgressBar,
    format_count,
    format_size,
    format_value,
    print_message,
    print_table,
)
from penstock.decode.sample import Sample
from penstock.errors import OptionError
from penstock.foundation.terminal import escape, shorten, terminal_width
from penstock.jobs.check.file_check import FileCheck
from penstock.jobs.check.inspect import Inspection, InspectOptions, inspect, read_schema
from penstock.jobs.check.tensorflow_code import write_parser
from penstock.schema.array import Sequence
from penstock.schema.field import Field
from penstock.schema.survey import FieldSurvey, ListSurvey

SUMMARY = "show what is in TFRecord files"
DESCRIPTION = """\
Show what is in TFRecord files that anybody wrote: their fields with type, lengths and an example, counts,
sizes and compression; of a folder with a manifest, also how it was made, and statistics of its fields. Reads
every byte once, but for --compare and --pipeline. Exit status 1 if a file is damaged or no TFRecord."""
EXAMPLE = "penstock inspect pets/ --head 2 --tensor mask:64x64:uint8 --target adopted"

_PAYLOADS = {
    "example": " (Examples)",
    "sequence_example": " (SequenceExamples)",
    "other": " (no Examples)",
    "empty": "",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    add_reading(parser)
    parser.add_argument(
        "--head", type=_parse_number, default=0, metavar="N", help="show the first N samples as well"
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--compare",
        metavar="OLD",
        help="say what changed since the data set OLD, and whether its records read with the schema here, "
        "and nothing else; exit status 1 if they do not",
    )
    instead.add_argument(
        "--tf",
        action="store_true",
        help="print Python code that parses the records with TensorFlow, and nothing else; with --pipeline, "
        "code that makes batches of them",
    )
    parser.add_argument(
        "--pipeline",
        metavar="FILE",
        help="with --tf: a fitted pipeline, as Pipeline.save writes it, which the code then carries out by "
        "TensorFlow's operations alone",
    )
    parser.add_argument(
        "--split",
        metavar="NAME",
        help="with --pipeline: whose files the code reads; train, or the only one, if not given",
    )
    add_declaring(parser)
    add_json(parser)


def _parse_number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 0, got {text!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Inspect, print, and return the exit status."""
    options = InspectOptions(
        read=read_options(args), num_samples=args.head, declaration=read_declaration(args)
    )
    if args.compare is not None:
        return _compare(args, options)
    for name, needed in (("pipeline", "tf"), ("split", "pipeline")):
        if getattr(args, name) is not None and not getattr(args, needed):
            raise OptionError(f"--{name}", expected=f"--{needed} beside it", got="none")
    if args.pipeline is not None:
        from penstock.jobs.check.tensorflow_code import write_graph  # noqa: PLC0415 - 0.1 s that no other command has to spend

        print(write_graph(args.paths, args.pipeline, args.split, options), end="")
        return 0
    with ProgressBar("inspect") as bar:
        found = inspect(args.paths, options, bar.show)
    if args.tf:
        print(write_parser(found.schema, found.survey.payload), end="")
    elif args.json:
        print(json.dumps(_to_json(found), allow_nan=False))
    else:
        print_inspection(found)
    if not found.faults:
        return 0
    num_bad = sum(bool(file.faults) for file in found.files)
    faults, files = format_count(len(found.faults), "fault"), format_count(len(found.files), "file")
    print_message(f"{faults} in {num_bad} of {files}. Run 'penstock verify {shlex.join(args.paths)}'.")
    return 1


def _compare(args: argparse.Namespace, options: InspectOptions) -> int:
    old = read_schema(args.compare, InspectOptions(read=options.read))
    found = old.compare(read_schema(args.paths, options))
    if args.json:
        changes = [
            {"field": change.field, "what": change.what, "reads": change.is_readable, "why": change.why}
            for change in found.changes
        ]
        print(json.dumps({"reads": found.is_readable, "changes": changes}))
    else:
        print("\n".join(escape(line) for line in str(found).splitlines()))
    return 0 if found.is_readable else 1


def print_inspection(found: Inspection) -> None:
    """Print the fields, the first samples if they are wanted, and the sums."""
    has_roles = any(field.role != "input" for field in found.schema.values())
    statistics = summarise_fields(found.manifest)
    header = ["field", "type", *(["role"] if has_roles else []), "kind", "values", "missing"]
    header += ["statistics", "example"] if statistics else ["example"]
    fields = dict(found.schema)
    examples: Sample = {}
    for sample in reversed(found.samples):
        examples |= sample
    rows = [
        [
            *_row(name, entry, fields.get(name), has_roles),
            *([statistics.get(name, "")] if statistics else []),
            "–" if name not in examples else format_value(examples[name]),
        ]
        for name, entry in found.entries.items()
    ]
    if rows:
        print_table(header, rows, right=("missing",))
        print()
    for number in range(found.num_samples):
        _print_sample(found, number)
    if len(found.splits) > 1:
        print("; ".join(f"{name}: {_sum_up(files)}" for name, files in found.splits.items()))
    compression = {"none": "not compressed", "mixed": "some compressed"}.get(
        found.compression, found.compression
    )
    records = format_count(found.survey.records, "record") + _PAYLOADS[found.survey.payload]
    files = format_count(len(found.files), "file")
    print(f"{files}, {records}, {format_size(found.num_bytes)}, {compression}")
    if found.manifest is not None:
        print("\n".join(write_making(found.manifest)))


def _row(name: str, entry: FieldSurvey | ListSurvey, field: Field | None, has_roles: bool) -> list[str]:
    values = entry.steps if isinstance(entry, ListSurvey) else entry
    return [
        escape(name) or "''",
        "?" if field is None else field.type_name,
        *([] if not has_roles else ["" if field is None else field.role]),
        values.kind or "none",
        _describe(field, entry),
        f"{entry.missing:,}",
    ]


def _describe(field: Field | None, entry: FieldSurvey | ListSurvey) -> str:
    """Say how many values a record holds: by the field where its type says it, else by what was counted."""
    if isinstance(entry, ListSurvey):
        steps = _write_range(entry.min_steps, entry.max_steps)
        return f"{steps} steps" if field is None else field.describe().replace("variable", steps, 1)
    if field is not None and not isinstance(field, Sequence):
        return field.describe()
    lengths = _write_range(entry.min_len, entry.max_len)
    return f"{lengths} values" if field is None else f"{lengths} {field.dtype}"


def _write_range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _sum_up(files: Iterable[FileCheck]) -> str:
    records = [file.num_sound for file in files]
    return f"{format_count(sum(records), 'record')} in {format_count(len(records), 'file')}"


def _print_sample(found: Inspection, number: int) -> None:
    width = terminal_width()
    if number < len(found.payloads):
        payload = found.payloads[number]
        text = "".join(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in payload[:width])
        print(
            f"payload {number + 1} ({format_size(len(payload))}):",
            shorten(text, max(20, width - 24)),
            end="\n\n",
        )
    if number < len(found.samples):
        sample = {escape(name) or "''": format_value(value) for name, value in found.samples[number].items()}
        indent = max(map(len, sample), default=0)
        print(f"sample {number + 1}" if sample else f"sample {number + 1}: no fields")
        for name, value in sample.items():
            print(f"  {name:{indent}}  {shorten(value, max(20, width - indent - 4))}")
        print()


def _to_json(found: Inspection) -> dict[str, Any]:
    form = found.to_json()
    if found.num_samples:
        items = found.payloads or found.samples
        form["head"] = [_plain(item) for item in items[: found.num_samples]]
    return form


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it; byte strings by what they are."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return format_value(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
