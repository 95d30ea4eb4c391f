"""Arrays that byte strings of one length may hold: the values show the element type, the name the shape."""

import io
import struct

import numpy as np
import pytest

from penstock.schema.array import Tensor
from penstock.schema.byte_array import (
    advise_declaration,
    find_array_format,
    find_conversion,
    find_odd_values,
    has_clear_type,
    propose_arrays,
    view_array,
)

RNG = np.random.default_rng(0)
WHOLE = RNG.integers(0, 256, (16, 28, 28))
RAMP = np.add.outer(np.arange(64), np.arange(64)) % 126

CASES = {
    "float32 in 0..1": ("image", RNG.random((16, 64, 64)).astype("f4")),
    "float32 of whole numbers": ("image", WHOLE.astype("f4")),
    "float32 one-hot": ("x", np.eye(16, 36, dtype="f4").reshape(16, 6, 6)),
    "float16": ("image", RNG.random((16, 28, 28)).astype("f2")),
    "float64 vector": ("embedding", RNG.normal(size=(16, 100))),
    "float64 of rounded values": ("vec", RNG.normal(size=(16, 100)).astype("f4").astype("f8")),
    "float64 of whole numbers": ("features", RNG.integers(0, 10, (16, 50)).astype("f8")),
    "float32 vector of a usual size": ("z", RNG.normal(size=(16, 256)).astype("f4")),
    "uint8": ("image", WHOLE.astype("u1")),
    "uint8 colours": ("image", RNG.integers(0, 256, (16, 32, 32, 3)).astype("u1")),
    "uint8 mask": ("mask", RNG.integers(0, 2, (16, 28, 28)).astype("u1")),
    "uint8 of few pixels": ("image", (np.where(RNG.random((16, 28, 28)) > 0.8, WHOLE, 0)).astype("u1")),
    "uint8 oblong": ("photo", RNG.integers(0, 256, (2, 24, 40, 3)).astype("u1")),
    "int64": ("counts", RNG.integers(0, 1000, (16, 50))),
    "int32": ("counts", RNG.integers(-500, 1000, (16, 50)).astype("i4")),
    "float32 with missing elements": (
        "image",
        np.where(RNG.random((16, 32, 32)) < 0.2, np.nan, RNG.random((16, 32, 32))).astype("f4"),
    ),
    "float64 with missing elements": (
        "vec",
        np.where(RNG.random((16, 50)) < 0.5, np.nan, RNG.normal(size=(16, 50))),
    ),
    "float32 with infinities": (
        "embedding",
        np.where(RNG.random((16, 768)) > 0.99, np.inf, RNG.normal(size=(16, 768))).astype("f4"),
    ),
    "float32 with empty values": (
        "image",
        RNG.random((16, 8, 8)).astype("f4") * (np.arange(16) > 3)[:, None, None],
    ),
    "int16 of a microphone": ("audio", RNG.normal(0, 3000, (4, 8000)).astype("i2")),
    "int16 of a loud tone": ("audio", (30_000 * np.sin(np.arange(16_000) / 20)).astype("i2").reshape(2, -1)),
    "uint16 of a scanner": ("scan", (RAMP * 500 + RNG.integers(0, 900, (16, 64, 64))).astype("u2")),
    "int32 without a name": ("v", RNG.integers(0, 1000, (16, 100)).astype("i4")),
    "float32 rows without a name": ("v", (RAMP + RNG.random((16, 64, 64))).astype("f4")[:, :48, :48]),
    "int16 of a scanner": ("scan", RNG.integers(0, 4096, (16, 64, 64)).astype("i2")),
}


@pytest.mark.parametrize(("name", "arrays"), CASES.values(), ids=CASES)
def test_first_proposal_is_the_stored_array(name, arrays):
    values = [array.tobytes() for array in arrays]
    first = propose_arrays(name, values)[0]
    assert (first.dtype, first.shape) == (arrays.dtype.name, arrays.shape[1:])
    np.testing.assert_array_equal(view_array(first, values[1]), arrays[1])


@pytest.mark.parametrize(
    ("name", "arrays"),
    [
        ("image", RNG.random((16, 64, 64)).astype(">f4")),
        ("features", RNG.normal(size=(16, 50)).astype(">f8")),
        ("scan", RNG.integers(0, 4096, (16, 64, 64)).astype(">i2")),
        ("tokens", RNG.integers(0, 30_000, (16, 100)).astype(">i4")),
        ("tokens", RNG.integers(0, 30_000, (16, 100)).astype(">i8")),
    ],
    ids=lambda each: each if isinstance(each, str) else each.dtype.str,
)
def test_big_endian_arrays_are_read_by_the_code_that_converts_them(name, arrays):
    values = [array.tobytes() for array in arrays]
    assert propose_arrays(name, values) == ()
    found = find_conversion(name, values)
    assert found.tensor.shape == arrays.shape[1:]
    read = eval(found.code.format("value"), {"np": np, "value": values[1]})  # noqa: S307 - code that users are given
    np.testing.assert_array_equal(read, arrays[1])
    assert read.dtype == arrays.dtype.newbyteorder("=")
    assert "big-endian" in advise_declaration(name, values)


