"""Rows taken from columns in any order, and columns joined, of every kind."""

import numpy as np
import pytest

from loaded_batches import freeze
from penstock.columns import Bytes, Dense, Dictionary, Ragged
from penstock.decode.gather import column_bytes, join_column, join_columns, take_column, take_columns

ROWS = 6


def pack(*values):
    arena = np.frombuffer(b"".join(values) or b"\0", np.uint8)
    offsets = np.concatenate([[0], np.cumsum([len(value) for value in values])]).astype(np.int64)
    return arena, offsets


def lists(*lengths):
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return offsets, int(offsets[-1])


def make_columns():
    mask = np.array([True, False, True, True, False, True])
    strings = [b"", b"a", b"bb", b"\xff\0\xfe", b"dddd" * 50, b"e"]
    arena, offsets = pack(*strings)
    list_offsets, total = lists(2, 0, 1, 5, 0, 3)
    apart = np.frombuffer(b"--one--three----five-" + b"x" * 20, np.uint8)
    words, word_offsets = pack(*(f"w{i}".encode() for i in range(total)))
    step_offsets, num_values = lists(*(i % 3 for i in range(total)))
    return {
        "int64": Dense(np.arange(ROWS, dtype=np.int64) * 7, mask),
        "float32": Dense(np.linspace(-1, 1, ROWS, dtype=np.float32)),
        "tensor": Dense(np.arange(ROWS * 6, dtype=np.float64).reshape(ROWS, 2, 3), mask),
        "empty tensor": Dense(np.zeros((ROWS, 0, 3), np.uint8)),
        "bool": Dense(mask),
        "strings": Bytes.from_offsets(arena, offsets, mask),
        "strings apart": Bytes(apart, np.array([2, 7, 16, 21, 0, 0]), np.array([5, 12, 20, 21, 0, 3]), mask),
        "codes": Dictionary(np.array([0, -1, 2, 1, -1, 0], np.int32), (b"a", b"b", b"c"), mask),
        "ints": Ragged(np.arange(total, dtype=np.int64), list_offsets, mask),
        "vectors": Ragged(np.arange(total * 2, dtype=np.float32).reshape(total, 2), list_offsets),
        "words": Ragged(Bytes.from_offsets(words, word_offsets), list_offsets, mask),
        "lists of lists": Ragged(
            Ragged(np.arange(num_values, dtype=np.int64), step_offsets), list_offsets, mask
        ),
    }


COLUMNS = make_columns()


def row_of(column, row):
    """Return a row in Python's own values, and whether it is present."""
    present = None if column.present is None else bool(column.present[row])
    if isinstance(column, Dense):
        return column.values[row].tolist(), present
    if isinstance(column, Dictionary):
        return int(column.codes[row]), present
    if isinstance(column, Bytes):
        return column[row], present
    value = column[row]
    return [each.tolist() if isinstance(each, np.ndarray) else each for each in value], present


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("rows", [[], [0], [5, 0, 3], [2, 2, 2], [1, 4], [0, 1, 2, 3, 4, 5], [4] * 70])
def test_rows_are_taken_in_any_order_and_any_number_of_times(name, rows):
    column = COLUMNS[name]
    taken = take_column(column, np.array(rows, np.int64))
    assert len(taken) == len(rows)
    assert [row_of(taken, i) for i in range(len(rows))] == [row_of(column, row) for row in rows]
    assert type(taken) is type(column)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("parts", [[[0, 1, 2], [3, 4, 5]], [[], [5, 4], [], [1, 1]], [[3]], [[], []]])
def test_columns_are_joined_one_behind_the_other(name, parts):
    column = COLUMNS[name]
    joined = join_column([take_column(column, np.array(part, np.int64)) for part in parts])
    wanted = [row for part in parts for row in part]
    assert [row_of(joined, i) for i in range(len(wanted))] == [row_of(column, row) for row in wanted]
    assert len(joined) == len(wanted)


def test_strings_that_lie_apart_are_joined_without_what_is_between_them():
    column = COLUMNS["strings apart"]
    joined = join_column([column, column])
    assert joined.tolist() == column.tolist() * 2
    assert joined.is_packed
    assert joined.stops[-1] == 2 * sum(map(len, column))


def test_parts_without_a_mask_are_present_beside_those_with_one():
    bare = Dense(np.arange(2, dtype=np.int64))
    masked = Dense(np.arange(2, dtype=np.int64), np.array([False, True]))
    assert join_column([bare, masked]).present.tolist() == [True, True, False, True]
    assert join_column([bare, bare]).present is None


def test_one_piece_is_not_copied():
    joined = join_columns([COLUMNS])
    assert all(joined[name] is column for name, column in COLUMNS.items())


def test_all_columns_are_taken_and_joined_by_name_in_order():
    rows = np.array([3, 1], np.int64)
    taken = take_columns(COLUMNS, rows)
    assert list(taken) == list(COLUMNS)
    joined = join_columns([taken, taken])
    assert list(joined) == list(COLUMNS)
    for name, column in joined.items():
        assert freeze(take_column(column, np.array([2, 3], np.int64))) == freeze(taken[name])


@pytest.mark.parametrize("name", ["int64", "float32", "tensor", "bool", "codes"])
def test_memory_of_what_is_taken_is_aligned(name):
    taken = take_column(COLUMNS[name], np.array([1, 2, 3], np.int64))
    values = taken.codes if isinstance(taken, Dictionary) else taken.values
    assert values.ctypes.data % 64 == 0
    assert values.flags.c_contiguous


def test_sizes_count_what_the_rows_hold():
    assert column_bytes(COLUMNS["int64"]) == 6 * 8 + 6
    assert column_bytes(COLUMNS["float32"]) == 6 * 4
    assert column_bytes(COLUMNS["codes"]) == 6 * 4 + 6
    assert column_bytes(COLUMNS["strings apart"]) == 6 + 3 + 5 + 4 + 3 + 6 * 16
    assert column_bytes(COLUMNS["ints"]) == 6 + 11 * 8 + 7 * 8
    assert column_bytes(COLUMNS["words"]) > column_bytes(COLUMNS["ints"])
