"""Bins of numbers: which values are edges, and how they are stored."""

import json

import numpy as np
import pytest

import penstock as ps
from fit_sources import fit, numbers
from penstock.columns import Dense
from penstock.errors import OptionError, SchemaError
from penstock.fields import Number, Tensor
from penstock.transform import Scale
from penstock.transform.pipeline import Pipeline
from penstock.transform.scale_range import find_edges, find_frequent


def test_few_distinct_values_are_the_edges():
    assert find_edges(numbers([3, 1, 2, 1, 3]), 32) == (1.0, 2.0, 3.0)


@pytest.mark.parametrize("values", [[], [5.0, 5.0], [5.0, np.nan, np.inf]])
def test_fewer_than_two_distinct_finite_values_have_no_edges(values):
    assert find_edges(Dense(np.array(values, np.float64)), 32) == ()


def test_missing_values_are_ignored():
    column = Dense(np.array([0.0, 1.0, 2.0]), np.array([False, True, True]))
    assert find_edges(column, 32) == (1.0, 2.0)


def test_edges_of_even_values_are_even_and_include_both_ends():
    edges = find_edges(numbers(np.arange(1001.0)), 10)
    assert edges == pytest.approx(np.linspace(0, 1000, 6), abs=1)
    assert (edges[0], edges[-1]) == (0.0, 1000.0)


def test_half_of_the_edges_are_quantiles_of_the_distinct_values():
    # 90 % of the records have one of ten small values: quantiles of the records alone end below 100.
    values = np.concatenate([np.tile(np.arange(10.0), 90), 100 + np.arange(100.0)])
    edges = np.array(find_edges(numbers(values), 16))
    assert np.count_nonzero(edges >= 100) >= 7
    assert np.count_nonzero(edges < 100) >= 6


def test_frequent_value_has_an_edge_on_it_and_on_both_of_its_neighbours():
    values = np.concatenate([np.arange(1000.0), np.full(200, 123.0), np.full(150, 777.0)])
    edges = find_edges(numbers(values), 8)
    assert {122.0, 123.0, 124.0, 776.0, 777.0, 778.0} <= set(edges)


def test_frequent_values_stand_out_from_those_next_to_them():
    assert not len(find_frequent(np.full(300, 50)))
    assert not len(find_frequent(np.array([15, *[1] * 300])))  # too few records to learn from
    assert find_frequent(np.array([1, 40, *[1] * 300, 60])).tolist() == [302, 1]
    ages = np.round(1000 * np.exp(-(((np.arange(70) - 20) / 12) ** 2))).astype(int) + 1
    assert not len(find_frequent(ages))
    ages[22] *= 5
    assert find_frequent(ages).tolist() == [22]


def test_value_that_most_records_have_does_not_hide_others():
    counts = np.full(100, 2)
    counts[[0, 40, 43, 80]] = 9000, 90, 60, 20
    assert find_frequent(counts).tolist() == [0, 40, 43]


def test_number_of_frequent_values_is_limited():
    assert len(find_frequent(np.tile([100, *[1] * 50], 40))) == 16


def test_value_on_an_edge_is_exactly_on_it_after_scaling():
    values = np.random.default_rng(0).lognormal(3, 2, 5000).astype(np.float32)
    scale = fit(Scale(), Number(), Dense(values))
    scaled = scale.apply("x", Dense(np.array(scale.fitted.edges, np.float32)), None)["x"]
    assert scale.scaled_edges.tolist() == sorted(set(scaled.tolist()))
    assert len(scale.scaled_edges) > 20


def test_edges_follow_the_method():
    column = numbers(np.arange(1.0, 21.0))
    assert fit(Scale("none"), Number(), column).scaled_edges.tolist() == list(range(1, 21))
    logs = fit(Scale("log1p"), Number(), column).scaled_edges
    assert logs == pytest.approx(np.log1p(np.arange(1.0, 21.0)), rel=1e-6)