@pytest.mark.parametrize(("name", "arrays"), CASES.values(), ids=CASES)
def test_little_endian_arrays_need_no_conversion(name, arrays):
    assert find_conversion(name, [array.tobytes() for array in arrays]) is None


@pytest.mark.parametrize("size", [32, 1024, 4096])
def test_random_bytes_show_no_type_and_get_several_to_recognize(size):
    values = [RNG.bytes(size) for _ in range(16)]
    assert not has_clear_type(values)
    assert find_conversion("image", values) is None
    dtypes = [each.dtype for each in propose_arrays("image", values)]
    assert dtypes[0] == "uint8"
    assert {"uint16", "uint32"} <= {*dtypes}


@pytest.mark.parametrize(
    "values",
    [
        [np.eye(4, 64, dtype="u1").tobytes()],
        [(RAMP * 2).astype("u1").tobytes()],
        [RNG.random(64).astype("f4").tobytes()] * 2,
    ],
)
def test_values_with_a_clear_type(values):
    assert has_clear_type(values)


def test_fixed_length_texts_are_no_arrays():
    assert propose_arrays("code", [b"3f2504e0-4f89-41d3", b"9a0c0305-e82c-5511"]) == ()


def test_all_proposals_have_the_size_of_the_values_and_bytes_are_among_them():
    found = propose_arrays("image", [bytes(range(256)) * 64] * 2)
    assert all(each.num_bytes == 16384 for each in found)
    assert ("uint8", (128, 128)) in [(each.dtype, each.shape) for each in found]
    assert len(found) <= 5


@pytest.mark.parametrize("values", [[], [b"1234567"], [bytes(16), bytes(24)]])
def test_no_proposal_without_values_of_one_usable_length(values):
    assert propose_arrays("image", values) == ()
    assert advise_declaration("image", values) == ""


def saved(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_format_of_np_save_is_recognized():
    array = np.arange(6, dtype="f4").reshape(2, 3)
    found = find_array_format(saved(array))
    assert found is not None
    assert (found.writer, found.tensor) == ("np.save", Tensor((2, 3), "float32", "raw"))
    assert propose_arrays("image", [saved(array)]) == ()
    assert "np.load(io.BytesIO(value))" in advise_declaration("image", [saved(array)])


def tensor_proto(array, number: int, content: bytes | None = None) -> bytes:
    """Return the bytes of `tf.io.serialize_tensor`."""
    dims = b"".join(b"\x12" + bytes([2, 8, size]) for size in array.shape)
    content = array.tobytes() if content is None else content
    return bytes([8, number, 0x12, len(dims)]) + dims + bytes([0x22, len(content)]) + content


def test_format_of_serialize_tensor_is_recognized_and_its_code_reads_a_value():
    array = np.arange(6, dtype="f4").reshape(2, 3)
    value = tensor_proto(array, 1)
    found = find_array_format(value)
    assert found is not None
    assert (found.writer, found.tensor) == ("tf.io.serialize_tensor", Tensor((2, 3), "float32", "raw"))
    read = eval(found.code.format("value"), {"np": np, "value": value})  # noqa: S307 - code that users are given
    np.testing.assert_array_equal(read, array)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x08",
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00\xff\xff{",
        saved(np.array([1])).replace(b"<i8", b"<i9"),
        saved(np.zeros((0, 3))),
        saved(np.array(["a"])),
        tensor_proto(np.arange(3, dtype="f4"), 1, b"1234"),
        tensor_proto(np.arange(3, dtype="f4"), 7),
        tensor_proto(np.arange(3, dtype="f4"), 1)[:-1],
        b"\x08\x01\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        struct.pack("<64f", *range(64)),
    ],
)
def test_other_bytes_have_no_format(value):
    assert find_array_format(value) is None


@pytest.mark.parametrize(
    ("values", "is_odd"),
    [
        (RNG.random((4, 8, 8)).astype("f4"), False),
        (RNG.integers(0, 256, (4, 8, 8)), False),
        (np.where(RNG.random((4, 8, 8)) < 0.3, np.nan, 1.0), False),  # missing elements
        (RNG.random((4, 8, 8)).astype("f4").view("i4"), True),
        (RNG.random((4, 8, 8)).astype("f4").byteswap(), True),
        (RNG.integers(0, 256, (4, 8, 8)).view("f8"), True),  # denormals
        (RNG.integers(0, 256, (4, 8, 8)).astype("u1"), False),
        (np.zeros((0, 8)), False),
    ],
)
def test_odd_values_hint_at_a_wrong_declaration(values, is_odd):
    assert bool(find_odd_values(values)) == is_odd
