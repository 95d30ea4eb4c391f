"""Arrays in a file: whatever goes in comes out, and whatever bytes are there, only `StateError` is raised."""

import tempfile
from pathlib import Path

import hypothesis.extra.numpy as arrays_of
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import StateError
from penstock.training.tensor_file import read_tensors, write_tensors

DTYPES = ("<f8", "<f4", "<f2", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "|b1", ">f4", ">i8")
TENSORS = st.dictionaries(
    st.text(max_size=8).filter(lambda name: name != "__metadata__"),
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: arrays_of.arrays(
            dtype, arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
        )
    ),
    max_size=4,
)
TEXTS = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)
CHANGES = st.lists(
    st.tuples(st.integers(0, 999), st.integers(0, 3), st.binary(max_size=3)), min_size=1, max_size=4
)
SAMPLE = {"a": np.arange(3, dtype=np.int16), "b": np.array(2.5), "c": np.zeros((2, 0), bool)}


@given(TENSORS, TEXTS)
@settings(max_examples=40)
def test_arrays_and_texts_are_read_as_they_were_written(tensors, texts):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "w.safetensors"
        digest = write_tensors(path, tensors, texts)
        found, metadata = read_tensors(path, digest)
        again = write_tensors(path, found, metadata)
    assert list(found) == list(tensors)
    assert metadata == texts
    assert again == digest
    for name, array in tensors.items():
        assert found[name].dtype == array.dtype.newbyteorder("<")
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.astype(found[name].dtype).tobytes()


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """A file to be changed, and its bytes."""
    path = tmp_path_factory.mktemp("law") / "w.safetensors"
    write_tensors(path, SAMPLE, {"of": "law"})
    return path, path.read_bytes()


@given(data=st.data())
@settings(max_examples=100)
def test_changed_file_is_read_or_refused(sample, data):
    path, whole = sample
    changed = bytearray(whole)
    for at, length, new in data.draw(CHANGES):
        changed[at % len(whole) : at % len(whole) + length] = new
    path.write_bytes(changed)
    try:
        found, _ = read_tensors(path)
    except StateError as error:
        assert error.path == str(path)  # noqa: PT017
        assert error.expected is not None  # noqa: PT017
    else:
        assert sum(array.nbytes for array in found.values()) <= len(changed)
