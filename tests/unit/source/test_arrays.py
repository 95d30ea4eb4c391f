"""Dicts of arrays."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from penstock.errors import OptionError, SourceError
from penstock.settings.groups import TextFiles
from penstock.source.block import BLOCK_BYTES
from penstock.source.opening import open_source
from raising import raises_with


def columns_of(given):
    (block,) = open_source(given, TextFiles()).blocks()
    return block.columns


def test_arrays_of_any_shape_are_views(read):
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    columns = columns_of({"image": images, "y": np.array([1, 2], np.int16)})
    assert np.shares_memory(columns["image"], images)
    assert columns["image"].shape == (2, 3, 4)
    assert columns["y"].dtype == np.int16


def test_large_arrays_are_cut_by_their_bytes():
    num_rows = BLOCK_BYTES // 512**2
    images = np.zeros((4 * num_rows - 24, 512, 512), np.uint8)  # memory that nobody touches
    blocks = list(open_source({"image": images}, TextFiles()).blocks())
    assert [block.num_rows for block in blocks] == [num_rows, num_rows, num_rows, num_rows - 24]
    assert all(block.is_resident for block in blocks)


def test_columns_of_many_libraries():
    columns = columns_of(
        {
            "list": [1, None],
            "tuple": ("x", "y"),
            "arrow": pa.array([1, None]),
            "chunks": pa.chunked_array([[1], [2]]),
            "dictionary": pa.array(["x", "y"]).dictionary_encode(),
            "pandas": pd.Series([1, 2]),
            "polars": pl.Series(["a", None]),
            "text": np.array(["a", "bc"]),
            "bytes": np.array([b"a", b"bc"]),
            "time": np.array(["2020-01-01", "NaT"], "datetime64[D]"),
            "masked": np.ma.MaskedArray([1, 2], [False, True]),
            "objects": np.array([1.5, None], object),
        }
    )
    assert {name: column.to_pylist() for name, column in columns.items() if name != "time"} == {
        "list": [1, None],
        "tuple": ["x", "y"],
        "arrow": [1, None],
        "chunks": [1, 2],
        "dictionary": ["x", "y"],
        "pandas": [1, 2],
        "polars": ["a", None],
        "text": ["a", "bc"],
        "bytes": [b"a", b"bc"],
        "masked": [1, None],
        "objects": [1.5, None],
    }
    assert columns["time"].type == pa.date32()
    assert columns["time"].null_count == 1


def test_foreign_byte_order_is_turned(read):
    assert read({"n": np.array([1, 2], ">i4")}) == {"n": [1, 2]}
    assert columns_of({"n": np.array([1, 2], ">i4")})["n"].dtype == np.dtype("int32")


def test_lengths_that_differ_are_refused_naming_both_columns():
    with raises_with(SourceError, "'b' 3 'a' 2"):
        open_source({"a": [1, 2, 3], "b": np.zeros((2, 2))}, TextFiles())


@pytest.mark.parametrize("value", [1, "text", b"bytes", None, np.float32(1), np.array(1), {"x": 1}])
def test_value_that_is_no_column_is_refused(value):
    with raises_with(OptionError, "column", field="a"):
        open_source({"a": value}, TextFiles())


def test_dict_without_rows_or_columns_or_names_is_refused():
    with raises_with(SourceError, "rows dict"):
        open_source({"a": []}, TextFiles())
    with raises_with(OptionError, got="{}"):
        open_source({}, TextFiles())
    with raises_with(OptionError, got="1"):
        open_source({1: [1]}, TextFiles())


@pytest.mark.parametrize("dtype", ["U", "S", "O"])
def test_matrix_of_strings_is_a_column_of_lists(read, dtype):
    given = np.array([["x", "yy"], ["z", "w"]], dtype)
    assert read({"a": given}) == {"a": given.tolist()}


@pytest.mark.parametrize(
    ("unit", "kind"), [("m", "timestamp[s]"), ("h", "timestamp[s]"), ("M", "date32[day]")]
)
def test_times_in_units_that_arrow_lacks_are_taken(unit, kind):
    times = np.array(["2024-01-01", "NaT"], f"M8[{unit}]")
    (block,) = open_source({"t": times}, TextFiles()).blocks()
    assert str(block.columns["t"].type) == kind
    assert block.columns["t"].cast(pa.timestamp("s")).to_numpy(zero_copy_only=False)[0] == times[0]
    assert block.columns["t"].null_count == 1
