"""Members of WebDataset samples that are arrays of `numpy.save`.

In: the bytes of members. Out: an Arrow column of tensors, lists or numbers. Nothing is unpickled, and the
length of an array is checked against the bytes present.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.foundation.wording import show
from penstock.schema.field import MAX_DIMS
from penstock.source.member_column import BadMemberError, MemberColumn, refuse_change

_ARRAY_HEADER_BYTES: Final = 65_546  # the most that the first version of the format can have
_ARRAY_KINDS: Final = "biuf"


class ArrayColumn(MemberColumn):
    """Arrays of `numpy.save`: tensors of one shape, or sequences if their lengths differ."""

    survey_bytes = _ARRAY_HEADER_BYTES

    def __init__(self, extension: str) -> None:
        super().__init__(extension)
        self._dtypes: set[np.dtype[Any]] = set()
        self._shape: tuple[int, ...] | None = None
        self._is_fixed = self._has_step = True

    def survey(self, data: bytes, num_bytes: int, key: str) -> None:
        """Note the element type and the shape of an array."""
        header = _read_header(data, num_bytes, key)
        self._add(header.shape, {header.dtype})

    def _add(self, shape: tuple[int, ...], dtypes: set[np.dtype[Any]]) -> None:
        self._dtypes |= dtypes
        first = self._shape = shape if self._shape is None else self._shape
        self._is_fixed &= shape == first
        self._has_step &= len(shape) == len(first) > 0 and shape[1:] == first[1:]

    def merge(self, other: MemberColumn) -> None:
        """See `MemberColumn`."""
        if isinstance(other, ArrayColumn) and other._shape is not None:
            is_fixed, has_step = other._is_fixed, other._has_step
            self._add(other._shape, other._dtypes)
            self._is_fixed &= is_fixed
            self._has_step &= has_step

    @property
    def note(self) -> str:
        """A note if the arrays are kept as bytes."""
        arrays = f"arrays with the extension {show(self.extension)} of different shapes are kept as bytes"
        return arrays if self._form == "bytes" else ""

    @property
    def _dtype(self) -> np.dtype[Any]:
        dtype = np.result_type(*self._dtypes)
        # Arrow has bits in place of bytes for booleans, and no tensors of them.
        return np.dtype(np.uint8) if dtype == np.bool_ else dtype.newbyteorder("=")

    @property
    def _form(self) -> str:
        shape = self._shape or ()
        if self._is_fixed and 0 not in shape:
            return "tensor" if shape else "scalar"
        return "list" if self._has_step and 0 not in shape[1:] else "bytes"

    def list_fields(self, taken: frozenset[str]) -> list[pa.Field[Any]]:  # noqa: ARG002
        """Return one column of tensors or lists; of bytes if the shapes have nothing in common."""
        kind: pa.DataType = pa.from_numpy_dtype(self._dtype)
        if self._form == "tensor":
            kind = pa.fixed_shape_tensor(kind, self._shape or ())
        elif self._form == "list":
            for size in reversed((self._shape or ())[1:]):
                kind = pa.list_(kind, size)
            kind = pa.large_list(kind)
        elif self._form == "bytes":
            kind = pa.large_binary()
        return [pa.field(self.extension, kind)]

    def convert(self, values: Sequence[bytes | None], keys: Sequence[str], path: Path) -> list[pa.Array[Any]]:
        """Return the arrays."""
        if self._form == "bytes":
            return [pa.array(values, pa.large_binary())]
        arrays = [
            None if value is None else _read_array(value, key).astype(self._dtype)
            for value, key in zip(values, keys, strict=True)
        ]
        missing = np.array([array is None for array in arrays])
        step = (self._shape or ())[1:] if self._form == "list" else (self._shape or ())
        for array, key in zip(arrays, keys, strict=True):
            if array is not None and array.shape[self._form == "list" :] != step:
                raise refuse_change(path, key)
        if self._form == "list":
            return [_make_lists(arrays, missing, step, self._dtype)]
        full = np.zeros((len(arrays), *step), self._dtype)
        for row, array in enumerate(arrays):
            if array is not None:
                full[row] = array
        if self._form == "scalar":
            return [pa.array(full, mask=missing)]
        (field,) = self.list_fields(frozenset())
        flat: Any = pa.array(full.reshape(-1))
        size = full[0].size
        storage = pa.FixedSizeListArray.from_arrays(flat, size, mask=pa.array(missing))
        return [pa.ExtensionArray.from_storage(field.type, storage)]


def _make_lists(
    arrays: Sequence[NDArray[Any] | None],
    missing: NDArray[np.bool_],
    step: tuple[int, ...],
    dtype: np.dtype[Any],
) -> pa.Array[Any]:
    present = [array for array in arrays if array is not None]
    flat: Any = pa.array(np.concatenate([np.zeros(0, dtype), *(array.reshape(-1) for array in present)]))
    for size in reversed(step):
        flat = pa.FixedSizeListArray.from_arrays(flat, size)
    offsets = np.cumsum([0, *(0 if array is None else len(array) for array in arrays)])
    made: pa.Array[Any] = pa.LargeListArray.from_arrays(pa.array(offsets), flat, mask=pa.array(missing))
    return made


class _Header(NamedTuple):
    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[Any]
    offset: int


def _read_header(data: bytes, num_bytes: int, key: str) -> _Header:
    """Return the header of an array after checking that the array is as large as its header says."""
    file = io.BytesIO(data)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        header = _Header(*read[np.lib.format.read_magic(file)](file), file.tell())
    except (
        KeyError,
        ValueError,
        TypeError,
        OverflowError,
        MemoryError,
        RecursionError,
        SyntaxError,
    ) as error:
        raise BadMemberError(key, "an array of numpy.save", f"no such header ({show(str(error))})") from None
    shape, dtype = header.shape, header.dtype
    if dtype.kind not in _ARRAY_KINDS or dtype.itemsize > 8:
        advice = "Python objects are never unpickled. Save numbers." if dtype.hasobject else "Save numbers."
        raise BadMemberError(key, "an array of numbers", f"an array of {show(str(dtype))}", advice)
    expected = header.offset + dtype.itemsize * prod(map(int, shape))
    if min(shape, default=0) < 0 or len(shape) > MAX_DIMS or expected != num_bytes:
        raise BadMemberError(key, f"{expected} bytes for an array of {show(shape)}", f"{num_bytes} bytes")
    return header


def _read_array(data: bytes, key: str) -> NDArray[Any]:
    shape, is_fortran, dtype, offset = _read_header(data[:_ARRAY_HEADER_BYTES], len(data), key)
    return np.frombuffer(data, dtype, offset=offset).reshape(shape, order="F" if is_fortran else "C")
