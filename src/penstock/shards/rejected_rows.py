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
from typing import Any, Final

from penstock.encode.plain import CellFault
from penstock.encode.raw_rows import RowBlock
from penstock.errors import OptionError, PenstockError, SourceError, TooManySkippedError
from penstock.settings.groups import BadRows
from penstock.shards.staging.destination import REJECTS_NAME

_log = logging.getLogger("penstock")

_MOST_ERRORS: Final = 1_000


class Rejects:
    """The rows that were rejected so far.

    Attributes:
        count: Number of rejected rows.
        by_column: Number of rejected rows per column that did not fit; a row can count for several columns.
        first: Error of the first rejected row.
        errors: Errors of the first rejected rows, at most 1,000 of them.
    """

    def __init__(self, options: BadRows) -> None:
        self.count = 0
        self.by_column: Counter[str] = Counter()
        self.first: PenstockError | None = None
        self.errors: list[PenstockError] = []
        self._options = options
        self._lines: list[bytes] = []

    def add(self, block: RowBlock, faults: Iterable[CellFault]) -> None:
        """Add the faults of a block."""
        in_order = sorted(faults, key=lambda fault: fault.row)
        for row, group in groupby(in_order, key=lambda fault: fault.row):
            found = list(group)
            errors = [block.refuse(fault) for fault in found]
            if self._options.on_error == "raise":
                raise _advise(errors[0])
            self.count += 1
            self.first = self.first or errors[0]
            if self.count <= _MOST_ERRORS:
                self.errors.append(errors[0])
            self.by_column.update(fault.column for fault in found)
            if self.count > self._options.max_skipped:
                raise self._refuse_more(errors[0])
            if self._options.on_error == "skip":
                _log.warning("row skipped: %s", errors[0])
            else:
                self._lines.append(_write_line(block, row, found, errors))

    def _refuse_more(self, last: PenstockError) -> TooManySkippedError:
        return TooManySkippedError(
            "rows rejected",
            path=last.path,
            field=last.field,
            expected=f"at most {self._options.max_skipped}",
            got=f"{self.count} or more; the last one: {str(last).rstrip('.')}",
            advice="Fix the plan or the data, or allow more: `max_skipped=N`.",
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


def _advise(error: PenstockError) -> PenstockError:
    """Add to the error of a row that such rows can be left out, unless its advice says so."""
    if "on_error" not in error.advice:
        skip = "Fix the row, or leave such rows out: `ps.convert(SOURCE, OUT, on_error='skip')`."
        error.advice = f"{error.advice} {skip}".lstrip()
        error.args = (str(error),)
    return error


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
