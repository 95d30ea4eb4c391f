"""Rows taken from columns in any order, and columns joined, of every kind."""

from itertools import pairwise

import numpy as np
import pytest

from each_case import each_case
from loaded_batches import freeze
from penstock.columns import Bytes, Dense, Dictionary, Pictures, Ragged, concat, concat_rows, take_rows

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
@each_case("rows", [[], [0], [5, 0, 3], [2, 2, 2], [1, 4], [0, 1, 2, 3, 4, 5], [4] * 70])
def test_rows_are_taken_in_any_order_and_any_number_of_times(name, rows):
    column = COLUMNS[name]
    taken = column.take(np.array(rows, np.int64))
    assert len(taken) == len(rows)
    assert [row_of(taken, i) for i in range(len(rows))] == [row_of(column, row) for row in rows]
    assert type(taken) is type(column)


@pytest.mark.parametrize("name", COLUMNS)
@each_case("parts", [[[0, 1, 2], [3, 4, 5]], [[], [5, 4], [], [1, 1]], [[3]], [[], []]])
def test_columns_are_concatenated_in_order(name, parts):
    column = COLUMNS[name]
    joined = concat([column.take(np.array(part, np.int64)) for part in parts])
    wanted = [row for part in parts for row in part]
    assert [row_of(joined, i) for i in range(len(wanted))] == [row_of(column, row) for row in wanted]
    assert len(joined) == len(wanted)


def test_strings_that_lie_apart_are_joined_without_bytes_between_them():
    column = COLUMNS["strings apart"]
    joined = concat([column, column])
    assert joined.tolist() == column.tolist() * 2
    assert joined.is_packed
    assert joined.stops[-1] == 2 * sum(map(len, column))


def test_parts_without_a_mask_are_present_beside_those_with_one():
    bare = Dense(np.arange(2, dtype=np.int64))
    masked = Dense(np.arange(2, dtype=np.int64), np.array([False, True]))
    assert concat([bare, masked]).present.tolist() == [True, True, False, True]
    assert concat([bare, bare]).present is None


def test_one_piece_is_not_copied():
    joined = concat_rows([COLUMNS])
    assert all(joined[name] is column for name, column in COLUMNS.items())


def test_all_columns_are_taken_and_joined_by_name_in_order():
    rows = np.array([3, 1], np.int64)
    taken = take_rows(COLUMNS, rows)
    assert list(taken) == list(COLUMNS)
    joined = concat_rows([taken, taken])
    assert list(joined) == list(COLUMNS)
    for name, column in joined.items():
        assert freeze(column.take(np.array([2, 3], np.int64))) == freeze(taken[name])


@pytest.mark.parametrize("name", ["int64", "float32", "tensor", "bool", "codes"])
def test_memory_of_taken_arrays_is_aligned(name):
    taken = COLUMNS[name].take(np.array([1, 2, 3], np.int64))
    values = taken.codes if isinstance(taken, Dictionary) else taken.values
    assert values.ctypes.data % 64 == 0
    assert values.flags.c_contiguous


def test_sizes_count_the_values_of_the_rows():
    assert COLUMNS["int64"].nbytes == 6 * 8 + 6
    assert COLUMNS["float32"].nbytes == 6 * 4
    assert COLUMNS["codes"].nbytes == 6 * 4 + 6
    assert COLUMNS["strings apart"].nbytes == 6 + 3 + 5 + 4 + 3 + 6 * 16
    assert COLUMNS["ints"].nbytes == 6 + 11 * 8 + 7 * 8
    assert COLUMNS["words"].nbytes > COLUMNS["ints"].nbytes


def pictures():
    images = [np.full((2, 3, 1), row, np.uint8) for row in range(3)]
    encoded = Bytes.from_values([b"a", b"", b"ccc"])
    return Pictures([images[0], None, images[2]], np.array([True, False, True]), encoded)


EVERY_KIND = {**COLUMNS, "pictures": pictures()}


@pytest.mark.parametrize("name", EVERY_KIND)
def test_arrays_of_a_column_are_replaced_one_by_one(name):
    column = EVERY_KIND[name]
    arrays = column.arrays()
    copies = {id(array): array.copy() for array in arrays}
    mapped = column.map_arrays(lambda array: copies[id(array)])
    assert type(mapped) is type(column)
    assert [id(array) for array in mapped.arrays()] == [id(copies[id(array)]) for array in arrays]
    assert (mapped.present is None) == (column.present is None)


@pytest.mark.parametrize("name", COLUMNS)
def test_padding_appends_empty_rows_and_keeps_the_others(name):
    column = COLUMNS[name]
    padded = column.pad(ROWS + 2)
    assert len(padded) == ROWS + 2
    assert [row_of(padded, row) for row in range(ROWS)] == [row_of(column, row) for row in range(ROWS)]
    value, present = row_of(padded, ROWS + 1)
    empty = -1 if isinstance(column, Dictionary) else type(value)()
    assert value == empty or not np.any(value)
    assert present == (None if column.present is None else False)


def test_images_are_taken_joined_and_padded_with_their_bytes():
    column = pictures()
    taken = column.take(np.array([2, 1], np.int64))
    assert taken.images[0] is column.images[2]
    assert taken.images[1] is None
    assert taken.encoded.tolist() == [b"ccc", b""]
    joined = concat([Bytes.from_values([b"x", b"y"]), taken])
    assert [image is None for image in joined.images] == [True, True, False, True]
    assert joined.encoded.tolist() == [b"x", b"y", b"ccc", b""]
    assert joined.present.tolist() == [True, True, True, False]
    held = Pictures([column.images[0]])
    assert concat([held, held]).encoded is None
    assert concat([held, taken]).encoded.tolist() == [b"", b"ccc", b""]
    assert held.pad(3).images == [column.images[0], None, None]
    assert column.nbytes == 3 + 6 + 6 + (4 + 3 * 16)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_without_its_mask_has_the_same_values(name):
    column = COLUMNS[name]
    bare = column.without_mask()
    assert bare.present is None
    assert [row_of(bare, row)[0] for row in range(ROWS)] == [row_of(column, row)[0] for row in range(ROWS)]


def test_lists_of_lists_flatten_to_their_values_and_take_others():
    column = COLUMNS["lists of lists"]
    values, offsets = column.flatten()
    assert [values[a:b].tolist() for a, b in pairwise(offsets)] == [
        np.concatenate([*column[row], np.empty(0)]).tolist() for row in range(ROWS)
    ]
    assert [len(each) for each in column.nested()[1]] == [ROWS + 1, len(column.values) + 1]
    other = column.with_values(values * 2)
    assert [[each.tolist() for each in row] for row in map(other.__getitem__, range(ROWS))] == [
        [(each * 2).tolist() for each in row] for row in map(column.__getitem__, range(ROWS))
    ]


def test_items_are_the_values_of_all_rows_and_which_are_present():
    values, keep = COLUMNS["words"].items()
    assert values.tolist() == [f"w{i}".encode() for i in range(11)]
    assert keep.tolist() == [True] * 2 + [True] + [True] * 5 + [True] * 3
    numbers, keep = COLUMNS["int64"].items()
    assert numbers.tolist() == [0, 7, 14, 21, 28, 35]
    assert keep.tolist() == COLUMNS["int64"].present.tolist()


def test_a_column_of_another_class_is_refused():
    assert Dense.of(COLUMNS["int64"]) is COLUMNS["int64"]
    with pytest.raises(TypeError, match="Bytes"):
        Bytes.of(COLUMNS["int64"])
    with pytest.raises(TypeError, match="Pictures"):
        Pictures.wrap(COLUMNS["int64"])
