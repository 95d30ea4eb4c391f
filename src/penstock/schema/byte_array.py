"""Arrays in byte strings: the element types and shapes that values of one length may have.

In: some values of a bytes field. Out: the tensors that they may be, the most plausible first, judged by the
numbers that their bytes make; or the format in which a program stored the shape with the elements, which no
field type reads.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from math import isqrt, prod
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from penstock.foundation.wording import declare
from penstock.schema.array import Tensor
from penstock.schema.field import TensorDtype

_Order: TypeAlias = Literal["<", ">"]

_MOST_ELEMENTS: Final = 1 << 16  # of a value, to judge an element type by
_TINIEST: Final = {"float16": 6.1e-5, "float32": 1e-8, "float64": 1e-8}
_LARGEST: Final = 1e8
"""Magnitude of numbers that someone measured or computed."""
_MOST_ODD: Final = 1e-3
"""Maximum share of elements beyond the usual magnitudes."""
_MOST_SMALL_INTEGERS: Final = 0.99
_FLOATS: Final[tuple[TensorDtype, ...]] = ("float16", "float32", "float64")
"""Floating-point types, the smallest first."""
_MISSING: Final = {"float16": 0x7E00, "float32": 0x7FC00000, "float64": 0x7FF8 << 48}
"""Bits of the NaN that programs write, without its sign; bytes of another type make other ones."""
_INTEGERS: Final[dict[str, int]] = {"int64": 40, "int32": 20}
"""Bits that usual values of a type have at most; values of a wrong type have more."""
_USUAL_INT16: Final = 1 << 13
_FEWEST_VALUES: Final = 16  # distinct lower bytes of an integer; with fewer, each byte is a code
_LEAST_DIFFERENCE: Final = 0.2  # between the distributions of the upper and lower bytes of an element
_SMOOTH: Final = 0.5  # differences of neighbours, relative to differences of other elements
_ROUGH: Final = 0.8
_HUGE: Final = 1e200  # larger elements, whose sums may overflow, and NaN count as zeros
_STRIDES: Final = (1, 3, 4)  # bytes between neighbours, for each number of channels

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


def _find_types(values: Sequence[bytes], order: _Order = "<") -> tuple[TensorDtype, ...]:
    """Return the element types of more than one byte that the values may have, the most plausible first."""
    size = len(values[0])
    types: list[TensorDtype] = [
        each for each in (*_FLOATS, "int64", "int32") if size % np.dtype(each).itemsize == 0
    ]
    views = {each: _view(values, each, order) for each in types}
    # Of several floating-point types, the smallest whose numbers all have usual magnitudes comes first: bytes
    # of another type are NaN, 1e-30 or 1e30.
    found: list[TensorDtype] = [
        each for each in _FLOATS if each in views and _are_usual_floats(views[each], order)
    ]
    found += [each for each in types if each in _INTEGERS and _are_usual_integers(views[each])]
    if size % 2 == 0:
        found += _find_short(values, order)
    return tuple(found)


def _find_big_endian(values: Sequence[bytes]) -> TensorDtype | None:
    """Return the element type of values whose bytes are in the reverse order; None if nothing shows that."""
    if _find_types(values) or _are_codes(_view(values, "uint8", "<")):
        return None
    return next(iter(_find_types(values, ">")), None)


def _are_usual_bytes(values: Sequence[bytes]) -> bool:
    """Return whether values are bytes by themselves: few distinct ones, or similar ones of neighbours."""
    elements = _view(values, "uint8", "<")
    if not elements.any():
        return False
    return _are_codes(elements) or min(_compare_neighbours(elements, each) for each in _STRIDES) < _SMOOTH


def _has_rows(values: Sequence[bytes], dtype: TensorDtype, width: int) -> bool:
    """Return whether elements are like those `width` elements later, as in the rows of an image."""
    return _compare_neighbours(_view(values, dtype, "<"), width) < _ROUGH


def _are_codes(elements: NDArray[np.generic]) -> bool:
    return len(np.unique(elements)) <= _FEWEST_VALUES


def _view(values: Sequence[bytes], dtype: str, order: _Order) -> NDArray[np.generic]:
    wanted = np.dtype(dtype).newbyteorder(order)
    count = min(len(values[0]) // wanted.itemsize, _MOST_ELEMENTS)
    return np.concatenate([np.frombuffer(value, wanted, count) for value in values])


def _are_usual_floats(values: NDArray[np.generic], order: _Order) -> bool:
    with np.errstate(invalid="ignore", over="ignore"):
        numbers = np.abs(values.astype(np.float64))
        lower = (numbers[::2] if order == "<" else numbers[1::2]) > 0
    bits = np.abs(values).view(values.dtype.str.replace("f", "u"))
    is_missing = (bits == _MISSING[values.dtype.name]) | np.isinf(numbers)
    others = numbers[(numbers != 0) & ~is_missing]
    if not len(others) or (len(numbers) > 1 and not lower.any()):
        return False  # the second case: lower halves of larger elements, whose fractions end early
    odd = ~((others >= _TINIEST[values.dtype.name]) & (others <= _LARGEST))
    return bool(odd.mean() <= _MOST_ODD) and _differ(values[numbers != 0])


def _are_usual_integers(values: NDArray[np.generic]) -> bool:
    """Whether the upper bits are only a sign."""
    numbers = values.astype(np.int64)
    largest = max(abs(int(numbers.max())), abs(int(numbers.min())))
    return bool(numbers.any()) and largest < 1 << _INTEGERS[values.dtype.name]


def _find_short(values: Sequence[bytes], order: _Order) -> list[TensorDtype]:
    """Return the type of two bytes, if numbers are small, or neighbours are similar but not their bytes."""
    signed, unsigned = _view(values, "int16", order), _view(values, "uint16", order)
    numbers = signed.astype(np.float64)
    upper, lower = np.divmod(unsigned.astype(np.int64), 256)
    if len(np.unique(lower)) < _FEWEST_VALUES or not _differ(unsigned[unsigned != 0]):
        return []
    if int(upper.max()) * 4 < int(lower.max()):
        return ["int16"]
    has_signs = numbers.min() < 0 < numbers.max() and abs(numbers.mean()) < numbers.std()
    if has_signs and (np.abs(numbers) < _USUAL_INT16).mean() >= _MOST_SMALL_INTEGERS:
        return ["int16"]
    if _compare_neighbours(_view(values, "uint8", "<"), 1) < _ROUGH:
        return []
    found: dict[TensorDtype, float] = {
        "uint16": _compare_neighbours(unsigned, 1),
        "int16": _compare_neighbours(signed, 1),
    }
    best = min(found, key=found.__getitem__)
    return [best] if found[best] < _SMOOTH else []


def _differ(values: NDArray[np.generic]) -> bool:
    """Return whether the uppermost bytes of elements have other values than the lowest ones."""
    parts = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)
    first, last = (np.bincount(parts[:, at], minlength=256) / len(parts) for at in (0, -1))
    return bool(np.abs(first - last).sum() / 2 >= _LEAST_DIFFERENCE)


def _compare_neighbours(elements: NDArray[np.generic], stride: int) -> float:
    """Return the mean difference of neighbours, relative to elements that are far from each other."""
    if len(elements) <= stride:
        return 1.0
    order = np.random.default_rng(0).permutation(len(elements))
    with np.errstate(invalid="ignore", over="ignore"):
        numbers = elements.astype(np.float64)
        numbers[~(np.abs(numbers) < _HUGE)] = 0.0
    others = np.abs(numbers - numbers[order]).mean()
    near = np.abs(numbers[stride:] - numbers[:-stride]).mean()
    return float(near / others) if others else 1.0


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

    `name`: name of the field, which distinguishes vectors from images of the same size. `values`: some
    values, all of one length; otherwise nothing is returned.
    """
    size = len(values[0]) if values else 0
    if size < _FEWEST_BYTES or any(len(value) != size for value in values):
        return ()
    if find_conversion(name, values) is not None or all(map(_is_text, values)):
        return ()
    dtypes: list[TensorDtype] = [*_find_types(values), "uint8"]
    if dtypes == ["uint8"] and not _are_usual_bytes(values):
        dtypes += [each for each in _RECOGNIZABLE if size % np.dtype(each).itemsize == 0]
    found: list[Tensor] = []
    for rank, dtype in enumerate(dtypes):
        shapes = _list_shapes(name, values, dtype)
        found += [Tensor(shape, dtype, "raw") for shape in shapes[: _MOST_SHAPES if rank == 0 else 1]]
    return tuple(found[:_MOST_PROPOSALS])


