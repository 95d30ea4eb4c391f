"""Columns, which all stages exchange: many records, field by field, as arrays.

`Dense`, `Ragged`, `Bytes`, `Dictionary` and `Pictures` have the same methods (`take`, `concat`, `pad`,
`nbytes`, `arrays`, ...), so that no stage needs to test which of them it has. Each has an optional presence
mask. Arrays of values that these methods make are aligned and come from the core's pool of buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, Union

import numpy as np
from numpy.typing import NDArray

from penstock import _native

Mask: TypeAlias = NDArray[np.bool_]
Kind: TypeAlias = Literal["int64", "float", "bytes"]
Payload: TypeAlias = Literal["example", "sequence_example", "other", "empty"]
Compression: TypeAlias = Literal["none", "gzip", "zlib"]
ArrayMap: TypeAlias = Callable[[NDArray[Any]], NDArray[Any]]


class _Base:
    """Common base of all columns; the methods whose names begin with _ leave out the mask."""

    __slots__ = ()

    present: Mask | None

    @classmethod
    def of(cls, column: object) -> Self:
        """Return the column if it is one of this class; raise TypeError otherwise."""
        if not isinstance(column, cls):
            raise TypeError(f"expected a {cls.__name__} column, got {column!r}")
        return column

    def take(self, rows: NDArray[np.int64]) -> Self:
        """Return some rows, in the order of `rows`."""
        return self._take(rows)._masked(None if self.present is None else _take(self.present, rows))

    @classmethod
    def concat(cls, columns: Sequence[Any]) -> Self:
        """Return the rows of several columns of this class, concatenated."""
        has_mask = any(each.present is not None for each in columns)
        mask = np.concatenate([each.mask() for each in columns]) if has_mask else None
        return cls._concat(columns)._masked(mask)

    def pad(self, num_rows: int) -> Self:
        """Return `num_rows` rows: the rows of the column, then empty ones (zeros, empty strings or lists)."""
        mask = None if self.present is None else pad_array(self.present, num_rows)
        return self._pad(num_rows)._masked(mask)

    @property
    def nbytes(self) -> int:
        """Approximate number of bytes that the rows take in memory."""
        return self._nbytes() + (0 if self.present is None else self.present.nbytes)

    def arrays(self) -> list[NDArray[Any]]:
        """Return the arrays that hold the column."""
        found: list[NDArray[Any]] = []

        def note(array: NDArray[Any]) -> NDArray[Any]:
            found.append(array)
            return array

        self.map_arrays(note)
        return found

    def map_arrays(self, function: ArrayMap) -> Self:
        """Return the column with each of its `arrays()` replaced by the result of a function."""
        mask = None if self.present is None else function(self.present)
        return self._map(function)._masked(mask)

    def mask(self) -> Mask:
        """Return which rows are present, as an array also where all are."""
        return np.ones(len(self), np.bool_) if self.present is None else self.present

    def without_mask(self) -> Self:
        """Return the same values, all of them present."""
        return self._map(lambda array: array)

    def unwrap(self) -> Self | NDArray[Any]:
        """Return the column as a batch holds it: the array of a `Dense`, any other column itself."""
        return self

    def items(self) -> tuple[Any, Mask | None]:
        """Return the values, without lists, and a mask of those in rows that are present (None for all)."""
        return self.unwrap(), self.present

    def __len__(self) -> int:
        raise NotImplementedError

    def _missing_text(self) -> str:
        return "" if self.present is None else f", missing={int((~self.present).sum())}"

    def _masked(self, present: Mask | None) -> Self:
        self.present = present  # type: ignore[misc]  # every subclass has the slot
        return self

    def _take(self, rows: NDArray[np.int64]) -> Self:
        raise NotImplementedError

    @classmethod
    def _concat(cls, columns: Sequence[Any]) -> Self:
        raise NotImplementedError

    def _pad(self, num_rows: int) -> Self:
        raise NotImplementedError

    def _nbytes(self) -> int:
        return sum(array.nbytes for array in self.without_mask().arrays())

    def _map(self, function: ArrayMap) -> Self:
        raise NotImplementedError


@dataclass(slots=True, eq=False, repr=False)
class Dense(_Base):
    """Values of one shape in every row: an array `(rows, *shape)`.

    Where `present` is False the row holds the field's default, or zeros.
    """

    values: NDArray[Any]
    present: Mask | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: int) -> Any:
        return self.values[row]

    def _take(self, rows: NDArray[np.int64]) -> Dense:
        return Dense(_take(self.values, rows))

    @classmethod
    def _concat(cls, columns: Sequence[Dense]) -> Dense:
        return Dense(_concat([each.values for each in columns]))

    def _pad(self, num_rows: int) -> Dense:
        return Dense(pad_array(self.values, num_rows))

    def _map(self, function: ArrayMap) -> Dense:
        return Dense(function(self.values))

    def unwrap(self) -> NDArray[Any]:
        """Return the column as a batch holds it: its array."""
        return self.values

    def __repr__(self) -> str:
        return f"Dense(shape={self.values.shape}, dtype={self.values.dtype}{self._missing_text()})"


@dataclass(slots=True, eq=False, repr=False)
class Bytes(_Base):
    """One byte string per row: row i is `arena[starts[i]:stops[i]]`.

    Short values are contiguous, and `offsets` (rows + 1) are their boundaries. Large ones stay where they
    were read, with other bytes between them, so that they are not copied twice; `pack()` closes the gaps.
    """

    arena: NDArray[np.uint8]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    present: Mask | None = None

    @classmethod
    def from_offsets(
        cls, arena: NDArray[np.uint8], offsets: NDArray[np.int64], present: Mask | None = None
    ) -> Bytes:
        """Make a column from contiguous values; `offsets` has rows + 1 entries."""
        return cls(arena, offsets[:-1], offsets[1:], present)

    @property
    def is_packed(self) -> bool:
        """Whether the values are contiguous from byte 0 of the arena."""
        is_first = not len(self) or bool(self.starts[0] == 0)
        return is_first and np.array_equal(self.starts[1:], self.stops[:-1])

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The rows + 1 boundaries of the values in `arena`.

        Raises:
            ValueError: The values are not contiguous; those that `pack()` returns are.
        """
        if not self.is_packed:
            raise ValueError("large values lie apart in the arena and have no offsets; call pack() first")
        return make_offsets(self.sizes)

    @classmethod
    def from_values(cls, values: Sequence[bytes | memoryview], present: Mask | None = None) -> Bytes:
        """Make a column from Python byte strings."""
        lengths = np.array([memoryview(value).nbytes for value in values], np.int64)
        return cls.from_offsets(np.frombuffer(b"".join(values), np.uint8), make_offsets(lengths), present)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of bytes of each row."""
        return self.stops - self.starts

    def pack(self) -> Bytes:
        """Return the same values, contiguous; self, if they are already."""
        return self if self.is_packed else Bytes._concat([self])._masked(self.present)

    def spans(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """Return arena, starts and stops as the compiled core takes them: contiguous."""
        return self.arena, np.ascontiguousarray(self.starts), np.ascontiguousarray(self.stops)

    def _take(self, rows: NDArray[np.int64]) -> Bytes:
        spans = self.starts[rows], self.stops[rows]  # few, while making all of them contiguous takes long
        return Bytes.from_offsets(*_native.take_strings(self.arena, *spans, np.arange(len(rows))))

    @classmethod
    def _concat(cls, columns: Sequence[Bytes]) -> Bytes:
        return Bytes.from_offsets(*_native.join_strings([each.spans() for each in columns]))

    def _pad(self, num_rows: int) -> Bytes:
        starts, stops = np.zeros(num_rows, np.int64), np.zeros(num_rows, np.int64)
        starts[: len(self)], stops[: len(self)] = self.starts, self.stops
        return Bytes(self.arena, starts, stops)

    def _nbytes(self) -> int:
        return int(self.sizes.sum()) + 16 * len(self)  # without bytes between the values

    def _map(self, function: ArrayMap) -> Bytes:
        return Bytes(function(self.arena), function(self.starts), function(self.stops))

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> bytes:
        return self.arena[self.starts[row] : self.stops[row]].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        for start, stop in zip(self.starts.tolist(), self.stops.tolist(), strict=True):
            yield bytes(self.arena.data[start:stop])

    def tolist(self) -> list[bytes]:
        """Return the values as Python objects."""
        return list(self)

    def __repr__(self) -> str:
        return f"Bytes(rows={len(self)}, bytes={int(self.sizes.sum())}{self._missing_text()})"


@dataclass(slots=True, eq=False, repr=False)
class Ragged(_Base):
    """One list per row: row i is `values[offsets[i]:offsets[i + 1]]`.

    `values` is an array, a `Bytes` for lists of strings, or another `Ragged` for lists of lists (the feature
    lists of a SequenceExample).
    """

    values: NDArray[Any] | Bytes | Ragged
    offsets: NDArray[np.int64]
    present: Mask | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[Any] | list[Any]:
        number = range(len(self))[row]  # negative ones count from the end; IndexError beyond
        start, stop = int(self.offsets[number]), int(self.offsets[number + 1])
        if isinstance(self.values, np.ndarray):
            return self.values[start:stop]
        return [self.values[i] for i in range(start, stop)]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of items of each row."""
        return np.diff(self.offsets)

    def flatten(self) -> tuple[NDArray[Any] | Bytes, NDArray[np.int64]]:
        """Return the innermost values, and the rows + 1 boundaries of the rows among them."""
        values, (offsets, *inner) = self.nested()
        for each in inner:
            offsets = each[offsets]
        return values, offsets

    def nested(self) -> tuple[NDArray[Any] | Bytes, list[NDArray[np.int64]]]:
        """Return the innermost values, and the offsets of each level, outermost first."""
        if not isinstance(self.values, Ragged):
            return self.values, [self.offsets]
        values, offsets = self.values.nested()
        return values, [self.offsets, *offsets]

    def with_values(self, values: NDArray[Any] | Bytes) -> Ragged:
        """Return lists of the same lengths with other innermost values, all of them present."""
        if isinstance(self.values, Ragged):
            return Ragged(self.values.with_values(values), self.offsets)
        return Ragged(values, self.offsets)

    def _take(self, rows: NDArray[np.int64]) -> Ragged:
        if isinstance(self.values, np.ndarray):
            return Ragged(*_native.take_lists(self.values, self.offsets, rows))
        # Lists of values without a fixed size: first which items, then the items.
        lengths = self.lengths[rows]
        offsets = make_offsets(lengths)
        starts = self.offsets[:-1][rows]
        items = np.arange(int(offsets[-1]), dtype=np.int64) + np.repeat(starts - offsets[:-1], lengths)
        return Ragged(self.values.take(items), offsets)

    @classmethod
    def _concat(cls, columns: Sequence[Ragged]) -> Ragged:
        first = columns[0].values
        parts: list[Any] = [each.values for each in columns]
        values: NDArray[Any] | Bytes | Ragged
        if isinstance(first, np.ndarray):
            values = _concat([part[: each.offsets[-1]] for part, each in zip(parts, columns, strict=True)])
        else:
            values = first.concat(parts)
        return Ragged(values, make_offsets(np.concatenate([each.lengths for each in columns])))

    def _pad(self, num_rows: int) -> Ragged:
        offsets = np.full(num_rows + 1, self.offsets[-1], np.int64)
        offsets[: len(self.offsets)] = self.offsets
        return Ragged(self.values, offsets)

    def _nbytes(self) -> int:
        return self.values.nbytes + self.offsets.nbytes

    def _map(self, function: ArrayMap) -> Ragged:
        offsets, values = function(self.offsets), self.values
        if isinstance(values, np.ndarray):
            return Ragged(function(values), offsets)
        return Ragged(values.map_arrays(function), offsets)

    def items(self) -> tuple[NDArray[Any] | Bytes, Mask | None]:
        """Return the innermost values, and a mask of those in rows that are present (None for all)."""
        values, offsets = self.flatten()
        keep = None if self.present is None else np.repeat(self.present, np.diff(offsets))
        whole = slice(int(offsets[0]), int(offsets[-1]))
        if isinstance(values, np.ndarray):
            return values[whole], keep
        return Bytes(values.arena, values.starts[whole], values.stops[whole]), keep

    def __repr__(self) -> str:
        return f"Ragged(rows={len(self)}, values={self.values!r}{self._missing_text()})"


