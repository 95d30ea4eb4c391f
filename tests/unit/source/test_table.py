"""Tables in memory, of the libraries that people use."""

import datetime

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from PIL import Image

import datasets
from penstock.errors import OptionError, SourceError
from penstock.schema.scalar import Category
from penstock.settings.groups import TextFiles
from penstock.source.block import BLOCK_ROWS
from penstock.source.opening import open_source
from raising import containing, raises_with


def blocks_of(given):
    return list(open_source(given, TextFiles()).blocks())


def test_arrow_table_is_cut_into_views(read):
    table = pa.table({"n": range(40_000), "s": ["x"] * 40_000})
    assert read(table)["n"] == list(range(40_000))
    blocks = blocks_of(table)
    assert [block.num_rows for block in blocks] == [BLOCK_ROWS, BLOCK_ROWS, 40_000 - 2 * BLOCK_ROWS]
    address = table.column("n").chunk(0).buffers()[1].address
    assert all(block.is_resident for block in blocks)
    assert blocks[1].columns["n"].buffers()[1].address == address


def test_arrow_table_of_many_chunks_has_the_same_blocks(read):
    chunks = [pa.table({"n": [i]}) for i in range(300)]
    table = pa.concat_tables(chunks)
    (block,) = blocks_of(table)
    assert block.columns["n"].to_pylist() == list(range(300))
    assert not block.is_resident


def test_arrow_types_are_made_plain():
    tensor = pa.fixed_shape_tensor(pa.float32(), [2, 2])
    storage = pa.array([[1, 2, 3, 4], [5, 6, 7, 8]], pa.list_(pa.float32(), 4))
    holes = pa.array([[1, 2, 3, 4], None], pa.list_(pa.float32(), 4))
    (block,) = blocks_of(
        pa.table(
            {
                "dictionary": pa.array(["x", None]).dictionary_encode(),
                "view": pa.array(["x", None], pa.string_view()),
                "bytes": pa.array([b"x", None], pa.binary_view()),
                "runs": pc.run_end_encode(pa.array([1, 1])),
                "nested": pa.array([["x"], None], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
                "lists": pa.array([[1], None], pa.list_view(pa.int8())),
                "uuid": pa.array([b"0" * 16, None], pa.uuid()),
                "tensor": pa.ExtensionArray.from_storage(tensor, storage),
                "holes": pa.ExtensionArray.from_storage(tensor, holes),
            }
        )
    )
    columns = dict(block.columns)
    tensors, some = columns.pop("tensor"), columns.pop("holes")
    assert {name: (str(column.type), column.to_pylist()) for name, column in columns.items()} == {
        "dictionary": ("string", ["x", None]),
        "view": ("large_string", ["x", None]),
        "bytes": ("large_binary", [b"x", None]),
        "runs": ("int64", [1, 1]),
        "nested": ("list<item: string>", [["x"], None]),
        "lists": ("list<item: int8>", [[1], None]),
        "uuid": ("large_string", ["30303030-3030-3030-3030-303030303030", None]),
    }
    assert tensors.dtype == np.float32
    assert tensors.tolist() == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    assert some[0].tolist() == [[1, 2], [3, 4]]
    assert some[1] is None


def test_slice_of_runs_is_decoded_from_its_own_rows():
    runs = pc.run_end_encode(pa.array([1, 1, 2, 3, 3]))
    (block,) = blocks_of(pa.table({"n": runs}).slice(1, 3))
    assert block.columns["n"].to_pylist() == [1, 2, 3]


def test_record_batch_and_reader(read):
    batch = pa.record_batch({"n": [1, 2]})
    assert read(batch) == {"n": [1, 2]}
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch, batch])
    source = open_source(reader, TextFiles())
    assert (source.is_repeatable, source.name) == (False, "RecordBatchReader")
    assert [block.columns["n"].to_pylist() for block in source.blocks()] == [[1, 2, 1, 2]]
    with raises_with(SourceError, "RecordBatchReader read"):
        next(source.blocks())