def has_clear_type(values: Sequence[bytes]) -> bool:
    """Return whether the values themselves show the element type of the first array that is proposed."""
    return bool(_find_types(values)) or _are_usual_bytes(values)


def _is_text(value: bytes) -> bool:
    return value.isascii() and value.decode("ascii").isprintable()


def view_array(tensor: Tensor, value: bytes) -> NDArray[np.generic]:
    """Return a value as an array of the proposed shape."""
    dtype = np.dtype(tensor.dtype).newbyteorder("<")
    return np.frombuffer(value, dtype, tensor.size).reshape(tensor.shape)


def _declare_tensor(name: str, tensor: Tensor) -> str:
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
    first, *others = [_declare_tensor(name, each) for each in proposals]
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
    dtype = _find_big_endian(values)
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
    is_vector = bool(_VECTOR_NAME.search(name)) or (dtype in _FLOATS and count in _VECTOR_SIZES) or count < 64
    if not is_image and not is_vector:
        is_image = any(_has_rows(values, dtype, prod(shape[1:])) for shape in images)
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
    """Return which elements suggest another element type; "" if none do."""
    if values.dtype.kind not in "fiu" or values.dtype.itemsize < 2 or not values.size:
        return ""
    with np.errstate(invalid="ignore"):
        numbers = values.astype(np.float64).ravel()
        magnitudes = np.abs(numbers)
        odd = (magnitudes >= _LARGEST * 10) | ((magnitudes > 0) & (magnitudes < _DENORMAL))
    if (odd | np.isnan(numbers)).mean() < _MOST_ODD * 10 or not odd.any():
        return ""  # NaN alone may mark missing elements
    return (
        f"values such as {numbers[int(np.argmax(odd))]:.3g}, which hint at another element type or byte order"
    )
