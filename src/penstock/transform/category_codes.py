"""Codes of values, batch by batch: looked up or hashed, after the codes of the reserved slots.

In: columns of strings, integers, or codes that the core found while decoding. Out: int32 codes; an error
names a value without a code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final, NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Bytes, CodedColumn, Dense, Dictionary, Mask
from penstock.errors import FieldError
from penstock.foundation.json_form import JsonValue, Load, choice_of, list_of, optional
from penstock.foundation.wording import override, show
from penstock.transform.base import Fitted
from penstock.transform.vocabulary import Entry, Table, as_text, make_table

_Find: TypeAlias = Callable[..., NDArray[np.int32]]

# Negative codes stand for no value: one-hot and multi-hot vectors skip them.
NO_CODE: Final = -1
UNKNOWN_ERROR: Final = -2
MISSING_ERROR: Final = -3


@dataclass(frozen=True)
class EncodeFit(Fitted):
    """Fitted state of `Encode`.

    Attributes:
        dtype: Type of the values: "string" or "int64".
        num_levels: 0 for one value per record, 1 for a list, 2 for a list of lists.
        can_lack: Whether records may have neither a value nor a default.
        default: Default of the field for records without a value, or None.
        values: Vocabulary in the order of codes.
    """

    dtype: str
    num_levels: int
    can_lack: bool
    default: Entry | None
    values: tuple[Entry, ...]

    LOADERS: ClassVar[Mapping[str, Load]] = {
        "dtype": choice_of("string", "int64"),
        "num_levels": JsonValue.count,
        "can_lack": JsonValue.flag,
        "default": optional(JsonValue.entry),
        "values": list_of(JsonValue.entry),
    }


class Slots(NamedTuple):
    """The codes of values and reserved slots.

    Attributes:
        first: Code of the first value of the vocabulary, or of the first bin.
        unknown: Code of values outside of the vocabulary.
        missing: Code of records without a value.
        num_codes: Number of codes.
    """

    first: int
    unknown: int
    missing: int
    num_codes: int


class Coder:
    """Encodes the values of one field."""

    __slots__ = ("_bins", "_find_ints", "_find_strings", "_is_strict", "_slots", "num_codes", "table")

    def __init__(self, slots: Slots, table: Table | None, bins: tuple[int, int] | None = None) -> None:
        """Make a coder with a lookup table, or with `bins`, the number of hash bins and the salt."""
        self.table = table
        self.num_codes = slots.num_codes
        self._slots = (slots.first, slots.unknown, slots.missing)
        self._is_strict = min(slots.unknown, slots.missing) <= UNKNOWN_ERROR
        self._find_strings: _Find = _refuse_strings
        self._find_ints: _Find = _refuse_ints
        if isinstance(table, _native.Vocabulary):
            self._find_strings = table.find
        elif table is not None:
            self._find_ints = table.find
        self._bins = None if bins is None else (bins[0], slots.first, slots.missing, bins[1])

    def code_rows(self, name: str, column: CodedColumn) -> NDArray[np.int32]:
        """Return the code of each row."""
        code = _ROW_CODERS.get(type(column))
        if code is None:
            raise TypeError(f"expected a column with one value per row, got {column!r}")
        codes = code(self, column)
        if self._is_strict:
            self._check(name, codes, column)
        return codes

    def code_items(
        self, name: str, values: Bytes | NDArray[Any], offsets: NDArray[np.int64], present: Mask | None
    ) -> NDArray[np.int32]:
        """Return the code of each value of lists."""
        codes = self._code(values, None)
        if self._is_strict:
            if self._slots[2] == MISSING_ERROR and present is not None and not present.all():
                _refuse_missing(name, int(np.argmin(present)))
            at = int(codes.argmin()) if len(codes) else 0
            if len(codes) and codes[at] <= UNKNOWN_ERROR:
                row = int(np.searchsorted(offsets, at, side="right")) - 1
                _refuse_unknown(name, row, values[at])
        return codes

    def code_value(self, value: Entry) -> int:
        """Return the code of one value."""
        if isinstance(value, int):
            return int(self._code(np.array([value]), None)[0])
        data = np.frombuffer(value.encode() if isinstance(value, str) else value, np.uint8)
        return int(self._code(Bytes.from_offsets(data, np.array([0, len(data)])), None)[0])

    def one_hot(self, codes: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return one-hot vectors, one per code."""
        return _native.multi_hot(codes, _count_up(len(codes) + 1), self.num_codes, False)

    def native_step(self) -> dict[str, Any]:
        """Return the options of a program's step that make codes."""
        step: dict[str, Any] = {"kind": "encode", "slots": self._slots, "num_codes": self.num_codes}
        if self._bins is not None:
            return {**step, "bins": (self._bins[0], self._bins[3])}
        return {**step, "words" if isinstance(self.table, _native.Vocabulary) else "integers": self.table}

    def _code(self, values: Bytes | NDArray[Any], present: Mask | None) -> NDArray[np.int32]:
        if self._bins is not None:
            if isinstance(values, np.ndarray):
                return _native.hash_ints(values, present, *self._bins)
            return _native.hash_strings(values.arena, values.starts, values.stops, present, *self._bins)
        if isinstance(values, np.ndarray):
            found = self._find_ints(values)
        else:
            found = self._find_strings(values.arena, values.starts, values.stops)
        return _native.place_codes(found, present, *self._slots)

    def _code_column(self, column: Dense | Bytes) -> NDArray[np.int32]:
        return self._code(column.unwrap(), column.present)

    def _place_column(self, column: Dictionary) -> NDArray[np.int32]:
        return _native.place_codes(column.codes, column.present, *self._slots)

    def _check(self, name: str, codes: NDArray[np.int32], column: Any) -> None:
        row = int(codes.argmin()) if len(codes) else 0
        if not len(codes) or codes[row] > UNKNOWN_ERROR:
            return
        if codes[row] == MISSING_ERROR:
            _refuse_missing(name, row)
        _refuse_unknown(name, row, column[row])


