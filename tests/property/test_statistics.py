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
from penstock.statistics.moments import ElementMoments, Moments
from penstock.statistics.quantiles import QUANTILES
from penstock.statistics.statistics import Statistics, measure_block
from penstock.statistics.summary import load_statistics

floats = st.floats(-1e6, 1e6, width=32)
any_floats = st.floats(width=32)


@given(arrays.arrays(np.float32, st.integers(0, 60), elements=any_floats), st.integers(1, 5))
def test_moments_of_any_numbers_in_any_parts_are_those_of_the_whole(numbers, num_parts):
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
def test_moments_of_elements_are_those_of_each_column(rows):
    merged = ElementMoments(rows.shape[1])
    for part in np.array_split(rows, 3):
        merged.merge(ElementMoments.of(part))
    exact = rows.astype(np.float64)
    scale = np.abs(exact).max() + 1
    assert merged.means == pytest.approx(exact.mean(axis=0), abs=1e-12 * scale)
    assert merged.deviations == pytest.approx(exact.std(axis=0), abs=1e-7 * scale)


@given(st.lists(st.lists(st.integers(-50, 50), max_size=12), max_size=40), st.data())
def test_statistics_of_any_rows_are_those_of_a_plain_count(rows, data):
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
