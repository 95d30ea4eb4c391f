"""Arguments of the commands for data: convert, inspect, view, verify, repair and bench.

In: parsers. Out: their arguments and help, and the modules that run the commands. Imports nothing large.
"""

from __future__ import annotations

import argparse
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from penstock.cli.command import Command
from penstock.cli.option_groups import (
    add_columns,
    add_declarations,
    add_json,
    add_model_function,
    add_on_error,
    add_record_files,
    add_splits,
    add_text_files,
)

if TYPE_CHECKING:
    from penstock.batch.options import Shuffling

_PREFIXES: Final = ("", "k", "m", "g", "t")


def _add_convert(parser: argparse.ArgumentParser) -> None:
    parser.usage = "penstock convert [options] SOURCE [SOURCE ...] OUT"
    parser.add_argument("paths", nargs="*", metavar="SOURCE", help="data to convert")
    # For the help alone: argparse gives every word to `paths`, and the last of them is the output.
    parser.add_argument(
        "last", nargs="?", default=argparse.SUPPRESS, metavar="OUT", help="output folder, or a .parquet file"
    )
    parser.add_argument(
        "--plan", action="store_true", help="print an editable plan for the columns, and write nothing"
    )
    add_columns(parser)
    splits = add_splits(parser)
    splits.add_argument("--seed", type=int, metavar="N", help="random seed of splits and order (default: 0)")
    _add_writing(parser.add_argument_group("writing"))
    add_text_files(parser)
    add_json(parser)


def _add_writing(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--no-shuffle", action="store_true", help="keep the order of the rows")
    group.add_argument(
        "--shard-size",
        type=_parse_size,
        metavar="SIZE",
        help="approximate size of a shard, such as 256MB or 1GiB (default: 128MB)",
    )
    group.add_argument(
        "--num-shards", type=int, metavar="N", help="number of shards of the largest split, instead of a size"
    )
    group.add_argument(
        "--compression", choices=("none", "gzip"), help="compression of the shards (default: none)"
    )
    group.add_argument(
        "--resize", type=int, metavar="N", help="shrink images so that the shorter side has N pixels"
    )
    group.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="number of threads, or of tasks on Ray (default: one per core)",
    )
    group.add_argument("--engine", choices=("local", "ray"), help="do the work here, or on a Ray cluster")
    group.add_argument(
        "--address", metavar="HOST:PORT", help="the Ray cluster (default: RAY_ADDRESS, or a new one here)"
    )
    add_on_error(group, "invalid rows", collect=" in OUT/rejects.jsonl")
    group.add_argument("--overwrite", action="store_true", help="replace an existing data set")
    group.add_argument("--resume", action="store_true", help="continue a conversion that was interrupted")
    group.add_argument(
        "--clean", action="store_true", help="remove what interrupted conversions left in an object store"
    )


def _parse_size(text: str) -> int:
    """Return a number of bytes: kB, MB, GB, TB are powers of 1000, KiB, MiB, GiB, TiB powers of 1024."""
    match = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*(?:([kmgt])(i?))?b?", text.strip().lower())
    if match is None or float(match[1]) <= 0:
        raise argparse.ArgumentTypeError(f"expected a size such as 128MB or 1GiB, got {text!r}")
    base = 1024 if match[3] else 1000
    return max(1, int(Fraction(match[1]) * base ** _PREFIXES.index(match[2] or "")))


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    add_record_files(
        parser, "TFRecord files, raw data as for convert, a quoted glob pattern, a folder, or - for stdin"
    )
    parser.add_argument(
        "--head", type=_parse_count, default=0, metavar="N", help="also show the first N records"
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--compare",
        metavar="OLD",
        help="only print the differences from the schema of data set OLD; exit status 1 if its records "
        "cannot be read with the schema of PATH",
    )
    instead.add_argument(
        "--tf",
        action="store_true",
        help="only print Python code that parses the records with TensorFlow; with --pipeline, code that "
        "makes batches",
    )
    instead.add_argument(
        "--code",
        choices=("keras", "tf", "torch"),
        help="only print a complete training script for the data: with Penstock and Keras or torch, or with "
        "TensorFlow alone; see --target",
    )
    parser.add_argument(
        "--pipeline",
        metavar="FILE",
        help="with --tf: a fitted pipeline, as saved by Pipeline.save, to include as TensorFlow operations",
    )
    parser.add_argument(
        "--split",
        metavar="NAME",
        help="with --pipeline: split that the code reads (default: train, or the only one)",
    )
    add_declarations(parser)
    add_text_files(parser, can_store=False, title="reading raw data")
    add_json(parser)


