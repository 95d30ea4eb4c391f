"""Slices: records grouped by the value of a field, to compare the scores of the groups.

In: a stored column, batch by batch. Out: groups of records: by value, by range, or without a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Bytes, CodedColumn, Ragged
from penstock.errors import OptionError
from penstock.foundation.wording import unknown_name
from penstock.schema.field import Field
from penstock.schema.schema import Schema
from penstock.score.scores import to_number

MOST_VALUES: Final = 20
"""Maximum number of groups by value: those of the most frequent values."""
NUM_BINS: Final = 5
"""Number of ranges of numbers; each holds about as many records."""

_SLICED: Final = ("category", "text", "number", "date", "sequence")


@dataclass(frozen=True)
class SliceGroup:
    """Records with the same value of a field, or with values in a range from `low` to `high`.

    The value is None for a range, and for records without a value. `members` are indices among all records.
    """

    value: str | int | float | None
    members: NDArray[np.int64]
    low: float | None = None
    high: float | None = None


def check_slices(names: Sequence[str], schema: Schema) -> None:
    """Raise an error for fields that records cannot be grouped by."""
    for name in names:
        if name not in schema:
            raise unknown_name(name, schema)
        if schema[name].type_name not in _SLICED:
            raise OptionError(
                f"slice {name!r}",
                field=name,
                expected="a category, a number, a date, a text or a sequence",
                got=f"a field of type {schema[name].type_name}",
                advice="Slice by a field that has one value per record.",
            )


class Slicer:
    """Groups records by the values of one field.

    Categories and texts are grouped by value; numbers and dates by ranges that hold about as many records
    each, or by value if there are few; sequences, and texts with too many values, by their length, as
    numbers.

    Attributes:
        is_by_length: Whether records are grouped by length.
    """

    def __init__(self, field: Field) -> None:
        self._field = field
        self.is_by_length = field.type_name == "sequence"
        self._pieces: list[NDArray[Any]] = []
        self._missing: list[NDArray[np.bool_]] = []
        self._codes: dict[bytes, int] = {}

    def add(self, column: CodedColumn) -> None:
        """Add the values of further records."""
        is_missing = np.zeros(len(column), np.bool_)
        if column.present is not None and self._field.default is None:
            is_missing = ~column.present
        if self._field.type_name == "sequence":
            values = Ragged.of(column).lengths
        elif isinstance(found := column.unwrap(), np.ndarray):
            values = found.copy()  # the loader reuses its memory
            if values.dtype.kind == "f":
                is_missing |= np.isnan(values)
        else:
            codes = self._codes
            values = np.array([codes.setdefault(each, len(codes)) for each in Bytes.of(column)], np.int64)
        self._pieces.append(values)
        self._missing.append(is_missing)

    def groups(self) -> tuple[list[SliceGroup], int]:
        """Return the groups, and the number of values that have none.

        Groups by value are sorted by their number of records, the largest first. Records without a value are
        the last group.
        """
        values, missing = np.concatenate(self._pieces), np.concatenate(self._missing)
        present = np.flatnonzero(~missing)
        if self._field.type_name == "text" and self._are_scattered(values[present]):
            # Scores of twenty groups of one record each are useless.
            lengths = [len(each.decode(errors="replace")) for each in self._codes]
            values, self.is_by_length = np.array(lengths, np.int64)[values], True
        distinct, codes = np.unique(values[present], return_inverse=True)
        is_number = self.is_by_length or self._field.type_name in ("number", "date")
        if is_number and len(distinct) > MOST_VALUES:
            groups, num_left = self._group_by_range(values, present), 0
        else:
            groups, num_left = self._group_by_value(distinct, codes, present)
            if is_number:
                groups.sort(key=lambda group: group.value)  # type: ignore[arg-type,return-value]
        if missing.any():
            groups.append(SliceGroup(None, np.flatnonzero(missing)))
        return groups, num_left

    def _group_by_value(
        self, distinct: NDArray[Any], codes: NDArray[np.int64], present: NDArray[np.int64]
    ) -> tuple[list[SliceGroup], int]:
        counts = np.bincount(codes, minlength=len(distinct))
        kept = np.argsort(-counts, kind="stable")[:MOST_VALUES]
        texts = [] if self.is_by_length else [each.decode(errors="backslashreplace") for each in self._codes]
        groups = []
        for code in kept.tolist():
            value = distinct[code].item()
            groups.append(SliceGroup(texts[value] if texts else value, present[codes == code]))
        return groups, max(0, len(distinct) - MOST_VALUES)

    def _are_scattered(self, codes: NDArray[Any]) -> bool:
        """Whether less than half of the records have one of the most frequent values."""
        counts = np.sort(np.bincount(codes))[::-1] if len(codes) else np.zeros(1)
        return bool(2 * counts[:MOST_VALUES].sum() < len(codes))

    def _group_by_range(self, values: NDArray[Any], present: NDArray[np.int64]) -> list[SliceGroup]:
        numbers = values[present]
        edges = np.quantile(numbers, np.linspace(0, 1, NUM_BINS + 1)[1:-1])
        bins = np.searchsorted(np.unique(edges), numbers, side="left")
        groups = []
        for number in np.unique(bins).tolist():
            inside = bins == number
            low, high = to_number(numbers[inside].min()), to_number(numbers[inside].max())
            groups.append(SliceGroup(None, present[inside], low, high))
        return groups
