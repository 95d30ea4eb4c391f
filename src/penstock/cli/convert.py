"""`penstock convert`: raw data to a data set of TFRecord shards, and back to Parquet."""

from __future__ import annotations

import argparse
import re
from fractions import Fraction

from penstock.cli.interrupt import loading
from penstock.cli.planning import add_planning
from penstock.cli.reading import add_json
from penstock.cli.splitting import add_splitting, add_text_files
from penstock.errors import importing

SUMMARY = "make a data set from CSV, Parquet, images, TFRecords, …"
DESCRIPTION = """\
Convert raw data to TFRecord shards that describe themselves: checked, split without leakage, shuffled,
with statistics, readable by every TFRecord program. SOURCE is a CSV, TSV, Parquet, JSON-lines or Arrow
file; several files, or a glob; a folder of images; or TFRecords and data sets, which are written anew. OUT
is a folder, which appears when it is complete; or a .parquet file, to which a data set goes back."""
EXAMPLE = "penstock convert pets.csv pets/ --image photo --target adopted"

_PREFIXES = ("", "k", "m", "g", "t")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.usage = "penstock convert [options] SOURCE [SOURCE ...] OUT"
    parser.add_argument("paths", nargs="*", metavar="SOURCE", help="what to convert")
    # For the help alone: argparse gives every word to `paths`, and the last of them is the output.
    parser.add_argument(
        "last", nargs="?", default=argparse.SUPPRESS, metavar="OUT", help="the folder to write, or a .parquet"
    )
    parser.add_argument(
        "--plan", action="store_true", help="print what would become of each column, to edit; write nothing"
    )
    parser.add_argument("--plan-file", metavar="FILE", help="do what an edited plan says")
    add_planning(parser)
    splitting = add_splitting(parser)
    splitting.add_argument("--seed", type=int, metavar="N", help="of the splits and the order (default: 0)")
    _add_writing(parser.add_argument_group("writing"))
    add_text_files(parser)
    add_json(parser)


def _add_writing(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--no-shuffle", action="store_true", help="keep the order of the rows")
    group.add_argument(
        "--shard-size",
        type=_parse_size,
        metavar="SIZE",
        help="about how large a shard is, such as 256MB or 1GiB (default: 128MB)",
    )
    group.add_argument("--num-shards", type=int, metavar="N", help="shards of the largest split instead")
    group.add_argument("--compression", choices=("none", "gzip"), help="of the shards (default: none)")
    group.add_argument("--resize", type=int, metavar="N", help="shrink images to a shorter side of N pixels")
    group.add_argument("--workers", type=int, metavar="N", help="how many threads (default: the cores)")
    group.add_argument(
        "--on-error",
        choices=("raise", "skip", "collect"),
        help="what a row gets that does not fit; collect: into OUT/rejects.jsonl (default: raise)",
    )
    group.add_argument("--max-rejects", type=int, metavar="N", help="give up after so many (default: 1000)")
    group.add_argument("--overwrite", action="store_true", help="replace a data set that is there")
    group.add_argument("--resume", action="store_true", help="go on where a run was cut off")


def _parse_size(text: str) -> int:
    """Return a number of bytes: kB, MB, GB, TB are powers of 1000, KiB, MiB, GiB, TiB powers of 1024."""
    match = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*(?:([kmgt])(i?))?b?", text.strip().lower())
    if match is None or float(match[1]) <= 0:
        raise argparse.ArgumentTypeError(f"expected a size such as 128MB or 1GiB, got {text!r}")
    base = 1024 if match[3] else 1000
    return max(1, int(Fraction(match[1]) * base ** _PREFIXES.index(match[2] or "")))


def run(args: argparse.Namespace) -> int:
    """Convert, print, and return the exit status."""
    # What reads raw data is loaded by this command alone: the others work without pyarrow.
    with loading(), importing("penstock convert"):
        from penstock.cli.converting import run_convert  # noqa: PLC0415

    return run_convert(args)
