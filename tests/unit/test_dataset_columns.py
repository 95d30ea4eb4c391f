"""Columns of a split: arrays, masks, ranges and some of the fields."""

import numpy as np
import pytest

from penstock.columns import Bytes, Dense, Ragged
from penstock.errors import UnknownNameError
from raising import raises_with
from record_files import open_split, write_gzip, write_plain, write_zlib
from thirty_samples import PAYLOADS, ROWS, sample_of


@pytest.fixture(params=[write_plain, write_gzip, write_zlib])
def split(request, tmp_path):
    return open_split(request.param(tmp_path / "data.tfrecord", PAYLOADS))


def test_columns_are_arrays_with_one_row_per_record(split):
    columns = split.columns()
    assert list(columns) == ["row", "ratio", "name", "blob", "box", "counts", "tags", "note"]
    assert all(len(column) == ROWS for column in columns.values())
    kinds = {name: type(column) for name, column in columns.items()}
    assert kinds == {
        "row": Dense,
        "ratio": Dense,
        "name": Bytes,
        "blob": Bytes,
        "box": Dense,
        "counts": Ragged,
        "tags": Ragged,
        "note": Dense,
    }
    assert columns["row"].values.dtype == np.int64
    assert columns["ratio"].values.dtype == np.float32
    assert columns["ratio"].values.tolist() == [row / 8 for row in range(ROWS)]
    assert columns["name"].tolist() == [f"näme {row}".encode() for row in range(ROWS)]
    assert columns["blob"][7] == b"\xff\x07"
    assert columns["box"].values.shape == (ROWS, 4)
    assert columns["counts"].offsets.tolist() == np.cumsum([0, *(row % 5 for row in range(ROWS))]).tolist()
    assert columns["tags"][7] == [b"tag 0", b"tag 1", b"tag 2"]


def test_columns_have_masks_where_a_field_may_be_missing_and_none_elsewhere(split):
    columns = split.columns()
    assert columns["note"].present.tolist() == [row % 3 != 0 for row in range(ROWS)]
    assert columns["note"].values.tolist() == [row * 10 if row % 3 else 0 for row in range(ROWS)]
    assert all(column.present is None for name, column in columns.items() if name != "note")


@pytest.mark.parametrize(
    ("start", "stop"),
    [(0, None), (5, 9), (-3, None), (0, -25), (9, 5), (30, 40), (0, 0), (29, 30), (-100, 3)],
)
def test_columns_of_a_range_equal_columns_of_the_slice(split, start, stop):
    rows = list(range(ROWS))[start:stop]
    columns = split.columns(start, stop)
    assert columns["row"].values.tolist() == rows
    assert columns["name"].tolist() == [f"näme {row}".encode() for row in rows]
    assert [columns["tags"][i] for i in range(len(rows))] == [
        [tag.encode() for tag in sample_of(row)["tags"]] for row in rows
    ]
    assert columns["note"].present.tolist() == [row % 3 != 0 for row in rows]


def test_columns_of_some_fields_equal_columns_of_all(split):
    everything = split.columns()
    for names in [("row",), ("note", "tags"), ("tags", "row", "box"), ()]:
        columns = split.columns(2, 20, fields=names)
        assert tuple(columns) == names
        for name in names:
            whole = everything[name]
            part = columns[name]
            if isinstance(part, Dense):
                assert part.values.tolist() == whole.values[2:20].tolist()
            else:
                assert [list(part[i]) for i in range(18)] == [list(whole[i]) for i in range(2, 20)]
            assert (part.present is None) == (whole.present is None)


def test_columns_of_one_field_may_be_named_by_itself(split):
    assert list(split.columns(fields="row")) == ["row"]


def test_columns_of_a_field_that_does_not_exist_names_the_nearest(split):
    with raises_with(UnknownNameError, "'nam' 'name'", field="nam"):
        split.columns(fields=["row", "nam"])
