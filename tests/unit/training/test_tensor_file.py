"""Arrays in a file: what goes in comes out, and no file whatever makes the reader fail in another way."""

import hashlib
import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from penstock.errors import NoSuchPathError, PathError, StateError, WriteError
from penstock.training.tensor_file import read_tensors, write_tensors
from raising import mentions, raises_with

NAMES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
}
GOLDEN = (
    b"\x90\x00\x00\x00\x00\x00\x00\x00"
    b'{"__metadata__":{"of":"a test"},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},'
    b'"n":{"dtype":"I16","shape":[],"data_offsets":[8,10]}}    '
    b"\x00\x00\x80\x3f\x00\x00\x00\xc0"
    b"\xff\x01"
)
TENSORS = {"w": np.array([[1], [-2]], np.float32), "n": np.array(511, np.int16)}


def pack(header, body=b""):
    """Return the bytes of a file with some header, which may be any text."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def entry(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.fixture
def refuse(tmp_path):
    """Return a function that gives the error for a file of some bytes."""

    def read(data):
        path = tmp_path / "file.safetensors"
        path.write_bytes(data)
        with pytest.raises(StateError) as caught:
            read_tensors(path)
        assert caught.value.path == str(path)
        assert "damaged" in caught.value.advice
        return caught.value

    return read


def test_file_has_the_bytes_of_the_format(tmp_path):
    path = tmp_path / "w.safetensors"
    digest = write_tensors(path, TENSORS, {"of": "a test"})
    assert path.read_bytes() == GOLDEN
    assert digest == hashlib.sha256(GOLDEN).hexdigest()


def test_golden_file_is_read(tmp_path):
    path = tmp_path / "w.safetensors"
    path.write_bytes(GOLDEN)
    arrays, texts = read_tensors(path, hashlib.sha256(GOLDEN).hexdigest())
    assert texts == {"of": "a test"}
    assert list(arrays) == ["w", "n"]
    for name, array in TENSORS.items():
        np.testing.assert_array_equal(arrays[name], array, strict=True)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
@pytest.mark.parametrize("dtype", NAMES)
def test_array_of_each_dtype_and_shape_is_read_as_it_was_written(tmp_path, dtype, shape):
    size = int(np.prod(shape))
    array = np.frombuffer(bytes(range(1, 193)), dtype)[:size] if dtype != "bool" else np.arange(size) % 2 == 0
    array = array.reshape(shape)
    path = tmp_path / "w.safetensors"
    digest = write_tensors(path, {"before": np.ones(3, np.int8), "a": array}, {})
    arrays, texts = read_tensors(path, digest)
    assert (arrays["a"].dtype, arrays["a"].shape, texts) == (np.dtype(dtype), shape, {})
    assert arrays["a"].tobytes() == array.tobytes()
    length = int.from_bytes(path.read_bytes()[:8], "little")
    assert length % 8 == 0
    assert json.loads(path.read_bytes()[8 : 8 + length])["a"]["dtype"] == NAMES[dtype]


def test_big_endian_and_strided_arrays_are_stored_little_and_dense(tmp_path):
    path = tmp_path / "w.safetensors"
    grid = np.arange(12, dtype=">i4").reshape(3, 4)
    write_tensors(path, {"t": grid.T, "s": grid[::2, ::-1], "f": np.asfortranarray(grid)}, {})
    arrays, _ = read_tensors(path)
    assert {each.dtype for each in arrays.values()} == {np.dtype("<i4")}
    assert arrays["t"].tolist() == grid.T.tolist()
    assert arrays["s"].tolist() == grid[::2, ::-1].tolist()
    assert arrays["f"].tolist() == grid.tolist()


def test_arrays_that_are_read_may_be_changed(tmp_path):
    path = tmp_path / "w.safetensors"
    write_tensors(path, TENSORS, {})
    arrays, _ = read_tensors(path)
    arrays["w"] += 1
    assert arrays["w"].ravel().tolist() == [2.0, -1.0]
    assert read_tensors(path)[0]["w"].ravel().tolist() == [1.0, -2.0]


def test_file_without_arrays_is_one(tmp_path):
    path = tmp_path / "w.safetensors"
    write_tensors(path, {}, {})
    assert read_tensors(path) == ({}, {})


def test_header_without_texts_has_none(tmp_path):
    path = tmp_path / "w.safetensors"
    path.write_bytes(pack({"a": entry()}, b"\0\0\0\0"))
    arrays, texts = read_tensors(path)
    assert (arrays["a"].tolist(), texts) == ([0.0], {})


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([1j]), np.array([None])])
def test_array_of_another_dtype_is_refused_and_leaves_nothing(tmp_path, array):
    with raises_with(StateError, f"'x' {', '.join(NAMES.values())} {array.dtype}"):
        write_tensors(tmp_path / "w.safetensors", {"x": array}, {})
    assert list(tmp_path.iterdir()) == []


def test_file_replaces_another_completely(tmp_path):
    path = tmp_path / "w.safetensors"
    path.write_bytes(b"x" * 5000)
    write_tensors(path, TENSORS, {"of": "a test"})
    assert path.read_bytes() == GOLDEN
    assert list(tmp_path.iterdir()) == [path]


def test_write_to_a_path_that_cannot_be_written_names_the_path(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with raises_with(WriteError, path=str(tmp_path / "file" / "w.safetensors")):
        write_tensors(tmp_path / "file" / "w.safetensors", TENSORS, {})


def test_missing_file_or_folder_is_named(tmp_path):
    with raises_with(NoSuchPathError, "w.safetensors"):
        read_tensors(tmp_path / "w.safetensors")
    with raises_with(PathError, "(Is a directory)", path=str(tmp_path)):
        read_tensors(tmp_path)


def test_file_with_another_sha_is_damaged(tmp_path):
    path = tmp_path / "w.safetensors"
    digest = write_tensors(path, TENSORS, {})
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(StateError) as caught:
        read_tensors(path, digest)
    got = hashlib.sha256(data).hexdigest()
    assert mentions(caught.value, f"{path} SHA-256 {digest} {got}")


def test_file_cut_at_any_byte_is_refused(refuse):
    for length in range(len(GOLDEN)):
        assert refuse(GOLDEN[:length]).expected == "a safetensors file"


def test_file_with_a_byte_too_many_is_refused(refuse):
    assert refuse(GOLDEN + b"\0").expected == "a safetensors file"


def test_file_with_any_byte_of_its_header_changed_is_read_or_refused(tmp_path):
    path = tmp_path / "w.safetensors"
    num_read = 0
    for at in range(len(GOLDEN) - 10):
        for change in (0x01, 0x10):
            data = bytearray(GOLDEN)
            data[at] ^= change
            path.write_bytes(data)
            try:
                arrays, _ = read_tensors(path)
            except StateError:
                continue
            num_read += 1  # a letter of a name, or of a text
            assert sum(array.nbytes for array in arrays.values()) == 10
    assert 0 < num_read < 60


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x02\0\0\0\0\0\0",
        b"\x03\0\0\0\0\0\0\0{}",
        b"\xff" * 8 + b"{}",
        pack(b""),
        pack(b"{"),
        pack(b"\xff\xfe{}"),
        pack(b"[" * 100_000),
        pack(b"[]"),
        pack(b"null"),
        pack({"__metadata__": []}),
        pack({"__metadata__": {"a": 1}}),
        pack({}, b"\0"),
        pack(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":' + b"9" * 5000 + b"}}", bytes(4)),
        pack(b'{"__metadata__":{"a":"\\ud800"}}'),
    ],
)
def test_invalid_header_is_refused(refuse, data):
    assert refuse(data).expected == "a safetensors file"


@pytest.mark.parametrize(
    "facts",
    [
        None,
        [],
        7,
        {},
        {"dtype": "F32", "shape": [1]},
        {"shape": [1], "data_offsets": [0, 4]},
        entry(dtype="BF16"),
        entry(dtype="f32"),
        entry(dtype=["F32"]),
        entry(dtype=None),
        entry(shape=[-1]),
        entry(shape=[-1, -1]),
        entry(shape=[1.0]),
        entry(shape=[True]),
        entry(shape=["1"]),
        entry(shape=[2**63]),
        entry(offsets=[-4, 0]),
        entry(offsets=[0.0, 4.0]),
        {"dtype": "F32", "shape": 1, "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1], "data_offsets": "04"},
    ],
)
def test_entry_of_another_form_is_refused(refuse, facts):
    refuse(pack({"a": facts}, b"\0\0\0\0"))


@pytest.mark.parametrize(
    ("header", "num_bytes"),
    [
        ({"a": entry(offsets=[0, 8])}, 8),
        ({"a": entry(offsets=[4, 0])}, 4),
        ({"a": entry(offsets=[0])}, 4),
        ({"a": entry(offsets=[0, 4, 4])}, 4),
        ({"a": entry(offsets=[4, 8])}, 8),  # a gap before
        ({"a": entry(), "b": entry()}, 4),  # overlap
        (
            {"a": entry(), "b": entry(offsets=[8, 12])},  # a gap between
            12,
        ),
        ({"a": entry()}, 3),
        ({"a": entry(shape=[2**40, 2**40], offsets=[0, 2**62])}, 4),
        ({"a": entry(shape=[2**62], offsets=[0, 2**62])}, 4),
    ],
)
def test_array_at_another_offset_is_refused(refuse, header, num_bytes):
    assert refuse(pack(header, bytes(num_bytes))).expected == "a safetensors file"


@pytest.mark.parametrize(
    ("shape", "num_bytes"),
    [
        ([0, 2**62, 2**62], 0),  # no bytes, and more than an array can be
        ([1] * 65, 4),  # more dimensions than NumPy has
        ([0] * 1000, 0),
    ],
)
def test_shape_that_no_array_can_have_is_refused(refuse, shape, num_bytes):
    header = {"a": entry(shape=shape, offsets=[0, num_bytes])}
    refuse(pack(header, bytes(num_bytes)))


def test_names_and_texts_may_be_any_unicode(tmp_path):
    path = tmp_path / "w.safetensors"
    names = ["", "a/b", "../up", "é\u2028", 'quo"te', "\0", "\U0001f9a9"]
    write_tensors(path, {name: np.array(i, np.uint8) for i, name in enumerate(names)}, {"é": "\0"})
    arrays, texts = read_tensors(path)
    assert list(arrays) == names
    assert texts == {"é": "\0"}


@pytest.mark.parametrize(("name", "text"), [("\ud800", "a"), ("a", "\udfff")])
def test_half_of_a_character_is_refused_before_anything_is_written(tmp_path, name, text):
    with pytest.raises(StateError) as caught:
        write_tensors(tmp_path / "w.safetensors", {name: np.zeros(1)}, {"of": text})
    assert caught.value.expected == "Unicode"
    assert list(tmp_path.iterdir()) == []


def test_files_of_the_package_are_read(tmp_path):
    path = tmp_path / "w.safetensors"
    save_file({"b": np.arange(3, dtype=np.int16), "a": np.ones((2, 2), np.float32)}, path, {"of": "them"})
    arrays, texts = read_tensors(path)
    assert {name: array.tolist() for name, array in arrays.items()} == {"a": [[1, 1], [1, 1]], "b": [0, 1, 2]}
    assert texts == {"of": "them"}


def test_package_reads_files_that_are_written_here(tmp_path):
    path = tmp_path / "w.safetensors"
    write_tensors(path, TENSORS, {"of": "a test"})
    for name, array in load_file(path).items():
        np.testing.assert_array_equal(array, TENSORS[name], strict=True)
