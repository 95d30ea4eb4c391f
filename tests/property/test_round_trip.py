"""Converted values are read back: the same values, types and shapes, whatever arrays it was given in."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock import fields as f
from penstock.columns import Bytes, Column, Dense, Ragged
from random_tables import STRINGS, TENSOR_DTYPES, arrays

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def convert(columns: dict[str, Any], **declared: Any) -> Any:
    """Convert columns in their order into one split, and return it with its schema."""
    with tempfile.TemporaryDirectory() as folder:
        dataset = ps.convert(columns, Path(folder) / "out", split={"train": 1.0}, shuffle=False, **declared)
        columns_read = dataset["train"].columns()
    return columns_read, dataset.schema


def rows_of(column: Column) -> list[Any]:
    """Return the values of a column, None where there is none."""
    there = [True] * len(column) if column.present is None else column.present.tolist()
    if isinstance(column, Dense):
        values = column.values.tolist()
    elif isinstance(column, Bytes):
        values = column.tolist()
    else:
        values = [list(column[row]) for row in range(len(column))]
    return [value if has else None for value, has in zip(values, there, strict=True)]


LAYOUTS = {
    "as it is": lambda values: values,
    "every other": lambda values: np.repeat(values, 2, axis=0)[::2],
    "backwards": lambda values: np.ascontiguousarray(values[::-1])[::-1],
    "in Fortran's order": np.asfortranarray,
    "in the other byte order": lambda values: values.astype(values.dtype.newbyteorder()),
}


@st.composite
def tensors(draw: Any, num_rows: int) -> Any:
    dtype = draw(st.sampled_from(TENSOR_DTYPES))
    shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    return quieten(draw(arrays(dtype, (num_rows, *shape))))


def quieten(values: Any) -> Any:
    """Return values with every NaN a quiet one."""
    if values.dtype.kind != "f":
        return values
    words = values.view(f"u{values.dtype.itemsize}")
    quiet = words.dtype.type(1 << {2: 9, 4: 22, 8: 51}[values.dtype.itemsize])
    return np.where(np.isnan(values), words | quiet, words).view(values.dtype)


@settings(max_examples=25)
@given(st.data(), st.integers(1, 5))
def test_arrays_of_any_type_and_shape_come_back_the_same(data, num_rows):
    given_arrays = {f"x{i}": data.draw(tensors(num_rows)) for i in range(data.draw(st.integers(1, 4)))}
    laid = {name: LAYOUTS[data.draw(st.sampled_from(sorted(LAYOUTS)))](x) for name, x in given_arrays.items()}
    columns, schema = convert(laid)
    for name, values in given_arrays.items():
        found = columns[name]
        assert isinstance(found, Dense)
        assert (found.values.dtype, found.values.shape) == (values.dtype, values.shape)
        assert found.values.tobytes() == values.tobytes()
        assert (schema[name].dtype, schema[name].shape) == (values.dtype.name, values.shape[1:])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("dtype", "kept"), [("int64", "int64"), ("int16", "int64"), ("float32", "float32")])
def test_numbers_come_back_however_they_lie_in_memory(layout, dtype, kept):
    values = np.array([3, -1, 0, 127, -128], dtype)
    columns, _ = convert({"n": LAYOUTS[layout](values), "other": np.arange(5)})
    assert columns["n"].values.dtype == kept
    assert columns["n"].values.tolist() == values.tolist()


@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_arrays_that_are_not_aligned_come_back(dtype):
    values = np.arange(6).astype(dtype)
    shifted = np.frombuffer(b"\0" + values.tobytes(), np.uint8)[1:].view(dtype)
    columns, _ = convert({"n": shifted, "m": shifted.reshape(6, 1)})
    assert columns["n"].values.tolist() == values.tolist()
    assert columns["m"].values.tobytes() == values.tobytes()


@pytest.mark.parametrize(("dtype", "word"), [("float16", 0x7C01), ("float32", 0x7F800001)])
def test_signalling_nans_come_back(dtype, word):
    values = np.array([[word], [1]], f"u{np.dtype(dtype).itemsize}").view(dtype)
    columns, _ = convert({"x": values})
    assert columns["x"].values.tobytes() == values.tobytes()


@settings(max_examples=15)
@given(
    st.integers(1, 6).flatmap(lambda size: st.tuples(arrays("float64", (size,)), arrays("float32", (size,))))
)
def test_floats_come_back_bit_by_bit_where_the_schema_keeps_them(pair):
    doubles, floats = map(quieten, pair)
    fields = {"x": f.Number("float64"), "y": f.Number()}
    columns, _ = convert({"x": doubles, "y": floats}, fields=fields, nan="value")
    assert columns["x"].values.dtype == np.float64
    assert columns["x"].values.tobytes() == doubles.tobytes()
    assert columns["y"].values.tobytes() == floats.tobytes()


@settings(max_examples=15)
@given(st.data(), st.integers(1, 6))
def test_strings_lists_and_missing_values_come_back(data, num_rows):
    def drawn(values: Any) -> list[Any]:
        return data.draw(st.lists(values, min_size=num_rows, max_size=num_rows))

    texts, blobs = drawn(st.none() | TEXTS), drawn(STRINGS)
    numbers = drawn(st.none() | st.integers(-(2**63), 2**63 - 1))
    words, counts = drawn(st.lists(TEXTS, max_size=3)), drawn(st.lists(st.integers(-5, 300), max_size=4))
    rows = zip(texts, blobs, numbers, words, counts, strict=True)
    names = ("text", "blob", "number", "words", "counts")
    columns, _ = convert(
        [dict(zip(names, row, strict=True)) for row in rows],
        schema=ps.Schema(
            {
                "text": f.Text(optional=True),
                "blob": f.Bytes(),
                "number": f.Number("int64", optional=True),
                "words": f.Sequence("string"),
                "counts": f.Sequence("int64"),
            }
        ),
    )
    assert rows_of(columns["text"]) == [None if text is None else text.encode() for text in texts]
    assert rows_of(columns["blob"]) == blobs
    assert rows_of(columns["number"]) == numbers
    assert rows_of(columns["words"]) == [[word.encode() for word in row] for row in words]
    assert rows_of(columns["counts"]) == counts


@settings(max_examples=15)
@given(
    st.lists(st.lists(st.lists(st.integers(-5, 300), max_size=3), max_size=3), min_size=1, max_size=5),
    st.lists(STRINGS, min_size=5, max_size=5),
)
def test_feature_lists_and_their_context_come_back(steps, blobs):
    rows = [{"steps": each, "blob": blob} for each, blob in zip(steps, blobs, strict=False)]
    schema = ps.Schema({"steps": f.Sequence("int64", None, "feature_list"), "blob": f.Bytes()})
    columns, _ = convert(rows, schema=schema)
    found = columns["steps"]
    assert isinstance(found, Ragged)
    assert [[step.tolist() for step in found[row]] for row in range(len(rows))] == steps[: len(rows)]
    assert rows_of(columns["blob"]) == blobs[: len(rows)]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_every_row_comes_back_once_in_some_split_and_shard(tmp_path, workers, compression):
    num_rows = 40_000
    rng = np.random.default_rng(1)
    columns = {
        "row": np.arange(num_rows),
        "x": rng.normal(size=num_rows).astype(np.float32),
        "vector": rng.integers(0, 2**32, (num_rows, 3), dtype=np.uint32),
    }
    options = {"num_shards": 3, "num_threads": workers, "compression": compression}
    dataset = ps.convert(columns, tmp_path / "out", **options)
    assert set(dataset.splits) == {"train", "validation", "test"}
    parts = [dataset[name].columns() for name in dataset.splits]
    rows = np.concatenate([part["row"].values for part in parts])
    assert np.sort(rows).tolist() == list(range(num_rows))
    for name in ("x", "vector"):
        assert (
            np.concatenate([part[name].values for part in parts]).tobytes() == columns[name][rows].tobytes()
        )
    first = parts[0]["row"].values
    assert abs(np.corrcoef(first, np.arange(len(first)))[0, 1]) < 0.05
