"""Rows in the order of a field."""

import numpy as np
import pytest

from penstock.errors import OptionError
from penstock.read.bitmap import Bitmap
from penstock.schema.array import Tensor
from penstock.view import sorting as module
from penstock.view.opened_data import open_data
from penstock.view.scan_jobs import Watch
from penstock.view.sorting import describe_key, sort_by_field, sort_by_keys, sort_by_size
from record_files import example, write_plain

VALUES = [3.0, 1.0, float("nan"), 1.0, None, 2.0]
TEXTS = ["pear", "Apple", "", "apple", "pear" * 40, "pear" * 39 + "zzz"]


@pytest.fixture
def data(tmp_path):
    payloads = [
        example(**({} if value is None else {"x": value}), text=text, many=[1] * row, big=2**60 + row)
        for row, (value, text) in enumerate(zip(VALUES, TEXTS, strict=True))
    ]
    write_plain(tmp_path / "train-00000-of-00002.tfrecord", payloads[:4])
    write_plain(tmp_path / "train-00001-of-00002.tfrecord", payloads[4:])
    return open_data([str(tmp_path)])


def sort(data, name, selected=None, **options):
    watch = Watch(lambda: 0.0)
    return sort_by_field(data.rows("train"), data.schema, name, selected, watch, **options)


def test_numbers_are_sorted_and_rows_without_one_come_last_in_both_directions(data):
    assert sort(data, "x").rows.tolist() == [1, 3, 5, 0, 2, 4]
    assert sort(data, "x", descending=True).rows.tolist() == [0, 5, 1, 3, 2, 4]


def test_large_integers_are_compared_exactly(data):
    assert sort(data, "big", descending=True).rows.tolist() == [5, 4, 3, 2, 1, 0]


def test_texts_are_sorted_by_their_bytes_and_the_number_of_bytes_is_told(data):
    found = sort(data, "text")
    assert found.rows.tolist() == [2, 1, 3, 0, 4, 5]  # the last two agree in 64 bytes
    assert found.prefix == 64
    assert sort(data, "text", Bitmap.from_mask(np.arange(6) < 4)).prefix == 0


def test_lists_are_sorted_by_their_length(data):
    assert sort(data, "many", descending=True).rows.tolist() == [5, 4, 3, 2, 1, 0]


def test_only_selected_rows_are_sorted(data):
    selected = Bitmap.from_mask(np.array([True, False, False, True, False, True]))
    assert sort(data, "x", selected).rows.tolist() == [3, 5, 0]
    assert sort_by_size(data.rows("train"), selected).rows.tolist() == [0, 3, 5]


def test_records_are_sorted_by_their_size(data):
    rows = data.rows("train")
    sizes = [rows.frame_bytes(row, row + 1) for row in range(6)]
    expected = sorted(range(6), key=lambda row: sizes[row])
    assert sort_by_size(rows, None).rows.tolist() == expected


def test_too_many_records_are_refused_with_what_to_do(data, monkeypatch):
    monkeypatch.setattr(module, "MAX_SORTED", 5)
    with pytest.raises(OptionError) as caught:
        sort(data, "x")
    assert (caught.value.field, caught.value.got) == ("sort", "6")
    assert caught.value.advice
    assert len(sort(data, "x", Bitmap.from_mask(np.arange(6) < 5)).rows) == 5


def test_tensor_has_no_order():
    assert describe_key(Tensor((2, 2))) is None


@pytest.mark.parametrize("descending", [False, True])
def test_equal_keys_stay_in_order(descending):
    keys, rows = np.zeros(5), np.array([4, 1, 3, 0, 2])
    assert sort_by_keys(keys, rows, np.ones(5, np.bool_), descending=descending).tolist() == rows.tolist()
