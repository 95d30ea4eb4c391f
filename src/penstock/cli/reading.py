"""Options that all commands have which read TFRecords.

In: the parser of a command, and later what it parsed. Out: its options, and the objects that a job takes.
"""

from __future__ import annotations

import argparse

from penstock.read.options import ReadOptions


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the paths, and how to read them."""
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="a file, several, a glob in quotes, or a folder"
    )
    usual = ReadOptions()
    group = parser.add_argument_group("reading")
    group.add_argument(
        "--compression",
        choices=("auto", "none", "gzip", "zlib"),
        default=usual.compression,
        help="expect this compression; by default it is found by the bytes of each file",
    )
    group.add_argument(
        "--max-record-bytes",
        type=int,
        default=usual.max_record_bytes,
        metavar="N",
        help="take a larger record for damage (default: %(default)s)",
    )
    group.add_argument(
        "--allow-trailing-zeros",
        action="store_true",
        help="take zeros at the end of a file for its end, as preallocated files have them",
    )


def read_options(args: argparse.Namespace) -> ReadOptions:
    """Return how to read."""
    return ReadOptions(
        compression=args.compression,
        max_record_bytes=args.max_record_bytes,
        allow_trailing_zeros=args.allow_trailing_zeros,
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object, for machines")
