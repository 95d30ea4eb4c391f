"""Records put together by the value of a field, to see where a model is good.

In: a stored column, batch by batch. Out: groups of records: by value, by range, or without a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Bytes, CodedColumn, Dense, Ragged
from penstock.errors import OptionError
from penstock.foundation.wording import unknown_name
from penstock.schema.field import Field
from penstock.schema.schema import Schema
from penstock.score.scores import to_number

MOST_VALUES: Final = 20
"""Of a field by whose values records are put together: the most frequent."""
NUM_BINS: Final = 5
"""Of numbers: each holds about as many records."""

_SLICED: Final = ("category", "text", "number", "sequence")


@dataclass(frozen=True)
class Group:
    """Records that have something in common.

    Attributes:
        value: The value that they have; None where it is missing, or a range.
        low: The least number of a range, or None.
        high: The greatest.
        members: Their places among all records.
    """

    value: str | int | float | None
    members: NDArray[np.int64]
    low: float | None = None
    high: float | None = None


def check_slices(names: tuple[str, ...], schema: Schema) -> None:
    """Refuse fields by which nothing can be put together.

    Raises:
        UnknownNameError: There is no such field.
        OptionError: It is an image, a tensor or opaque bytes.
    """
    for name in names:
        if name not in schema:
            raise unknown_name(name, schema)
        if schema[name].type_name not in _SLICED:
            raise OptionError(
                f"slice {name!r}",
                field=name,
                expected="a category, a number, a text or a sequence",
                got=f"a field of type {schema[name].type_name}",
                advice="Slice by a field that has one value a record.",
            )


class Slicer:
    """Takes the values of one field and puts records together.

    Categories and texts go by their values; numbers by ranges that hold about as many records each, or by
    value if there are few; sequences by their length, as numbers, and so texts of too many values.

    Attributes:
        is_by_length: Whether they went by length.
    """

    def __init__(self, field: Field) -> None:
        self._field = field
        self.is_by_length = field.type_name == "sequence"
        self._pieces: list[NDArray[Any]] = []
        self._missing: list[NDArray[np.bool_]] = []
        self._codes: dict[bytes, int] = {}

    def add(self, column: CodedColumn) -> None:
        """Take the values of further records."""
        is_missing = np.zeros(len(column), np.bool_)
        if column.present is not None and self._field.default is None:
            is_missing = ~column.present
        if isinstance(column, Dense):
            values = column.values.copy()  # the loader uses its memory again
            if values.dtype.kind == "f":
                is_missing |= np.isnan(values)
        elif isinstance(column, Bytes):
            codes = self._codes
            values = np.array([codes.setdefault(each, len(codes)) for each in column], np.int64)
        elif isinstance(column, Ragged):
            values = np.diff(column.offsets)
        else:
            raise TypeError(f"{column!r} has no value a record")
        self._pieces.append(values)
        self._missing.append(is_missing)

    def groups(self) -> tuple[list[Group], int]:
        """Return the groups, those of most records first where they go by value, and how many are left out.

        Records without a value are the last group.
        """
        values, missing = np.concatenate(self._pieces), np.concatenate(self._missing)
        there = np.flatnonzero(~missing)
        if self._field.type_name == "text" and self._are_scattered(values[there]):
            # Twenty texts of a record each tell nothing.
            lengths = [len(each.decode(errors="replace")) for each in self._codes]
            values, self.is_by_length = np.array(lengths, np.int64)[values], True
        distinct, places = np.unique(values[there], return_inverse=True)
        is_number = self.is_by_length or self._field.type_name == "number"
        if is_number and len(distinct) > MOST_VALUES:
            groups, num_left = self._bin(values, there), 0
        else:
            groups, num_left = self._split(distinct, places, there)
            if is_number:
                groups.sort(key=lambda group: group.value)  # type: ignore[arg-type,return-value]
        if missing.any():
            groups.append(Group(None, np.flatnonzero(missing)))
        return groups, num_left

    def _split(
        self, distinct: NDArray[Any], places: NDArray[np.int64], there: NDArray[np.int64]
    ) -> tuple[list[Group], int]:
        counts = np.bincount(places, minlength=len(distinct))
        kept = np.argsort(-counts, kind="stable")[:MOST_VALUES]
        texts = [] if self.is_by_length else [_text(each) for each in self._codes]
        groups = []
        for code in kept.tolist():
            value = distinct[code].item()
            groups.append(Group(texts[value] if texts else value, there[places == code]))
        return groups, max(0, len(distinct) - MOST_VALUES)

    def _are_scattered(self, codes: NDArray[Any]) -> bool:
        """Whether the most frequent values are those of less than half of the records."""
        counts = np.sort(np.bincount(codes))[::-1] if len(codes) else np.zeros(1)
        return bool(2 * counts[:MOST_VALUES].sum() < len(codes))

    def _bin(self, values: NDArray[Any], there: NDArray[np.int64]) -> list[Group]:
        numbers = values[there]
        edges = np.quantile(numbers, np.linspace(0, 1, NUM_BINS + 1)[1:-1])
        bins = np.searchsorted(np.unique(edges), numbers, side="left")
        groups = []
        for number in np.unique(bins).tolist():
            inside = bins == number
            low, high = to_number(numbers[inside].min()), to_number(numbers[inside].max())
            groups.append(Group(None, there[inside], low, high))
        return groups


def _text(value: bytes) -> str:
    return value.decode(errors="backslashreplace")