def test_targets_tensors_and_bins_of_0_have_no_edges():
    column = numbers([1, 2, 3])
    assert fit(Scale(), Number(role="target"), column).fitted.edges == ()
    assert fit(Scale(bins=0), Number(), column).fitted.edges == ()
    assert fit(Scale(bins=0), Number(), column).scaled_edges.tolist() == []
    rows = Dense(np.arange(6.0, dtype=np.float32).reshape(3, 2))
    assert fit(Scale(), Tensor((2,), "float32"), rows).fitted.edges == ()


def test_default_of_the_field_counts_as_its_value():
    column = Dense(np.array([4.0, 7.0, 4.0]), np.array([False, True, False]))
    assert fit(Scale(), Number(optional=True, default=4.0), column).fitted.edges == (4.0, 7.0)


@pytest.mark.parametrize("given", [-1, 2.5, "many", 5000])
def test_number_of_bins_is_checked(given):
    with pytest.raises(OptionError) as caught:
        Scale(bins=given)
    assert caught.value.field == "bins"


@pytest.mark.parametrize("edges", [[2.0, 1.0], [1.0, 1.0]])
def test_edges_that_do_not_ascend_are_refused(edges):
    form = fit(Scale(), Number(), numbers([1, 2, 3])).to_json()
    form["fitted"]["edges"] = edges
    with pytest.raises(SchemaError) as caught:
        Scale.from_json(form)
    assert caught.value.field.endswith("fitted.edges")


def test_pipeline_of_a_version_without_bins_is_read_and_keeps_its_fingerprint(tmp_path):
    data = ps.convert({"x": np.arange(50.0), "y": np.arange(50.0)}, tmp_path / "data", target="y")
    form = json.loads(json.dumps(Pipeline.fit(data).to_json()))
    assert form["transforms"]["x"]["fitted"]["edges"][0] == 0.0
    del form["transforms"]["x"]["bins"], form["transforms"]["x"]["fitted"]["edges"]
    earlier = Pipeline.from_json(form)
    assert earlier.transforms["x"].bins == 0
    assert earlier.to_json() == form
    assert earlier.fingerprint() == Pipeline.fit(data, x=Scale(bins=0)).fingerprint()


def test_large_split_is_sampled_in_runs_from_the_first_record_to_the_last(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.transform.fit_source._SAMPLE_ROWS", 640)
    values = np.arange(3000) / 2
    options = {"split": {"train": 1.0}, "shuffle": False}
    data = ps.convert({"x": values, "y": values}, tmp_path / "data", target="y", **options)
    edges = Pipeline.fit(data).transforms["x"].fitted.edges
    assert (edges[0], edges[-1]) == (0.0, 1499.5)
    assert 25 <= len(edges) <= 35


def test_missing_values_have_a_separate_bin_if_they_are_many():
    values = np.concatenate([np.arange(1000.0), np.zeros(100)])
    column = Dense(values, np.arange(1100) < 1000)
    scale = fit(Scale(), Number(optional=True), column)
    assert {499.0, 499.5, 500.0} <= set(scale.fitted.edges)
    filled = scale.apply("x", column, None)["x"][-1]
    assert filled in scale.scaled_edges
    few = Dense(values[:1010], np.arange(1010) < 1000)
    assert 499.0 not in fit(Scale(), Number(optional=True), few).fitted.edges


def test_nan_that_counts_as_missing_has_a_bin_as_well():
    values = np.concatenate([np.arange(1000.0), np.full(100, np.nan)])
    assert -5.0 in fit(Scale(nan="missing", missing=-5.0), Number(), Dense(values)).fitted.edges


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
def test_edge_between_whole_numbers_is_scaled_like_the_value_that_replaces_missing_ones(dtype):
    column = Dense(np.array([0, 1, 3] * 20, dtype), np.arange(60) < 40)
    scale = fit(Scale("minmax"), Number(dtype, optional=True), column)
    filled = scale.apply("x", column, None)["x"][-1]
    assert filled == pytest.approx(scale.scaled_edges[2], abs=1e-6)
    assert len(scale.scaled_edges) == 4