def _parse_count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 0, got {text!r}")
    return int(text)


def _add_view(parser: argparse.ArgumentParser) -> None:
    add_record_files(parser, "a data set, TFRecord files, a quoted glob pattern, or the folder of a run")
    group = parser.add_argument_group("server")
    group.add_argument(
        "--port",
        type=_parse_count,
        default=8765,
        metavar="N",
        help="port; 0 for any free one (default: %(default)s)",
    )
    group.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="NAME",
        help="name or address to listen on (default: %(default)s, which only this machine can reach); others "
        "need the token in the printed address",
    )
    group.add_argument(
        "--allowed-host",
        action="append",
        default=[],
        metavar="NAME",
        help="answer requests under this name of the machine, too, such as vm.example.com; with the token "
        "(can be repeated)",
    )
    add_model_function(
        parser,
        "for predictions of a run of your own model: a Python file and the function that builds it",
    )
    add_declarations(parser)
    parser.add_argument("--json", action="store_true", help="print the address as one JSON object")


def _add_verify(parser: argparse.ArgumentParser) -> None:
    add_record_files(parser)
    add_json(parser)


def _add_repair(parser: argparse.ArgumentParser) -> None:
    parser.usage = "penstock repair [options] PATH [PATH ...] OUT"
    add_record_files(parser)
    # For the help alone: argparse gives every word to `paths`, and `run` takes the last of them.
    parser.add_argument(
        "last",
        nargs="?",
        default=argparse.SUPPRESS,
        metavar="OUT",
        help="output folder, different from the input; created if missing",
    )
    parser.add_argument("--out", metavar="FOLDER", help="output folder, instead of OUT")
    parser.add_argument("--overwrite", action="store_true", help="replace existing files")
    add_json(parser)


def _add_bench(parser: argparse.ArgumentParser) -> None:
    # The defaults come with the loader, which no other help needs.
    from penstock.jobs.bench.options import USUAL_SECONDS, BenchOptions  # noqa: PLC0415

    usual = BenchOptions()
    add_record_files(parser)
    group = parser.add_argument_group("loading")
    group.add_argument("--split", metavar="NAME", help="split to load (default: train, or the only one)")
    group.add_argument(
        "--batch-size",
        type=int,
        default=usual.batch_size,
        metavar="N",
        help="records per batch (default: %(default)s)",
    )
    order = group.add_mutually_exclusive_group()
    order.add_argument(
        "--shuffle",
        nargs="?",
        const=True,
        default=usual.shuffle,
        type=_parse_shuffle,
        metavar="block",
        help="shuffle the whole split (the default), or with 'block' only blocks of neighbouring records",
    )
    order.add_argument(
        "--no-shuffle", action="store_const", dest="shuffle", const=False, help="load in stored order"
    )
    group.add_argument(
        "--seed", type=int, default=usual.seed, metavar="N", help="random seed (default: %(default)s)"
    )
    group.add_argument(
        "--threads", type=int, metavar="N", help="threads that load data (default: one per core)"
    )
    group.add_argument("--cache", metavar="memory|FOLDER", help="keep decoded columns for later epochs")
    values = group.add_mutually_exclusive_group()
    values.add_argument(
        "--pipeline", metavar="FILE", help="a saved pipeline (default: one fitted to the train split)"
    )
    values.add_argument("--no-pipeline", action="store_true", help="load the stored values unchanged")
    group = parser.add_argument_group("measuring")
    group.add_argument(
        "--seconds",
        type=float,
        metavar="X",
        help=f"duration, over as many epochs as needed (default: {USUAL_SECONDS:g})",
    )
    group.add_argument("--batches", type=int, metavar="N", help="maximum number of batches")
    group.add_argument(
        "--consumer-seconds",
        type=float,
        default=usual.consumer_seconds,
        metavar="X",
        help="simulated time that a model spends on each batch (default: %(default)g)",
    )
    add_declarations(parser)
    add_json(parser)


