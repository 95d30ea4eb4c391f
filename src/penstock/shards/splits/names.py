"""Integer codes of splits, strata and classes, in the order of first appearance.

In: values of the rows of a block. Out: codes for the ledger. Synonyms of the usual splits (`val`, `dev`) get
the canonical names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.format.entry import canonical_split
from penstock.foundation.wording import show
from penstock.shards.splits.grouping import slice_rows
from penstock.shards.splits.ledger import LedgerColumn
from penstock.shards.splits.row_keys import BlockClasses, ClassValue, number_digests
from penstock.shards.splits.split import Assignment

_MAX_SPLITS: Final = 200
_MAX_STRATA: Final = 65_536
_NAME = re.compile(r"[A-Za-z0-9_]{1,100}")


class Strata:
    """Codes of the values that rows are stratified by."""

    def __init__(self) -> None:
        self._codes: dict[bytes, int] = {}

    def code(self, digests: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the codes of values, given by their digests."""
        firsts, numbers = number_digests(digests)
        distinct = [digest.tobytes() for digest in digests[firsts]]
        for each in distinct:
            self._codes.setdefault(each, len(self._codes))
        if len(self._codes) > _MAX_STRATA:
            raise OptionError(
                "stratify",
                expected=f"a field of at most {_MAX_STRATA} different values",
                got="more",
                advice="A continuous number cannot be stratified: remove stratify.",
            )
        return np.array([self._codes[each] for each in distinct], np.int64)[numbers]


class SplitNames:
    """Codes of the names of splits."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def code(self, names: list[bytes] | str, num_rows: int) -> NDArray[np.int64]:
        """Return the codes of rows."""
        if isinstance(names, str):
            return np.full(num_rows, self._find(names), np.int64)
        distinct, inverse = np.unique(np.array(names, dtype=object), return_inverse=True)
        # By first appearance, so that codes do not depend on the alphabet.
        firsts = {name: names.index(name) for name in distinct}
        found = {
            name: self._find(name.decode("utf-8", "replace"))
            for name in sorted(distinct, key=firsts.__getitem__)
        }
        return np.array([found[name] for name in distinct], np.int64)[inverse]

    def in_order(self) -> tuple[str, ...]:
        """Return the names in the order of their codes."""
        return tuple(self._codes)

    def _find(self, value: str) -> int:
        name = canonical_split(value)
        if name not in self._codes:
            if not _NAME.fullmatch(name):
                raise OptionError(
                    "split_by",
                    expected="values of at most 100 letters, digits and '_', for file names",
                    got=show(value),
                    advice="Choose another column, or change its values.",
                )
            if len(self._codes) == _MAX_SPLITS:
                raise OptionError(
                    "split_by",
                    expected=f"at most {_MAX_SPLITS} different values",
                    got="more",
                    advice="Check that this column contains names of splits.",
                )
            self._codes[name] = len(self._codes)
        return self._codes[name]


_MAX_CLASSES: Final = 10_000
_MAX_SHOWN: Final = 3


class Classes:
    """Codes of the values of one categorical target, in the order of first appearance."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._numbers: dict[ClassValue, int] = {}

    def code(self, block: BlockClasses) -> NDArray[np.int64]:
        """Return the code of each row's class; -1 if the class is missing, or there are too many classes."""
        for value in block.values:
            if len(self._numbers) <= _MAX_CLASSES:
                self._numbers.setdefault(value, len(self._numbers))
        numbers = [self._numbers.get(value, -1) for value in block.values]
        return np.array([*numbers, -1], np.int64)[block.codes]

    def list_absent(self, codes: LedgerColumn, assignment: Assignment, can_stratify: bool) -> Iterator[str]:
        """Yield a note for each split that contains some classes, but not all."""
        num_classes, num_splits = len(self._numbers), len(assignment.names)
        if num_classes > _MAX_CLASSES or num_classes < 2:
            return
        counts = np.zeros((num_splits, num_classes), np.int64)
        for start, stop in slice_rows(len(codes), assignment.codes):
            classes = codes.read(start, stop)
            cells = assignment.codes[start:stop].astype(np.int64) * num_classes + classes
            found = np.bincount(cells[classes >= 0], minlength=counts.size)
            counts += found.reshape(counts.shape)
        values = list(self._numbers)
        for split, row in zip(assignment.names, counts, strict=True):
            absent = np.flatnonzero(row == 0).tolist()
            if not absent or not row.any():
                continue
            shown = ", ".join(show(values[number]) for number in absent[:_MAX_SHOWN])
            more = ", …" if len(absent) > _MAX_SHOWN else ""
            is_frequent = (counts[:, absent].sum(axis=0) >= num_splits).any()
            advice = (
                f"; 'stratify' spreads {self.name!r} over the splits" if can_stratify and is_frequent else ""
            )
            missing = f"{len(absent)} of {num_classes} classes of {self.name!r}"
            yield f"{split!r} has no row of {missing} ({shown}{more}){advice}"
