"""Bins of charts: whole numbers, outliers, equal and huge numbers."""

import numpy as np
import pytest

from penstock.statistics.frequency import NUM_BINS, choose_edges, count_values


def test_whole_numbers_in_a_small_range_have_a_bin_each():
    edges = choose_edges(np.array([3, 5, 5, 6]))
    assert edges.tolist() == [2.5, 3.5, 4.5, 5.5, 6.5]
    assert count_values(np.array([3, 5, 5, 6]), edges).tolist() == [1, 0, 2, 1]


def test_outlier_is_counted_in_the_last_bin_and_does_not_stretch_the_bins():
    values = np.append(np.linspace(0, 1, 999), 1e9)
    edges = choose_edges(values)
    assert (len(edges), edges[-1] < 2) == (NUM_BINS + 1, True)
    assert count_values(values, edges).sum() == 1000


@pytest.mark.parametrize("values", [[7.0], [7.0, 7.0], [0.1, 0.1, 0.1]])
def test_equal_numbers_have_one_bin(values):
    edges = choose_edges(np.array(values))
    assert edges.tolist() == [values[0], values[0]]
    assert count_values(np.array(values), edges).tolist() == [len(values)]


def test_rare_value_among_equal_ones_has_bins():
    values = np.append(np.zeros(999), 1.0)
    edges = choose_edges(values)
    assert count_values(values, edges).tolist() == [999, 1]


@pytest.mark.parametrize("values", [[-1e308, 1e308], [2.0**53, 2.0**53 + 2], [1.0, np.nextafter(1.0, 2)]])
def test_numbers_at_the_limits_of_doubles_are_counted(values):
    edges = choose_edges(np.array(values))
    assert np.isfinite(edges).all()
    assert count_values(np.array(values), edges).sum() == 2


def test_no_numbers_have_no_bins():
    assert choose_edges(np.zeros(0)).tolist() == []
    assert count_values(np.array([1.0]), np.zeros(0)).tolist() == []
