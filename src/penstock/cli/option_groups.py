"""Options that several commands share: reading, declaring fields, splitting, text files, JSON.

In: the parser of a command. Out: the options added to it; `option_values.py` turns what was parsed into the
objects that jobs take. Imports nothing large, for the help needs this module.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

# What `add_argument` can be called on.
Options: TypeAlias = argparse._ActionsContainer

FIELD_TYPES: Final = ("image", "text", "category", "number", "sequence", "bytes")
ON_ERROR: Final = ("raise", "skip", "collect")
# NAME[:64x64x3[:float32[:raw]]]; a name may contain colons itself.
_TENSOR = re.compile(
    r"(?P<name>.+?)(:(?P<shape>\d+(x\d+)*)(:(?P<dtype>\w+))?(:(?P<encoding>auto|list|raw))?)?", re.DOTALL
)


def add_json(parser: Options) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")


def add_record_files(
    parser: argparse.ArgumentParser, what: str = "TFRecord files, a quoted glob pattern, or a folder"
) -> None:
    """Add the paths of TFRecord files, and how to read them; `what` describes the paths."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help=what)
    group = parser.add_argument_group("reading")
    group.add_argument(
        "--compression",
        choices=("auto", "none", "gzip", "zlib"),
        help="expected compression (default: auto, detected from the bytes of each file)",
    )
    group.add_argument(
        "--max-record-bytes",
        type=int,
        metavar="N",
        help="treat larger records as damaged (default: 1073741824)",
    )
    group.add_argument(
        "--allow-trailing-zeros",
        action="store_true",
        help="ignore zeros at the end of a file, as preallocated files have them",
    )
    add_store_cache(group)


def add_store_cache(parser: Options) -> None:
    """Add `--store-cache-bytes`."""
    parser.add_argument(
        "--store-cache-bytes",
        type=int,
        metavar="N",
        help="keep up to N bytes of object stores on the local disk, in the folder that PENSTOCK_CACHE names "
        "or in ~/.cache/penstock (default: PENSTOCK_STORE_CACHE_BYTES, or none)",
    )


def add_declarations(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add options that declare types and roles of columns or fields."""
    group = parser.add_argument_group(
        "columns and fields", "NAMES are separated by commas. Each option is repeatable."
    )
    for each in FIELD_TYPES:
        _add_list(group, f"--{each}", _split_names, "NAMES", f"fields of type {each}")
    _add_list(
        group,
        "--tensor",
        _parse_tensors,
        "NAME[:SHAPE[:DTYPE]]",
        "arrays of one fixed shape, such as embedding or mask:64x64:uint8",
    )
    _add_list(group, "--target", _split_names, "NAMES", "fields to predict")
    group.add_argument("--weight", metavar="NAME", help="field with the weight of each row")
    group.add_argument("--id", metavar="NAME", help="field that identifies each row")
    return group


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add the same options, and those that leave out or rename columns of raw data."""
    group = add_declarations(parser)
    _add_list(group, "--drop", _split_names, "NAMES", "columns to leave out")
    _add_list(group, "--rename", _parse_renames, "OLD=NEW", "new names for columns")
    parser.add_argument("--plan-file", metavar="FILE", help="use an edited plan (see convert --plan)")


def add_splits(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add how rows are divided into splits."""
    group = parser.add_argument_group("splits")
    group.add_argument(
        "--split",
        metavar="SHARES",
        help="share of each split (default: train=0.8,validation=0.1,test=0.1)",
    )
    group.add_argument("--group", metavar="COLUMN", help="keep rows with the same value in one split")
    group.add_argument(
        "--stratify",
        nargs="?",
        const=True,
        metavar="FIELD",
        help="give each value of FIELD the same shares (default FIELD: the target)",
    )
    group.add_argument("--split-by", metavar="COLUMN", help="column that names the split of each row")
    group.add_argument("--time", metavar="COLUMN", help="train on the oldest rows, test on the newest ones")
    return group


def add_text_files(
    parser: argparse.ArgumentParser, *, can_store: bool = True, title: str = "reading"
) -> None:
    """Add how text files are read and, for commands that store the rows, what NaN means."""
    group = parser.add_argument_group(title)
    group.add_argument(
        "--delimiter",
        metavar="CHAR",
        help=r"delimiter of CSV files, '\t' for a tab (default: detected)",
    )
    group.add_argument(
        "--header",
        choices=("first", "none"),
        help="line of CSV files with the names of the columns; none: columns are named column_1, column_2, … "
        "(default: first)",
    )
    group.add_argument("--sheet", metavar="NAME", help="sheet of Excel files (default: the first one)")
    group.add_argument("--encoding", metavar="NAME", help="encoding of CSV files (default: utf-8)")
    group.add_argument(
        "--missing",
        action="append",
        metavar="TEXT",
        help="text that marks a missing cell, such as NA; repeatable",
    )
    group.add_argument(
        "--decimal",
        choices=(".", ","),
        help="decimal separator of numbers in texts (default: detected for each column)",
    )
    group.add_argument(
        "--thousands",
        choices=(",", ".", " ", "'"),
        help="separator of thousands of numbers in texts (default: detected for each column)",
    )
    if can_store:
        group.add_argument(
            "--nan",
            choices=("missing", "value"),
            help="meaning of NaN in columns of single numbers (default: missing)",
        )
    group.add_argument(
        "--short-rows",
        choices=("raise", "fill"),
        help="CSV rows with too few cells: raise an error, or fill with missing cells (default: raise)",
    )
    group.add_argument(
        "--files-from",
        action="append",
        metavar="URL",
        help="folder or URL whose files cells may name, besides those beside the table; repeatable",
    )


def add_on_error(parser: Options, what: str, *, collect: str) -> None:
    """Add what happens to rows that cannot be read.

    Args:
        parser: The parser or group.
        what: Name of the rows, such as "invalid rows".
        collect: Where "collect" puts them.
    """
    parser.add_argument(
        "--on-error",
        choices=ON_ERROR,
        help=f"{what}: raise an error, skip them, or skip and collect them{collect} (default: raise)",
    )
    parser.add_argument(
        "--max-rejects", type=int, metavar="N", help="stop after N skipped rows (default: 1000)"
    )


def add_model_function(parser: Options, text: str) -> None:
    """Add `--model`, which names a function in a Python file."""
    parser.add_argument("--model", metavar="FILE:FUNCTION", help=text)


def _add_list(
    group: argparse._ArgumentGroup, flag: str, parse: Callable[[str], Any], metavar: str, text: str
) -> None:
    group.add_argument(flag, action="append", default=[], type=parse, metavar=metavar, help=text)


def _split_names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _parse_tensors(text: str) -> list[tuple[str, dict[str, Any]]]:
    return [_parse_tensor(part) for part in _split_names(text)]


def _parse_tensor(text: str) -> tuple[str, dict[str, Any]]:
    match = _TENSOR.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"expected NAME[:SHAPE[:DTYPE]], such as mask:64x64:uint8, got {text!r}"
        )
    attributes: dict[str, Any] = {}
    if match["shape"] is not None:
        attributes["shape"] = [int(dim) for dim in match["shape"].split("x")]
    attributes |= {key: match[key] for key in ("dtype", "encoding") if match[key] is not None}
    return match["name"], attributes


def _parse_renames(text: str) -> list[tuple[str, str]]:
    renames = []
    for part in _split_names(text):
        old, equals, new = part.partition("=")
        if not (old and equals and new):
            raise argparse.ArgumentTypeError(f"expected OLD=NEW, got {part!r}")
        renames.append((old, new))
    return renames
