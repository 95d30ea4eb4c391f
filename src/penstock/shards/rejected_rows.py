"""Rows that do not fit: raised, or left out, counted and named.

In: the faults of each block, in order. Out: an error, or the account of what was left out, and the lines of
`rejects.jsonl` for those who want the rows themselves.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from penstock.encode.fault import CellFault
from penstock.encode.raw_rows import Incoming
from penstock.errors import OptionError, PenstockError, SourceError, TooManySkippedError
from penstock.foundation.option_checks import OnError
from penstock.shards.destination import REJECTS_NAME

_log = logging.getLogger("penstock")


class Rejects:
    """What was left out so far.

    Attributes:
        count: How many rows.
        by_column: How many of them by the column that did not fit; a row may count in several.
        first: The error of the first of them.
    """

    def __init__(self, on_error: OnError, max_rejects: int) -> None:
        self.count = 0
        self.by_column: Counter[str] = Counter()
        self.first: PenstockError | None = None
        self._on_error = on_error
        self._max = max_rejects
        self._lines: list[bytes] = []

    def add(self, incoming: Incoming, faults: Iterable[CellFault]) -> None:
        """Take down the faults of a block.

        Raises:
            PenstockError: The first of them, if that is the policy.
            TooManySkippedError: There are more than the ceiling allows.
        """
        in_order = sorted(faults, key=lambda fault: fault.row)
        for row, group in groupby(in_order, key=lambda fault: fault.row):
            found = list(group)
            errors = [incoming.refuse(fault) for fault in found]
            if self._on_error == "raise":
                raise errors[0]
            self.count += 1
            self.first = self.first or errors[0]
            self.by_column.update(fault.column for fault in found)
            if self.count > self._max:
                raise self._give_up(errors[0])
            if self._on_error == "skip":
                _log.warning("row left out: %s", errors[0])
            else:
                self._lines.append(_account(incoming, row, found, errors))

    def _give_up(self, last: PenstockError) -> TooManySkippedError:
        return TooManySkippedError(
            "rows rejected",
            path=last.path,
            field=last.field,
            expected=f"at most {self._max}",
            got=f"{self.count} and more, the last because: {str(last).rstrip('.')}",
            advice="Fix the plan or the data, or raise max_rejects (--max-rejects).",
        )

    def refuse_all(self, num_rows: int) -> PenstockError:
        """Return the error for a source of which no row is left."""
        if self.first is None:
            return OptionError("source", expected="at least one row that fits", got=f"{num_rows} rows")
        return SourceError(
            f"all {num_rows} rows were rejected",
            path=self.first.path,
            field=self.first.field,
            expected="at least one row that fits",
            got=f"none, the first because: {str(self.first).rstrip('.')}",
            advice="Fix the plan or the data; 'penstock convert --plan' shows the types of the columns.",
        )

    @property
    def has_file(self) -> bool:
        """Whether there are rows to write down."""
        return bool(self._lines)

    def lines(self) -> bytes:
        """Return what `rejects.jsonl` holds."""
        return b"".join(self._lines)

    def to_json(self) -> dict[str, Any]:
        """Return the account for the manifest."""
        return {
            "count": self.count,
            "by_column": dict(sorted(self.by_column.items())),
            "file": REJECTS_NAME if self._lines else None,
        }


def _account(incoming: Incoming, row: int, faults: list[CellFault], errors: list[PenstockError]) -> bytes:
    form = {
        "row": incoming.first_row + row,
        "reasons": [
            {"column": fault.column, "expected": fault.expected, "got": fault.got, "error": str(error)}
            for fault, error in zip(faults, errors, strict=True)
        ],
        "sample": incoming.show(row),
    }
    return json.dumps(form, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
