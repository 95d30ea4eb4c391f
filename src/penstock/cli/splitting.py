"""Options of commands that read raw data: how rows are split, and how text files are read.

In: the parser of a command. Out: its options.
"""

from __future__ import annotations

import argparse


def add_splitting(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add how rows are split."""
    group = parser.add_argument_group("splits")
    group.add_argument(
        "--split", metavar="SHARES", help="shares of the splits (default: train=0.8,validation=0.1,test=0.1)"
    )
    group.add_argument("--group", metavar="COLUMN", help="rows of one value stay in one split")
    group.add_argument(
        "--stratify",
        nargs="?",
        const=True,
        metavar="FIELD",
        help="the same shares for each value of the target, or of FIELD",
    )
    group.add_argument("--split-by", metavar="COLUMN", help="the column names the split of each row")
    group.add_argument("--time", metavar="COLUMN", help="the oldest rows train, the newest test")
    return group


def add_text_files(parser: argparse.ArgumentParser, *, can_store: bool = True) -> None:
    """Add how text files are read, and where rows are converted, what NaN means in raw data."""
    group = parser.add_argument_group("reading")
    group.add_argument(
        "--delimiter",
        metavar="CHAR",
        help=r"the character between the cells of a CSV, '\t' for a tab (default: a comma; a tab in a .tsv)",
    )
    group.add_argument("--encoding", metavar="NAME", help="of a CSV (default: utf-8)")
    group.add_argument(
        "--missing",
        action="append",
        metavar="WORD",
        help="a cell that means nothing is there, beside an empty one; may be given again",
    )
    if can_store:
        group.add_argument(
            "--nan",
            choices=("missing", "value"),
            help="what NaN means in a column of single numbers (default: a missing value)",
        )
    group.add_argument(
        "--short-rows", choices=("raise", "fill"), help="what a row of a CSV with too few cells gets"
    )
