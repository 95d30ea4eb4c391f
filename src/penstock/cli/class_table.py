"""The table of code and class of each target, for commands that show data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.cli.terminal import print_table
from penstock.foundation.terminal import escape
from penstock.transform.class_codes import MAX_SHOWN, list_class_rows


def print_classes(found: Mapping[str, Sequence[Any]]) -> None:
    """Print the codes that models get for the classes of each target; an empty line follows each table."""
    for name, classes in found.items():
        rows = [(code, escape(label)) for code, label in list_class_rows(classes)]
        print_table(("code", f"class of {escape(name)}"), rows, right=("code",))
        if len(classes) > MAX_SHOWN:
            print(f"and {len(classes) - MAX_SHOWN:,} more classes")
        print()
