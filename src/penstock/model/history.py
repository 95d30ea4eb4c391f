"""What each epoch came to, as `history.csv`.

In: a row an epoch, loss and metrics by name. Out: the file, whole at any moment, and its rows again.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from penstock.errors import StateError
from penstock.storage.atomic import AtomicFile

HISTORY_NAME: Final = "history.csv"

Row = Mapping[str, float]


def write_history(folder: Path, rows: Sequence[Row]) -> None:
    """Write the rows, in place of those that are there.

    Raises:
        WriteError: The disk is full, or fails.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with AtomicFile(folder / HISTORY_NAME, overwrite=True) as file:
        file.write(text.getvalue().encode())


def read_history(folder: Path) -> list[dict[str, float]]:
    """Return the rows; none, if there is no file.

    Raises:
        StateError: It is not as it was written.
    """
    path = folder / HISTORY_NAME
    if not path.is_file():
        return []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [
                {name: _as_number(cell) for name, cell in row.items() if cell} for row in csv.DictReader(file)
            ]
    except (ValueError, AttributeError, csv.Error) as error:
        raise StateError("history", path=path, expected="numbers by name", got=str(error)) from None


def _as_number(cell: str) -> float:
    return int(cell) if cell.lstrip("-").isdigit() else float(cell)