def test_duplicate_column_and_empty_table_are_refused():
    with raises_with(SourceError, "column 1", field="a"):
        open_source(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), TextFiles())
    with raises_with(SourceError, "rows Table"):
        blocks_of(pa.table({"a": pa.array([], pa.int64())}))


def test_pandas_frame_keeps_values_and_knows_missing_values(read):
    array = np.zeros((2, 2))
    frame = pd.DataFrame(
        {
            "f": [1.5, np.nan],
            "i": pd.array([1, None], dtype="Int64"),
            "s": ["x", None],
            "o": pd.Series(["x", np.nan], dtype=object),
            "c": pd.Categorical(["u", "v"]),
            "t": pd.to_datetime(["2020-01-02", None]),
            "b": [True, False],
            "a": [array, array],
            "m": [1, "x"],
            "l": [[1, 2], None],
        }
    )
    (block,) = blocks_of(frame)
    assert np.isnan(block.columns["f"][1])
    assert block.columns["f"].dtype == np.float64
    assert block.is_resident
    assert block.columns["a"][0] is array
    assert block.columns["m"].tolist() == [1, "x"]
    plain = {name: block.columns[name].to_pylist() for name in "isoctl"}
    assert plain == {
        "i": [1, None],
        "s": ["x", None],
        "o": ["x", None],
        "c": ["u", "v"],
        "t": [datetime.datetime(2020, 1, 2), None],
        "l": [[1, 2], None],
    }
    assert block.columns["b"].tolist() == [True, False]


def test_pandas_numbers_are_not_copied():
    frame = pd.DataFrame({"n": np.arange(100_000)})
    blocks = blocks_of(frame)
    assert all(np.shares_memory(block.columns["n"], frame["n"].to_numpy()) for block in blocks)


def test_pandas_index_is_a_column_if_it_has_a_name(read):
    frame = pd.DataFrame({"n": [1, 2]}, index=pd.Index(["a", "b"], name="id"))
    assert read(frame) == {"id": ["a", "b"], "n": [1, 2]}
    frame.index.name = None
    source = open_source(frame, TextFiles())
    assert list(next(source.blocks()).columns) == ["n"]
    assert source.notes == (containing("DataFrame", "name"),)
    assert open_source(pd.DataFrame({0: [1]}), TextFiles()).notes == ()
    assert read(pd.DataFrame({0: [1]})) == {"0": [1]}


def test_polars_frame(read):
    frame = pl.DataFrame(
        {
            "s": ["x", None, "z"],
            "c": pl.Series(["u", "v", "u"], dtype=pl.Categorical),
            "l": [[1], [2, 3], None],
            "b": [b"x", b"y", b"z"],
            "a": pl.Series([[1, 2], [3, 4], [5, 6]], dtype=pl.Array(pl.Int64, 2)),
        }
    )
    assert read(frame) == {name: frame[name].to_list() for name in ("s", "c", "l", "b")} | {
        "a": [[1, 2], [3, 4], [5, 6]]
    }


def test_duckdb_relation_is_read_twice(read):
    with duckdb.connect() as connection:
        relation = connection.sql("select range as n, 'x' || range as s from range(20000)")
        rows = read(relation)
    assert rows["n"] == list(range(20_000))
    assert rows["s"][-1] == "x19999"


def test_hugging_face_data_set_keeps_its_own_order(read):
    numbers = list(range(5000))
    data = datasets.Dataset.from_dict({"n": numbers, "s": ["x"] * 5000})
    assert read(data)["n"] == numbers
    shuffled = data.shuffle(seed=1)
    assert read(shuffled)["n"] == shuffled["n"][:] != numbers
    assert read(data.filter(lambda row: row["n"] % 2))["n"] == numbers[1::2]
    assert read(data.to_iterable_dataset())["n"] == numbers


