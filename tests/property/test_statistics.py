"""Statistics against NumPy's, for any numbers in any blocks; and the same bits from the same blocks."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from penstock import _native
from penstock.columns import Dense, Ragged
from penstock.fields import Category, Number, Sequence
from penstock.schema.schema import Schema
from penstock.statistics.frequency import MAX_RANGE, Histogram
from penstock.statistics.moments import ElementMoments, Moments, measure_rows
from penstock.statistics.quantiles import LIST_VALUES, QUANTILES, take_evenly
from penstock.statistics.statistics import Statistics, measure_block
from penstock.statistics.summary import load_statistics

floats = st.floats(-1e6, 1e6, width=32)
any_floats = st.floats(width=32)


@given(arrays.arrays(np.float32, st.integers(0, 60), elements=any_floats), st.integers(1, 5))
def test_moments_of_any_numbers_in_any_parts_equal_moments_of_the_whole(numbers, num_parts):
    merged = Moments()
    for part in np.array_split(numbers, num_parts):
        merged.merge(Moments.of(part))
    finite = numbers[np.isfinite(numbers)].astype(np.float64)
    assert (merged.num_values, merged.num_finite) == (len(numbers), len(finite))
    assert merged.num_nan == np.isnan(numbers).sum()
    assert merged.num_zero == (numbers == 0).sum()
    if len(finite):
        scale = np.abs(finite).max()
        assert (merged.minimum, merged.maximum) == (finite.min(), finite.max())
        assert merged.mean == pytest.approx(finite.mean(), rel=1e-9, abs=1e-12 * scale)
        assert merged.deviation == pytest.approx(finite.std(), rel=1e-6, abs=1e-9 * scale)


@given(arrays.arrays(np.float32, st.tuples(st.integers(1, 30), st.integers(1, 4)), elements=floats))
def test_moments_of_elements_equal_moments_of_each_column(rows):
    merged = ElementMoments(rows.shape[1])
    for part in np.array_split(rows, 3):
        merged.merge(measure_rows(part, None)[1])
    exact = rows.astype(np.float64)
    scale = np.abs(exact).max() + 1
    assert merged.means == pytest.approx(exact.mean(axis=0), abs=1e-12 * scale)
    assert merged.deviations == pytest.approx(exact.std(axis=0), abs=1e-7 * scale)


PIECE_VALUES = 1 << 15


def add_columns(rows):
    """Add up each column in the order that manifests depend on: row by row; pairwise for a single column."""
    if rows.shape[1] == 1:
        return np.add.reduce(rows, axis=0)
    totals = np.zeros(rows.shape[1])
    for row in rows:
        totals = totals + row
    return totals


def measure_plainly(rows):
    """Return count, mean and squares of each column, piece by piece."""
    size = rows.shape[1]
    counts, means, squares = np.zeros(size, np.int64), np.zeros(size), np.zeros(size)
    step = max(1, PIECE_VALUES // size)
    for start in range(0, len(rows), step):
        piece = rows[start : start + step].astype(np.float64)
        totals = add_columns(piece)
        is_finite = np.ones(piece.shape, bool)
        if np.isfinite(totals).all():
            piece_means = totals / len(piece)
        else:
            is_finite = np.isfinite(piece)
            piece[~is_finite] = 0.0
            piece_means = add_columns(piece / np.maximum(is_finite.sum(axis=0), 1))
        piece_counts = is_finite.sum(axis=0)
        distances = np.where(is_finite, piece - piece_means, 0.0)
        piece_squares = add_columns(distances * distances)
        apart = piece_means - means
        shares = piece_counts / np.maximum(counts + piece_counts, 1)
        means = means + apart * shares
        squares = squares + piece_squares + apart * (apart * (counts * shares))
        counts = counts + piece_counts
    return counts, means, squares


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("shape", [(5, 1), (70_000, 1), (40_000, 2), (3000, 64), (1, 7), (30, 4096)])
@pytest.mark.parametrize("is_finite", [True, False])
@pytest.mark.parametrize("has_mask", [True, False])
def test_moments_of_rows_have_the_bits_of_plain_sums(dtype, shape, is_finite, has_mask):
    rng = np.random.default_rng(shape)
    rows = (rng.normal(size=shape) * 10.0 ** rng.integers(-3, 9, shape)).astype(dtype)
    if not is_finite and dtype != np.int64:
        rows[rng.random(shape) < 0.01] = np.nan
        rows[rng.random(shape) < 0.01] = np.inf
    rows[rng.random(shape) < 0.01] = 0
    keep = rng.random(len(rows)) < 0.7 if has_mask else None
    wanted = rows if keep is None else rows[keep]
    moments, elements = measure_rows(rows, keep)
    counts, means, squares = measure_plainly(wanted)
    assert elements.counts.tolist() == counts.tolist()
    assert elements.means.tobytes() == means.tobytes()
    assert elements.squares.tobytes() == squares.tobytes()
    finite = wanted[np.isfinite(wanted)]
    assert (moments.num_values, moments.num_nan) == (wanted.size, np.isnan(wanted).sum())
    assert (moments.num_inf, moments.num_zero) == (np.isinf(wanted).sum(), (wanted == 0).sum())
    extremes = (finite.min().item(), finite.max().item()) if len(finite) else (None, None)
    assert (moments.minimum, moments.maximum) == extremes


@given(
    st.lists(
        st.lists(st.one_of(st.integers(-3, 3), st.integers(MAX_RANGE - 3, MAX_RANGE + 3)), max_size=4),
        max_size=20,
    ),
    st.integers(0, 5),
    st.data(),
)
def test_integers_of_lists_are_counted_as_numpy_does(rows, num_before, data):
    keep = data.draw(st.none() | st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    mask = None if keep is None else np.array(keep, bool)
    every = [9] * num_before + [value for row in rows for value in row]
    offsets = np.cumsum([num_before, *map(len, rows)])
    found = Histogram.of_lists(np.array(every, np.int64), offsets, mask)
    kept = [value for i, row in enumerate(rows) for value in row if keep is None or keep[i]]
    expected = Histogram.of(np.array(kept, np.int64)) if kept else None
    assert (found is None) == (expected is None)
    if found is not None:
        assert (found.low, found.counts.tolist()) == (expected.low, expected.counts.tolist())


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64, np.uint8])
def test_values_of_lists_are_taken_at_even_distances(dtype):
    lengths = np.array([0, 1, 2, 15, 16, 17, 31, 32, 33, 1000])
    starts = np.cumsum(lengths) - lengths
    values = np.random.default_rng(3).integers(0, 100, int(lengths.sum())).astype(dtype)
    found = take_evenly(values, starts, lengths)
    assert found.dtype == np.float64
    for row, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        taken = [start + i * max(length, LIST_VALUES) // LIST_VALUES for i in range(min(length, LIST_VALUES))]
        wanted = [float(values[at]) for at in taken]
        assert found[row, : len(wanted)].tolist() == wanted
        assert np.isnan(found[row, len(wanted) :]).all()


@given(st.lists(st.lists(st.integers(-50, 50), max_size=12), max_size=40), st.data())
def test_statistics_of_any_rows_equal_a_plain_count(rows, data):
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), bool)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    schema = Schema(
        {"list": Sequence("int64"), "first": Number("int64", optional=True), "size": Category("int64")}
    )
    statistics = Statistics(schema)
    for part in np.split(np.arange(len(rows)), cuts):
        some = [rows[i] for i in part]
        values = np.array([value for row in some for value in row], np.int64)
        present = np.array([bool(row) for row in some], bool)
        columns = {
            "list": Ragged(values, np.cumsum([0, *map(len, some)])),
            "first": Dense(np.array([row[0] if row else 77 for row in some], np.int64), present),
            "size": Dense(np.array([len(row) for row in some], np.int64)),
        }
        keys = _native.mix_hashes(1, part.astype(np.uint64))
        statistics.merge(measure_block(schema, columns, keep[part], keys))
    summaries = statistics.fields()
    kept = [row for row, is_kept in zip(rows, keep, strict=True) if is_kept]
    every = [value for row in kept for value in row]
    firsts = [row[0] for row in kept if row]
    assert statistics.num_rows == summaries["size"].count == len(kept)
    assert (summaries["first"].count, summaries["first"].missing) == (len(firsts), len(kept) - len(firsts))
    if firsts:
        assert summaries["first"].values.quantiles == pytest.approx(np.quantile(firsts, QUANTILES))
        assert summaries["first"].values.mean == pytest.approx(np.mean(firsts))
    if every:
        assert summaries["list"].values.quantiles == pytest.approx(np.quantile(every, QUANTILES))
        found = summaries["list"].frequencies
        assert dict(zip(found.values, found.counts, strict=True)) == {v: every.count(v) for v in set(every)}
        assert list(found.counts) == sorted(found.counts, reverse=True)
    assert load_statistics(json.loads(json.dumps(statistics.to_json())))["list"] == summaries["list"]


@given(st.lists(any_floats, min_size=1, max_size=50))
def test_json_form_has_no_number_that_json_lacks(numbers):
    schema = Schema({"x": Number()})
    statistics = Statistics(schema)
    column = Dense(np.array(numbers, np.float32))
    statistics.merge(measure_block(schema, {"x": column}, None, _native.mix_rows(0, 0, len(numbers))))
    text = json.dumps(statistics.to_json(), allow_nan=False)
    mean = load_statistics(json.loads(text))["x"].values.mean
    assert mean is None or math.isfinite(mean)
