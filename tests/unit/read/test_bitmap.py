"""Bitmaps: some of the rows, found by their place among themselves."""

import tracemalloc

import numpy as np
import pytest

from penstock.read.bitmap import Bitmap
from raising import raises_with


def test_bitmap_of_nothing_has_nothing():
    assert len(Bitmap.from_mask(np.zeros(0, np.bool_))) == 0
    empty = Bitmap.from_mask(np.zeros(1000, np.bool_))
    assert (len(empty), empty.num_rows) == (0, 1000)
    assert empty.select(np.empty(0, np.int64)).tolist() == []


@pytest.mark.parametrize("num_rows", [1, 7, 8, 9, 511, 512, 513, 1024, 5000])
def test_chosen_rows_are_found_by_their_positions_in_any_order(num_rows):
    mask = np.arange(num_rows) * 7 % 5 < 2
    bitmap = Bitmap.from_mask(mask)
    rows = np.flatnonzero(mask)
    places = np.arange(len(rows))[::-1].copy()
    assert len(bitmap) == len(rows)
    assert bitmap.select(places).tolist() == rows[::-1].tolist()
    assert bitmap.take(np.arange(num_rows)).tolist() == rows.tolist()


def test_masks_in_pieces_of_any_size_make_the_same_bitmap():
    mask = np.arange(1000) % 3 == 1
    whole = Bitmap.from_mask(mask)
    for size in (1, 3, 8, 100, 999):
        pieces = (mask[at : at + size] for at in range(0, 1000, size))
        assert Bitmap.from_masks(pieces, 1000).digest() == whole.digest()


def test_digest_differs_where_one_row_does():
    mask = np.zeros(1000, np.bool_)
    digests = {Bitmap.from_mask(mask).digest()}
    for row in range(0, 1000, 37):
        mask[row] = True
        digests.add(Bitmap.from_mask(mask).digest())
        mask[row] = False
    assert len(digests) == 29


def test_masks_that_do_not_cover_the_rows_are_refused():
    with raises_with(ValueError, "9 rows 10 rows"):
        Bitmap.from_masks([np.ones(9, np.bool_)], 10)
    with raises_with(ValueError, "10 rows"):
        Bitmap.from_masks([np.ones(9, np.bool_), np.ones(9, np.bool_)], 10)


def test_bitmap_takes_one_bit_per_row_and_little_more():
    num_rows = 1 << 23
    piece = np.ones(1 << 14, np.bool_)
    tracemalloc.start()
    try:
        bitmap = Bitmap.from_masks((piece for _ in range(num_rows >> 14)), num_rows)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(bitmap) == num_rows
    assert held < 1.2 * num_rows / 8


@pytest.mark.parametrize(
    ("start", "stop"), [(0, 1000), (3, 997), (8, 16), (500, 500), (995, 2000), (64, None)]
)
def test_mask_of_a_range_is_that_part_of_the_whole_mask(start, stop):
    mask = np.random.default_rng(3).random(1000) < 0.3
    assert Bitmap.from_mask(mask).to_mask(start, stop).tolist() == mask[start:stop].tolist()


def test_inverted_bitmap_has_the_rows_that_are_not_selected():
    mask = np.random.default_rng(4).random(1001) < 0.3
    inverted = Bitmap.from_mask(mask).invert()
    assert inverted.to_mask().tolist() == (~mask).tolist()
    assert len(inverted) == 1001 - mask.sum()
