"""What a prediction has made: a table, or a file, and an account of the rows that are not in it.

In: what the job did. Out: `Predictions`, for people and for code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from penstock.errors import PenstockError
from penstock.foundation.wording import count

HEAD_ROWS: Final = 10
"""So many rows are shown."""

_MOST_COLUMNS: Final = 8
_MOST_CHARS: Final = 24
_MOST_NAME_CHARS: Final = 40


@dataclass(frozen=True)
class Predictions:
    """What was predicted.

    Attributes:
        num_rows: How many rows there are predictions of.
        num_skipped: How many rows of the data were left out, as they did not fit.
        out: The file that was written, or None.
        table: The predictions, where no file was written; or None.
        head: The first rows.
        rejected: The errors of the rows left out, under `on_error="collect"`.
        notes: What a person should hear about the data.
        cautions: Those of the notes that tell what predictions depend on, such as a column that is not there.
    """

    num_rows: int
    num_skipped: int
    out: Path | None
    table: pa.Table | None
    head: pa.Table
    rejected: list[PenstockError] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.head.schema.names)

    def to_arrow(self) -> pa.Table:
        """Return the predictions; those that were written are read back, all of them."""
        if self.table is not None:
            return self.table
        path = str(self.out)
        if path.lower().endswith(".parquet"):
            return pq.read_table(path)
        read: Any = pyarrow.csv.read_csv if path.lower().endswith(".csv") else pyarrow.json.read_json
        table: pa.Table = read(path)
        return table

    def to_pandas(self) -> Any:
        """Return the predictions as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def __len__(self) -> int:
        return self.num_rows

    def __repr__(self) -> str:
        skipped = f", {self.num_skipped} skipped" if self.num_skipped else ""
        out = "" if self.out is None else f", out={str(self.out)!r}"
        return f"Predictions({count(self.num_rows, 'row')}{skipped}{out})"

    def __str__(self) -> str:
        names = self.columns[:_MOST_COLUMNS]
        cells = [[_write(value) for value in self.head.column(i).to_pylist()] for i in range(len(names))]
        shown = [[_cut(name, _MOST_NAME_CHARS), *column] for name, column in zip(names, cells, strict=True)]
        widths = [max(map(len, column)) for column in shown]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in zip(*shown, strict=True)
        ]
        rest = [f"… {count(self.num_rows, 'row')}"] if self.num_rows > self.head.num_rows else []
        hidden = len(self.columns) - len(names)
        rest += [f"… {count(hidden, 'column')} more"] if hidden else []
        return "\n".join([*lines, *rest])


def _write(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else _cut(str(value))


def _cut(text: str, most: int = _MOST_CHARS) -> str:
    # Texts come from files: a control character must not reach a terminal.
    plain = text if text.isprintable() else repr(text)
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"