def _parse_shuffle(text: str) -> Shuffling:
    if text == "block":
        return "block"
    if text == "global":
        return "global"
    raise argparse.ArgumentTypeError(f"expected 'block' or no value, got {text!r}; put PATH before --shuffle")


CONVERT: Final = Command(
    module="penstock.cli.convert",
    summary="make a data set from CSV, Parquet, images, TFRecords, …",
    description="""\
Convert raw data to TFRecord shards with a manifest: checked, split without leakage, shuffled, with
statistics, and readable by every TFRecord reader. SOURCE is a CSV, TSV, Parquet, JSON-lines or Arrow file,
several files, a glob pattern, a folder of images, or TFRecords and data sets, which are written again; also
an Excel or .zip file with a table, duckdb:///FILE?query=SQL, or - for standard input. OUT is a folder, which
appears when it is complete, or a .parquet file, to convert a data set back to a table.""",
    example="penstock convert pets.csv pets/ --image photo --target adopted",
    add_arguments=_add_convert,
    main_options="--target --id --image --drop --plan --split --group --on-error --overwrite --resume",
    extra="convert",
)
INSPECT: Final = Command(
    module="penstock.cli.inspect",
    summary="show what TFRecord files and tables contain",
    description="""\
Show what TFRecord files from any writer contain: fields with type, lengths and an example, counts, sizes and
compression. For a folder with a manifest, also show how it was made, and statistics of its fields. Reads
every byte once, except with --compare and --pipeline. Of raw data (CSV, Excel, images, and so on), show what
its columns would become, from the first rows. Exit status 1 if a file is damaged or not a TFRecord file.""",
    example="penstock inspect pets/ --head 2 --tensor mask:64x64:uint8 --target adopted",
    add_arguments=_add_inspect,
    main_options="--head --target --image --text --tensor --code --tf --compare",
)
VIEW: Final = Command(
    module="penstock.cli.view",
    summary="browse a data set, TFRecord files or a run in a web browser",
    description="""\
Show records in a local web page: pictures, texts, numbers and small charts, as cards or as a table; filter,
search, sort, go to a record, see its bytes and checksums, and statistics of every field. Works at once for
data of any size: records are read when they are shown. For a run, also show its predictions and mistakes.
Prints the address to open, and ends with Ctrl-C.""",
    example="penstock view pets/ --port 8765",
    add_arguments=_add_view,
    extra="view",
    main_options="--port --host --target --image --tensor --model",
)
VERIFY: Final = Command(
    module="penstock.cli.verify",
    summary="check every byte of TFRecord files",
    description="""\
Check every byte of TFRecord files: the compressed stream, both CRCs of each record, and whether each payload
parses, if the payloads are Examples. For a folder with a manifest, also check the size, record count and
SHA-256 of every shard, and its indexes. Prints one line per fault with the file, the number of the record and
its byte offset (in the decompressed bytes of a compressed file). Exit status 1 if there are faults.""",
    example="penstock verify pets/",
    add_arguments=_add_verify,
)
REPAIR: Final = Command(
    module="penstock.cli.repair",
    summary="copy the intact records of damaged files",
    description="""\
Write the intact records of TFRecord files to files of the same name and compression in another folder, OUT.
The input is never changed. Damaged bytes are kept in OUT/quarantine, one file per damaged file, and
OUT/quarantine/losses.jsonl lists what was lost and why. Records that the manifest lists but no file contains
also count as lost. Exit status 1 if there are any, or if a file could not be repaired.""",
    example="penstock repair pets/ repaired/",
    add_arguments=_add_repair,
)
BENCH: Final = Command(
    module="penstock.cli.bench",
    summary="measure how fast a data set loads, and find the bottleneck",
    description="""\
Load a data set as training does, shuffled and transformed, and report records and megabytes per second, the
time spent on reading, decoding and transforming, how long the consumer waits, which of these is the
bottleneck, and what to change. The first epoch is reported separately from later ones, which find the files
in memory. Without --consumer-seconds the consumer does nothing: this is the speed of the loader alone.""",
    example="penstock bench pets/ --batch-size 256 --seconds 10 --consumer-seconds 0.02",
    add_arguments=_add_bench,
    main_options="--split --batch-size --shuffle --no-shuffle --threads --cache --seconds --consumer-seconds",
)