def test_hugging_face_features_arrive_as_stored():
    features = datasets.Features(
        {
            "i": datasets.Image(),
            "m": datasets.Array2D((2, 2), "float32"),
            "y": datasets.ClassLabel(names=["a"]),
        }
    )
    rows = {"i": [Image.new("RGB", (2, 2))], "m": np.ones((1, 2, 2), "f4"), "y": [0]}
    (block,) = blocks_of(datasets.Dataset.from_dict(rows, features=features))
    assert block.columns["i"][0].as_py()["bytes"].startswith(b"\x89PNG")
    assert block.columns["m"].to_pylist() == [[[1, 1], [1, 1]]]
    assert block.columns["y"].to_pylist() == ["a"]


def test_several_splits_and_single_columns_are_refused_with_advice():
    data = datasets.Dataset.from_dict({"n": [1]})
    with raises_with(OptionError, "splits 'train' 'test'"):
        open_source(datasets.DatasetDict({"train": data, "test": data}), TextFiles())
    for series in (pd.Series([1]), pl.Series([1])):
        with raises_with(OptionError, ".to_frame()"):
            open_source(series, TextFiles())


def test_class_labels_are_named_and_none_is_missing():
    features = datasets.Features({"y": datasets.ClassLabel(names=["cat", "ant"])})
    data = datasets.Dataset.from_dict({"y": [1, 0, -1]}, features=features)
    source = open_source(data, TextFiles())
    assert [block.columns["y"].to_pylist() for block in source.blocks()] == [["ant", "cat", None]]
    assert source.declared == {"y": Category(values=("ant", "cat"))}


def test_hugging_face_transform_is_refused_and_chosen_columns_are_kept(read):
    data = datasets.Dataset.from_dict({"n": [1], "m": [2]})
    with raises_with(SourceError, ".map()"):
        open_source(data.with_transform(lambda rows: rows), TextFiles())
    assert read(data.with_format("numpy", columns=["m"])) == {"m": [2]}


@pytest.mark.parametrize(
    ("series", "kind"),
    [
        (pl.Series("e", [{1}, {2}], dtype=pl.Object), "Object"),
        (pl.Series("e", [1, 2], dtype=pl.Int128), "Int128"),
    ],
)
def test_polars_column_that_arrow_lacks_is_refused_by_name(series, kind):
    frame = pl.DataFrame([pl.Series("n", [1, 2]), series])
    with raises_with(SourceError, f"'e' Arrow {kind}", field="e"):
        open_source(frame, TextFiles())


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (pd.DataFrame({"c": pd.Categorical(["a", "b", None])}), "string"),
        (pd.DataFrame({"c": pd.Categorical([3, 1])}), "int64"),
        (pl.DataFrame({"c": pl.Series(["a", "b"], dtype=pl.Categorical)}), "string"),
        (pa.table({"c": pa.array(["a", "b"]).dictionary_encode()}), "string"),
        ({"c": pa.array(["a", "b"]).dictionary_encode()}, "string"),
    ],
)
def test_column_kept_as_codes_is_declared_a_category(given, dtype):
    assert open_source(given, TextFiles()).declared == {"c": Category(dtype)}


def test_codes_of_floats_or_of_many_values_declare_nothing():
    many = pa.array([str(i) for i in range(10_001)]).dictionary_encode()
    assert open_source(pa.table({"c": many}), TextFiles()).declared == {}
    assert open_source(pd.DataFrame({"c": pd.Categorical([1.5])}), TextFiles()).declared == {}


def test_pandas_dates_beside_times_are_times_and_periods_are_text(read):
    times = [datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 3), None]
    periods = pd.PeriodIndex(["2024-01", "NaT", "2024-03"], freq="M")
    frame = pd.DataFrame({"e": pd.Series(times, dtype=object), "p": periods})
    assert read(frame) == {
        "e": [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, 3), None],
        "p": ["2024-01", None, "2024-03"],
    }
    assert read(frame.astype({"p": "category"}))["p"] == ["2024-01", None, "2024-03"]
    notes = open_source(frame, TextFiles()).notes
    assert notes == (containing("'p'", "text"),)
