"""Columns that are made when they are asked for."""

import gc

import numpy as np
import pytest

from core_reading import segment_of
from fit_sources import lists, numbers, strings
from penstock.columns import Bytes, Dense, Pictures, Ragged, concat_rows, take_rows
from penstock.decode.plan import DecodePlan
from penstock.decode.row_columns import PlainColumns, RowColumns, count_rows
from penstock.fields import Number, Sequence, Text
from penstock.schema.schema import Schema
from wire.example import Feature, write_example

COLUMNS = {"n": numbers([1.0, None, 3.0]), "s": strings(["a", "", "ccc"]), "l": lists([[1], [], [2, 3]])}


def decode(num_rows, num_bytes=4):
    schema = Schema({"n": Number("int64"), "s": Text(optional=True), "l": Sequence("int64")})
    payloads = [
        write_example(
            {"n": Feature("int64", [i]), "s": Feature("bytes", [b"%d" % i * num_bytes])}
            | {"l": Feature("int64", [i] * i)}
        )
        for i in range(num_rows)
    ]
    return DecodePlan(schema).decode_coded([segment_of(payloads)])[0]


def test_decoded_columns_have_the_order_and_values_of_the_schema():
    columns = decode(4)
    assert isinstance(columns, RowColumns)
    assert list(columns) == ["n", "s", "l"]
    assert (len(columns), count_rows(columns)) == (3, 4)
    assert columns["n"].values.tolist() == [0, 1, 2, 3]
    assert columns["s"].tolist() == [b"0" * 4, b"1" * 4, b"2" * 4, b"3" * 4]
    assert [list(columns["l"][row]) for row in range(4)] == [[], [1], [2, 2], [3, 3, 3]]
    assert columns["n"] is columns["n"]
    assert "x" not in columns
    with pytest.raises(KeyError):
        columns["x"]


def test_all_columns_at_once_are_those_made_one_by_one():
    columns = decode(4)
    together = columns.storage.all_columns()
    assert list(together) == list(columns)
    for name, column in columns.items():
        assert type(together[name]) is type(column)
        assert [list(row) for row in together[name].arrays()] == [list(row) for row in column.arrays()]


@pytest.mark.parametrize("num_bytes", [4, 5000])  # large strings stay where they were read
def test_column_outlives_the_mapping_that_made_it(num_bytes):
    columns = decode(3, num_bytes)
    text, number = columns["s"], columns["n"]
    del columns
    gc.collect()
    decode(3, num_bytes)  # takes memory that was given back
    assert text.tolist() == [b"0" * num_bytes, b"1" * num_bytes, b"2" * num_bytes]
    assert number.values.tolist() == [0, 1, 2]


def test_rows_are_taken_from_rows_without_making_columns():
    columns = take_rows(take_rows(decode(5), np.array([4, 2, 1])), np.array([2, 0]))
    assert isinstance(columns, RowColumns)
    assert columns.rows.tolist() == [1, 4]
    assert columns["n"].values.tolist() == [1, 4]
    assert columns["s"].tolist() == [b"1" * 4, b"4" * 4]
    assert count_rows(columns) == 2


def test_replaced_columns_are_taken_with_the_others():
    plain = RowColumns(PlainColumns(COLUMNS, 3))
    changed = plain.replace({"s": Dense(np.array([7, 8, 9])), "new": Pictures([None] * 3)})
    assert list(changed) == ["n", "s", "l", "new"]
    assert len(changed) == 4
    taken = take_rows(changed, np.array([2]))
    assert taken["s"].values.tolist() == [9]
    assert len(taken["new"]) == 1
    assert taken["n"].values.tolist() == [3.0]
    assert plain["s"].tolist() == [b"a", b"", b"ccc"]


def test_joined_rows_are_plain_columns():
    joined = concat_rows([take_rows(RowColumns(PlainColumns(COLUMNS, 3)), np.array([0])), COLUMNS])
    assert joined["s"].tolist() == [b"a", b"a", b"", b"ccc"]
    assert joined["n"].mask().tolist() == [True, True, False, True]


def test_columns_without_a_view_of_the_core_are_columns_of_python():
    nested = Ragged(lists([[1], [2, 3]]), np.array([0, 2]))
    strange = {"x": nested, "y": Dense(np.array(["a"])), "z": Dense(np.array([1.0], ">f4"))}
    columns = RowColumns(PlainColumns(strange, 1))
    assert columns["x"] is nested
    assert len(columns.storage.native) == 3


def test_arrays_that_are_not_contiguous_are_copied():
    every_second = Dense(np.arange(6, dtype=np.float32)[::2])
    spread = Bytes(np.frombuffer(b"abcd", np.uint8), np.arange(6)[::2], np.arange(6)[::2])
    assert PlainColumns({"x": every_second, "s": spread}, 3).native.num_rows == 3