@dataclass(slots=True, eq=False, repr=False)
class Dictionary(_Base):
    """One of a few known values per row: row i is `values[codes[i]]`.

    The code is −1 where the row has none of those values, or is missing. The caller that asked for codes
    knows the values: the core looks them up in a table that was fitted.
    """

    codes: NDArray[np.int32]
    values: Sequence[bytes]
    present: Mask | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def _take(self, rows: NDArray[np.int64]) -> Dictionary:
        return Dictionary(_take(self.codes, rows), self.values)

    @classmethod
    def _concat(cls, columns: Sequence[Dictionary]) -> Dictionary:
        return Dictionary(_concat([each.codes for each in columns]), columns[0].values)

    def _pad(self, num_rows: int) -> Dictionary:
        codes = np.full(num_rows, -1, np.int32)
        codes[: len(self)] = self.codes
        return Dictionary(codes, self.values)

    def _map(self, function: ArrayMap) -> Dictionary:
        return Dictionary(function(self.codes), self.values)

    def __repr__(self) -> str:
        return f"Dictionary(rows={len(self)}, values={len(self.values)}{self._missing_text()})"


@dataclass(slots=True, eq=False, repr=False)
class Pictures(_Base):
    """One image per row: its pixels where they are in memory, otherwise its encoded bytes.

    The pixels must not be changed: a cache and any number of batches share them.

    Attributes:
        images: uint8 (height, width, channels), each with its own size; None where they are not in memory.
        present: Which rows have an image; None if all do.
        encoded: The images as they are stored, one per row, unless the pixels of all are in memory.
    """

    images: Sequence[NDArray[np.uint8] | None]
    present: Mask | None = None
    encoded: Bytes | None = None

    def __len__(self) -> int:
        return len(self.images)

    def _take(self, rows: NDArray[np.int64]) -> Pictures:
        encoded = None if self.encoded is None else self.encoded.take(rows)
        return Pictures([self.images[row] for row in rows.tolist()], encoded=encoded)

    @classmethod
    def _concat(cls, columns: Sequence[Pictures | Bytes]) -> Pictures:
        parts = [Pictures.wrap(each) for each in columns]
        images = [image for part in parts for image in part.images]
        if all(part.encoded is None for part in parts):
            return Pictures(images)
        encoded = [
            Bytes.from_values([b""] * len(part)) if part.encoded is None else part.encoded for part in parts
        ]
        return Pictures(images, encoded=Bytes.concat(encoded))

    def _pad(self, num_rows: int) -> Pictures:
        encoded = None if self.encoded is None else self.encoded.pad(num_rows)
        return Pictures([*self.images, *[None] * (num_rows - len(self))], encoded=encoded)

    def _nbytes(self) -> int:
        encoded = 0 if self.encoded is None else self.encoded.nbytes
        return encoded + sum(image.nbytes for image in self.images if image is not None)

    def _map(self, function: ArrayMap) -> Pictures:
        images = [None if image is None else function(image) for image in self.images]
        encoded = None if self.encoded is None else self.encoded.map_arrays(function)
        return Pictures(images, encoded=encoded)

    @classmethod
    def wrap(cls, column: object) -> Pictures:
        """Return encoded images as images without pixels; `Pictures` as they are."""
        if isinstance(column, Bytes):
            return cls([None] * len(column), column.present, column)
        return cls.of(column)

    def __repr__(self) -> str:
        return f"Pictures(rows={len(self)}{self._missing_text()})"


