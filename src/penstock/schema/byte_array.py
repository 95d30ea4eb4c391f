"""Arrays in byte strings: the element types and shapes that values of one length may have.

In: some values of a bytes field. Out: the tensors that they may be, the most plausible first; or the format
in which a program stored the shape with the elements, which no field type reads.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from math import isqrt, prod
from typing import Final, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from penstock.foundation.wording import declare
from penstock.schema.array import Tensor
from penstock.schema.element_type import (
    FLOATS,
    LARGEST,
    MOST_ODD,
    are_usual_bytes,
    find_big_endian,
    find_types,
    has_rows,
)
from penstock.schema.field import TensorDtype

_MOST_PROPOSALS: Final = 5
_MOST_SHAPES: Final = 3  # of the element type that fits best
_FEWEST_BYTES: Final = 8
_FEWEST_SIDE: Final = 4  # of a grayscale image; images with colours need twice as many

_DENORMAL: Final = 1e-30  # smaller numbers are rarely more than rounding errors
_VECTOR_SIZES: Final = (64, 128, 256, 384, 512, 768, 1024, 1536, 2048, 4096)
_VECTOR_NAME: Final = re.compile(
    r"emb|vec|feat|signal|audio|wave|sound|series|code|token|ids?$", re.IGNORECASE
)
_RECOGNIZABLE: Final[tuple[TensorDtype, ...]] = ("uint16", "uint32", "float32", "float64")
"""Types that are offered beside bytes where the values show no type."""
_IMAGE_NAME: Final = re.compile(r"im(g|age)|photo|pic|pixel|frame|mask|scan|map|gram|x$", re.IGNORECASE)

_NPY_MAGIC: Final = b"\x93NUMPY"
_PROTO_DTYPES: Final = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    9: "int64",
    10: "bool",
    17: "uint16",
    19: "float16",
    22: "uint32",
    23: "uint64",
}
"""Element types by their number in `tensorflow.DataType`."""


class ArrayFormat(NamedTuple):
    """A format that stores element type and shape with the elements.

    Attributes:
        writer: The function that writes it.
        tensor: The array in the first value.
        code: Python code that reads a value, with `{}` for the value.
    """

    writer: str
    tensor: Tensor
    code: str


def propose_arrays(name: str, values: Sequence[bytes]) -> tuple[Tensor, ...]:
    """Return the arrays that byte strings of one length may hold, the most plausible first.

    The values decide the element type. Where they show none, several types are returned, for a user who
    recognizes the elements; bytes always fit. There are none for texts and for arrays to be converted.

    `name`: name of the field, which tells vectors from images of the same size. `values`: some values, all of
    one length; otherwise nothing is returned.
    """
    size = len(values[0]) if values else 0
    if size < _FEWEST_BYTES or any(len(value) != size for value in values):
        return ()
    if find_conversion(name, values) is not None or all(map(_is_text, values)):
        return ()
    dtypes: list[TensorDtype] = [*find_types(values), "uint8"]
    if dtypes == ["uint8"] and not are_usual_bytes(values):
        dtypes += [each for each in _RECOGNIZABLE if size % np.dtype(each).itemsize == 0]
    found: list[Tensor] = []
    for rank, dtype in enumerate(dtypes):
        shapes = _list_shapes(name, values, dtype)
        found += [Tensor(shape, dtype, "raw") for shape in shapes[: _MOST_SHAPES if rank == 0 else 1]]
    return tuple(found[:_MOST_PROPOSALS])


def has_clear_type(values: Sequence[bytes]) -> bool:
    """Return whether the values themselves show the element type of the first array that is proposed."""
    return bool(find_types(values)) or are_usual_bytes(values)


def _is_text(value: bytes) -> bool:
    return value.isascii() and value.decode("ascii").isprintable()


def view_array(tensor: Tensor, value: bytes) -> NDArray[np.generic]:
    """Return a value as an array of the proposed shape."""
    dtype = np.dtype(tensor.dtype).newbyteorder("<")
    return np.frombuffer(value, dtype, tensor.size).reshape(tensor.shape)


def declare_tensor(name: str, tensor: Tensor) -> str:
    """Return the argument that declares a tensor, as messages name it."""
    return declare(name, f"Tensor({tensor.shape}, {tensor.dtype!r})")


def advise_declaration(name: str, values: Sequence[bytes]) -> str:
    """Return how to make an input of a field of bytes, as one sentence; "" if its values give no clue."""
    if not values:
        return ""
    if (found := find_conversion(name, values)) is not None:
        dims = " x ".join(map(str, found.tensor.shape)) or "scalar"
        return (
            f"Its values are arrays that {found.writer} wrote ({dims} {found.tensor.dtype}), which no field "
            f"type reads: convert the records with {found.code.format('value')}; 'penstock inspect' prints "
            "a program for it."
        )
    proposals = propose_arrays(name, values)
    if not proposals:
        return ""
    size = f"{len(values[0]):,} bytes"
    first, *others = [declare_tensor(name, each) for each in proposals]
    more = f", or {others[0]}" if others else ""
    what = f"If its values of {size} are arrays of tobytes(), declare them when you open the data"
    return f"{what}: {first}{more}."


def find_conversion(name: str, values: Sequence[bytes]) -> ArrayFormat | None:
    """Return the format of arrays that no field type reads: with their shapes, or big-endian."""
    if (found := find_array_format(values[0])) is not None:
        return found
    size = len(values[0])
    if size < _FEWEST_BYTES or any(len(value) != size for value in values) or all(map(_is_text, values)):
        return None
    dtype = find_big_endian(values)
    if dtype is None:
        return None
    shape = _list_shapes(name, values, dtype)[0]
    stored = np.dtype(dtype).newbyteorder(">").str
    code = f"np.frombuffer({{}}, {stored!r}).astype({dtype!r}).reshape({shape})"
    return ArrayFormat("a big-endian program", Tensor(shape, dtype, "raw"), code)


def find_array_format(value: bytes) -> ArrayFormat | None:
    """Return the format of an array that was stored with its shape; None for other bytes."""
    return _read_npy(value) or _read_proto(value)


def _read_npy(value: bytes) -> ArrayFormat | None:
    if not value.startswith(_NPY_MAGIC):
        return None
    file = io.BytesIO(value)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        shape, _, dtype = read[np.lib.format.read_magic(file)](file)
    except (KeyError, ValueError):
        return None
    tensor = _make_tensor(shape, dtype.name)
    return None if tensor is None else ArrayFormat("np.save", tensor, "np.load(io.BytesIO({}))")


def _read_proto(value: bytes) -> ArrayFormat | None:
    """Read a TensorProto: a type, a shape, and the elements in the field `tensor_content`."""
    if not value.startswith(b"\x08"):
        return None
    number, at = _read_varint(value, 1)
    if number not in _PROTO_DTYPES or value[at : at + 1] != b"\x12":
        return None
    length, at = _read_varint(value, at + 1)
    dims, end = _read_dims(value[at : at + length]), at + length
    if dims is None or value[end : end + 1] != b"\x22":
        return None
    num_bytes, start = _read_varint(value, end + 1)
    tensor = _make_tensor(dims, _PROTO_DTYPES[number])
    if tensor is None or not num_bytes == tensor.num_bytes == len(value) - start:
        return None
    code = f"np.frombuffer({{}}, {tensor.dtype!r}, offset={start}).reshape({tensor.shape})"
    return ArrayFormat("tf.io.serialize_tensor", tensor, code)


def _read_dims(shape: bytes) -> tuple[int, ...] | None:
    """Return the dimensions of a TensorShapeProto: messages with the field `size` alone."""
    dims, at = [], 0
    while at < len(shape):
        length, start = _read_varint(shape, at + 1)
        if shape[at] != 0x12 or shape[start : start + 1] != b"\x08":
            return None
        size, at = _read_varint(shape, start + 1)
        if at != start + length:
            return None
        dims.append(size)
    return tuple(dims)


def _read_varint(value: bytes, at: int) -> tuple[int, int]:
    """Return an integer and the position after it; −1 if there is none."""
    result = 0
    for count, byte in enumerate(value[at : at + 10]):
        result |= (byte & 127) << 7 * count
        if byte < 128:
            return result, at + count + 1
    return -1, len(value)


def _make_tensor(shape: tuple[int, ...], dtype: str) -> Tensor | None:
    if dtype not in get_args(TensorDtype) or min(shape, default=1) < 1:
        return None
    return Tensor(shape, dtype, "raw")  # type: ignore[arg-type]


def _list_shapes(name: str, values: Sequence[bytes], dtype: TensorDtype) -> list[tuple[int, ...]]:
    """Return the shapes that arrays of one element type may have, the most plausible first."""
    count = len(values[0]) // np.dtype(dtype).itemsize
    flat: tuple[int, ...] = (count,)
    images = [
        (side, side, *depth)
        for depth in ((), (3,), (4,))
        if (side := isqrt(count // prod(depth))) >= _FEWEST_SIDE * (1 + len(depth))
        and side * side * prod(depth) == count
    ]
    is_image = bool(_IMAGE_NAME.search(name)) and not _VECTOR_NAME.search(name)
    if is_image and not images:
        images = [*_list_oblongs(count)]
    is_vector = bool(_VECTOR_NAME.search(name)) or (dtype in FLOATS and count in _VECTOR_SIZES) or count < 64
    if not is_image and not is_vector:
        is_image = any(has_rows(values, dtype, prod(shape[1:])) for shape in images)
    return [*images, flat] if is_image else [flat, *images]


def _list_oblongs(count: int) -> Iterator[tuple[int, ...]]:
    """Yield heights and widths of images that are not square: multiples of 8 with usual proportions."""
    for depth in ((3,), ()):
        area = count // prod(depth)
        if area * prod(depth) != count:
            continue
        sides = [side for side in range(8, isqrt(area) + 1, 8) if area % (side * 8) == 0]
        ratios = {side: area / side / side for side in sides}
        best = sorted((abs(ratio - 4 / 3), side) for side, ratio in ratios.items() if ratio <= 2)
        yield from ((side, area // side, *depth) for _, side in best[:1])


def find_odd_values(values: NDArray[np.generic]) -> str:
    """Return which elements suggest another element type than the type of the array; "" if none do."""
    if values.dtype.kind not in "fiu" or values.dtype.itemsize < 2 or not values.size:
        return ""
    with np.errstate(invalid="ignore"):
        numbers = values.astype(np.float64).ravel()
        magnitudes = np.abs(numbers)
        odd = (magnitudes >= LARGEST * 10) | ((magnitudes > 0) & (magnitudes < _DENORMAL))
    if (odd | np.isnan(numbers)).mean() < MOST_ODD * 10 or not odd.any():
        return ""  # NaN alone may mark missing elements
    return (
        f"values such as {numbers[int(np.argmax(odd))]:.3g}, which hint at another element type or byte order"
    )