_ROW_CODERS: dict[type, Callable[[Coder, Any], NDArray[np.int32]]] = {
    Dense: Coder._code_column,
    Bytes: Coder._code_column,
    Dictionary: Coder._place_column,
}


def make_coder(
    fitted: EncodeFit, bins: tuple[int, int] | None, *, is_code: bool, has_slots: tuple[bool, bool]
) -> Coder:
    """Return the coder of a field.

    `bins`: number of hash bins and the salt; None to look values up. `is_code`: whether the output is codes
    rather than vectors, which need no code for missing values. `has_slots`: whether there is a slot for
    unknown values, and one for missing values; without, they are an error.
    """
    has_zero = is_code and (fitted.num_levels > 0 or (fitted.can_lack and has_slots[1]))
    missing = 0 if has_zero else NO_CODE
    if fitted.can_lack and not has_slots[1]:
        missing = MISSING_ERROR
    count, unknown = int(has_zero), NO_CODE
    if bins is None:
        unknown, count = (count, count + 1) if has_slots[0] else (UNKNOWN_ERROR, count)
    table = make_table(fitted.values, fitted.dtype) if bins is None else None
    slots = Slots(count, unknown, missing, count + (len(fitted.values) if bins is None else bins[0]))
    coder = Coder(slots, table, bins)
    if fitted.default is None:
        return coder
    # Records without a value get the code of the default.
    return Coder(slots._replace(missing=coder.code_value(fitted.default)), table, bins)


@lru_cache(maxsize=16)
def _count_up(size: int) -> NDArray[np.int64]:
    # All batches of a loader except the last have the same size.
    return np.arange(size)


def _refuse_strings(*_: object) -> NoReturn:
    raise TypeError("expected integers, as fitted, got strings")


def _refuse_ints(_: object) -> NoReturn:
    raise TypeError("expected strings, as fitted, got integers")


def _refuse_unknown(name: str, row: int, value: Any) -> NoReturn:
    extended = override(name, "Encode(unknown='slot')")
    raise FieldError(
        f"value of field {name!r}",
        field=name,
        record=row,
        expected="a value of the vocabulary",
        got=show(as_text(value.item() if isinstance(value, np.generic) else value)),
        advice=f"List all values in Encode(vocabulary=…), or: {extended}.",
    )


def _refuse_missing(name: str, row: int) -> NoReturn:
    extended = override(name, "Encode(missing='slot')")
    raise FieldError(
        f"value of field {name!r}",
        field=name,
        record=row,
        expected="a value",
        got="nothing",
        advice=f"Give the field a default, or: {extended}. Training skips "
        f"records without a target; with a loader, use filter='`{name}` is not None'.",
    )