Column: TypeAlias = Union[Dense, Bytes, Ragged]  # noqa: UP007 - classes defined above, evaluated here
Columns: TypeAlias = Mapping[str, Column]
# What a pipeline takes: strings may be codes, images may be pixels.
CodedColumn: TypeAlias = Union[Dense, Bytes, Ragged, Dictionary, Pictures]  # noqa: UP007
CodedColumns: TypeAlias = Mapping[str, CodedColumn]


def take_rows(columns: CodedColumns, rows: NDArray[np.int64]) -> CodedColumns:
    """Return some rows of columns, in the order of `rows`."""
    take: Callable[..., CodedColumns] | None = getattr(columns, "take", None)  # of `RowColumns`
    return {name: each.take(rows) for name, each in columns.items()} if take is None else take(rows)


def concat_rows(parts: Sequence[CodedColumns]) -> dict[str, CodedColumn]:
    """Return the rows of several mappings of columns, concatenated."""
    if len(parts) == 1:
        return dict(parts[0])
    return {name: concat([part[name] for part in parts]) for name in parts[0]}


def concat(columns: Sequence[CodedColumn]) -> CodedColumn:
    """Return the rows of several columns of one kind, concatenated; `Pictures` may come among `Bytes`."""
    has_images = any(type(column) is Pictures for column in columns)
    return (Pictures if has_images else type(columns[0])).concat(columns)


def pad_array(values: NDArray[Any], num_rows: int) -> NDArray[Any]:
    """Return an array with `num_rows` rows: the rows of `values`, then zeros."""
    if values.dtype.char in "SUO":
        out = np.zeros((num_rows, *values.shape[1:]), values.dtype)
    else:
        out = _native.empty((num_rows, *values.shape[1:]), values.dtype.name)
        out[len(values) :] = 0
    out[: len(values)] = values
    return out


def make_offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the len(lengths) + 1 boundaries of contiguous values."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _take(values: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    if values.dtype.char in "SUO":
        return values[rows]
    out = _native.empty((len(rows), *values.shape[1:]), values.dtype.name)
    np.take(values, rows, axis=0, out=out, mode="clip")  # "raise" would make a copy first
    return out


def _concat(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    if arrays[0].dtype.char in "SUO":
        return np.concatenate(arrays)
    count = sum(map(len, arrays))
    out = _native.empty((count, *arrays[0].shape[1:]), arrays[0].dtype.name)
    return np.concatenate(arrays, out=out)
