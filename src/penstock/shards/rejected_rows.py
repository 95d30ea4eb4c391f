"""Rows that do not fit: raised as errors, or left out, counted and listed.

In: the faults of each block, in order. Out: an error, or the counts for the manifest and the lines of
`rejects.jsonl`, one per rejected row.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from penstock.encode.fault import CellFault
from penstock.encode.raw_rows import RowBlock
from penstock.errors import OptionError, PenstockError, SourceError, TooManySkippedError
from penstock.foundation.option_checks import OnError
from penstock.shards.destination import REJECTS_NAME

_log = logging.getLogger("penstock")


class Rejects:
    """The rows that were rejected so far.

    Attributes:
        count: Number of rejected rows.
        by_column: Number of rejected rows per column that did not fit; a row can count for several columns.
        first: Error of the first rejected row.
    """

    def __init__(self, on_error: OnError, max_rejects: int) -> None:
        self.count = 0
        self.by_column: Counter[str] = Counter()
        self.first: PenstockError | None = None
        self._on_error = on_error
        self._max = max_rejects
        self._lines: list[bytes] = []

    def add(self, block: RowBlock, faults: Iterable[CellFault]) -> None:
        """Add the faults of a block.

        Raises:
            PenstockError: The error of the first fault, if `on_error` is "raise".
            TooManySkippedError: There are more than `max_rejects` rejected rows.
        """
        in_order = sorted(faults, key=lambda fault: fault.row)
        for row, group in groupby(in_order, key=lambda fault: fault.row):
            found = list(group)
            errors = [block.refuse(fault) for fault in found]
            if self._on_error == "raise":
                raise errors[0]
            self.count += 1
            self.first = self.first or errors[0]
            self.by_column.update(fault.column for fault in found)
            if self.count > self._max:
                raise self._refuse_more(errors[0])
            if self._on_error == "skip":
                _log.warning("row skipped: %s", errors[0])
            else:
                self._lines.append(_write_line(block, row, found, errors))

    def _refuse_more(self, last: PenstockError) -> TooManySkippedError:
        return TooManySkippedError(
            "rows rejected",
            path=last.path,
            field=last.field,
            expected=f"at most {self._max}",
            got=f"{self.count} or more; the last one: {str(last).rstrip('.')}",
            advice="Fix the plan or the data, or raise max_rejects (--max-rejects).",
        )

    def refuse_all(self, num_rows: int) -> PenstockError:
        """Return the error for a source without rows, or whose rows were all rejected."""
        if self.first is None:
            return OptionError("source", expected="at least one row that fits", got=f"{num_rows} rows")
        return SourceError(
            f"all {num_rows} rows were rejected",
            path=self.first.path,
            field=self.first.field,
            expected="at least one row that fits",
            got=f"none; the first error: {str(self.first).rstrip('.')}",
            advice="Fix the plan or the data; 'penstock convert --plan' shows the types of the columns.",
        )

    @property
    def has_file(self) -> bool:
        """Whether `rejects.jsonl` is written."""
        return bool(self._lines)

    def lines(self) -> bytes:
        """Return the content of `rejects.jsonl`."""
        return b"".join(self._lines)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form for the manifest."""
        return {
            "count": self.count,
            "by_column": dict(sorted(self.by_column.items())),
            "file": REJECTS_NAME if self._lines else None,
        }


def _write_line(block: RowBlock, row: int, faults: list[CellFault], errors: list[PenstockError]) -> bytes:
    form = {
        "row": block.first_row + row,
        "reasons": [
            {"column": fault.column, "expected": fault.expected, "got": fault.got, "error": str(error)}
            for fault, error in zip(faults, errors, strict=True)
        ],
        "sample": block.show(row),
    }
    return json.dumps(form, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
