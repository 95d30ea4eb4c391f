"""Columns: dense, ragged and bytes, with and without a mask."""

import numpy as np
import pytest

from penstock.columns import Bytes, Dense, Ragged
from raising import raises_with

ARENA = np.frombuffer(b"onetwothree", np.uint8)
MASK = np.array([True, False, True])


def offsets(*values):
    return np.array(values, np.int64)


@pytest.fixture
def packed():
    return Bytes.from_offsets(ARENA, offsets(0, 3, 6, 11))


@pytest.fixture
def scattered():
    """The same values with other bytes between them, and in another order."""
    arena = np.frombuffer(b"..three,one--two!", np.uint8)
    return Bytes(arena, offsets(8, 13, 2), offsets(11, 16, 7), MASK)


def test_dense_has_a_row_for_each_value():
    column = Dense(np.zeros((5, 2, 3), np.float32))
    assert (len(column), column.present) == (5, None)
    assert repr(column) == "Dense(shape=(5, 2, 3), dtype=float32)"
    assert repr(Dense(np.arange(3), MASK)) == "Dense(shape=(3,), dtype=int64, missing=1)"


def test_bytes_give_their_values_by_row_and_in_order(packed, scattered):
    for column in (packed, scattered):
        assert len(column) == 3
        assert [column[0], column[1], column[2], column[-1]] == [b"one", b"two", b"three", b"three"]
        assert list(column) == column.tolist() == [b"one", b"two", b"three"]
    with pytest.raises(IndexError):
        packed[3]


def test_contiguous_bytes_are_packed(packed, scattered):
    assert packed.is_packed
    assert packed.pack() is packed
    assert not scattered.is_packed
    assert packed.offsets.tolist() == scattered.pack().offsets.tolist() == [0, 3, 6, 11]
    with raises_with(ValueError, "pack()"):
        scattered.offsets  # noqa: B018 - this tests the property


def test_ragged_takes_negative_numbers_and_refuses_others():
    column = Ragged(np.arange(6), np.array([0, 1, 3, 6]))
    assert [column[row].tolist() for row in (-1, -3, 1)] == [[3, 4, 5], [0], [1, 2]]
    for row in (3, -4):
        with pytest.raises(IndexError):
            column[row]


def test_bytes_that_are_packed_lose_their_gaps_and_nothing_else(scattered):
    packed = scattered.pack()
    assert packed.is_packed
    assert packed.tolist() == scattered.tolist()
    assert packed.arena.tobytes() == b"onetwothree"
    assert packed.present is scattered.present


@pytest.mark.parametrize("starts", [(3, 6), (1, 3)])
def test_bytes_that_do_not_begin_at_the_arena_are_not_packed(starts):
    column = Bytes(ARENA, offsets(*starts), offsets(starts[1], 11))
    assert not column.is_packed
    assert column.pack().tolist() == column.tolist()


def test_bytes_of_no_rows_are_packed():
    column = Bytes.from_offsets(ARENA[:0], offsets(0))
    assert (len(column), column.is_packed, column.tolist(), column.offsets.tolist()) == (0, True, [], [0])


def test_bytes_of_empty_values_are_kept():
    column = Bytes.from_offsets(ARENA[:3], offsets(0, 0, 3, 3))
    assert column.tolist() == [b"", b"one", b""]


def test_bytes_say_how_many_and_how_large(packed, scattered):
    assert repr(packed) == "Bytes(rows=3, bytes=11)"
    assert repr(scattered) == "Bytes(rows=3, bytes=11, missing=1)"


def test_ragged_gives_a_list_a_row():
    column = Ragged(np.arange(5), offsets(0, 2, 2, 5), MASK)
    assert len(column) == 3
    assert [column[i].tolist() for i in range(3)] == [[0, 1], [], [2, 3, 4]]
    assert repr(column) == "Ragged(rows=3, values=array([0, 1, 2, 3, 4]), missing=1)"


def test_ragged_of_bytes_gives_lists_of_bytes(packed):
    column = Ragged(packed, offsets(0, 1, 3))
    assert (column[0], column[1]) == ([b"one"], [b"two", b"three"])


def test_ragged_of_ragged_gives_lists_of_lists(packed):
    column = Ragged(Ragged(np.arange(4), offsets(0, 1, 1, 4)), offsets(0, 2, 3))
    assert [[step.tolist() for step in column[i]] for i in range(2)] == [[[0], []], [[1, 2, 3]]]
    words = Ragged(Ragged(packed, offsets(0, 2, 3)), offsets(0, 2))
    assert words[0] == [[b"one", b"two"], [b"three"]]


def test_ragged_of_no_rows_has_none():
    assert len(Ragged(np.arange(0), offsets(0))) == 0
