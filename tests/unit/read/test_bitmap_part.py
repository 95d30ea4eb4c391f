"""A part of a split by chance: which rows it has follows from their numbers alone."""

import numpy as np
import pytest

from penstock.read import bitmap as module
from penstock.read.bitmap import both, choose_part

# Of 40 rows, those in the first quarter: a run that is resumed with another version has the same ones.
GOLDEN = [1, 3, 4, 10, 13, 15, 22, 26, 27, 30, 39]


def rows(num_rows, part):
    return choose_part(num_rows, part).to_mask()


def test_rows_of_a_part_never_change():
    assert np.flatnonzero(rows(40, (0.0, 0.25))).tolist() == GOLDEN


def test_parts_that_meet_have_each_row_once():
    parts = [rows(5000, part) for part in ((0.0, 0.1), (0.1, 0.5), (0.5, 1.0))]
    np.testing.assert_array_equal(np.sum(parts, axis=0), np.ones(5000))


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9])
def test_part_has_about_its_share(share):
    num_rows = 50_000
    deviation = (num_rows * share * (1 - share)) ** 0.5
    assert abs(rows(num_rows, (0.0, share)).sum() - num_rows * share) < 5 * deviation


def test_part_of_all_has_all_rows_and_one_of_no_rows_none():
    assert rows(777, (0.0, 1.0)).all()
    assert len(rows(0, (0.0, 0.5))) == 0


def test_row_is_in_a_part_or_not_however_many_rows_there_are():
    whole = rows(1000, (0.2, 0.7))
    for num_rows in (1, 63, 64, 65, 999):
        np.testing.assert_array_equal(rows(num_rows, (0.2, 0.7)), whole[:num_rows])


def test_rows_are_the_same_in_blocks_of_any_size(monkeypatch):
    whole = rows(1000, (0.2, 0.7))
    monkeypatch.setattr(module, "_ROWS", 64)
    np.testing.assert_array_equal(rows(1000, (0.2, 0.7)), whole)


def test_wider_part_holds_the_narrower_one():
    narrow, wide = rows(2000, (0.3, 0.4)), rows(2000, (0.2, 0.6))
    assert not (narrow & ~wide).any()


def test_rows_that_two_bitmaps_share():
    one, other = choose_part(500, (0.0, 0.6)), choose_part(500, (0.4, 1.0))
    np.testing.assert_array_equal(both(one, other).to_mask(), rows(500, (0.4, 0.6)))
