"""Statistics of the selected records."""

import numpy as np
import pytest

import penstock as ps
from penstock.view import field_summary as module
from penstock.view.browser import Browser
from penstock.view.field_summary import make_bins
from penstock.view.opened_data import open_data
from penstock.view.query import Query
from viewed_data import NUM_RECORDS


def fields_of(browser, **query):
    summary = browser.summarize(Query(split="train", **query))
    return {field.name: field for field in summary.fields}, summary


def test_statistics_describe_all_readable_records(browser):
    fields, summary = fields_of(browser)
    assert (summary.num_records, summary.num_bad, summary.is_exact) == (NUM_RECORDS, 2, True)
    assert dict(fields["age"].numbers)["max"] == "16"
    assert sum(bar.count for bar in fields["age"].bins) == 58
    assert fields["weight"].missing == 6
    assert [bar.label for bar in fields["breed"].values] == ["siamese", "persian", "sphynx"]
    assert fields["photo"].values[0].label == "png"
    assert fields["note"].measured == "characters"


def test_statistics_follow_the_filter(browser):
    fields, summary = fields_of(browser, filter='breed == "persian"')
    assert summary.num_records == fields["age"].count
    assert [bar.label for bar in fields["breed"].values] == ["persian"]


def test_frequent_value_comes_with_a_filter_that_selects_it(browser):
    fields, _ = fields_of(browser)
    bar = fields["breed"].values[0]
    _, summary = fields_of(browser, filter=bar.condition)
    assert summary.num_records == bar.count


def test_large_selection_is_sampled(browser, monkeypatch):
    monkeypatch.setattr(module, "MAX_SAMPLE", 10)
    monkeypatch.setattr(module, "_LEAST_SAMPLE", 5)
    _, summary = fields_of(browser)
    assert (summary.num_read, summary.is_exact) == (10, False)


def test_many_fields_are_summarized_in_parts(browser, monkeypatch):
    monkeypatch.setattr(module, "MAX_FIELDS", 3)
    names = list(browser.data.schema)
    fields, summary = fields_of(browser, column=4)
    assert (list(fields), summary.first) == (names[4:7], 4)
    assert list(fields_of(browser, column=10**6)[0]) == names[-1:]


def test_train_split_has_the_statistics_of_its_manifest(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_SAMPLE", 10)
    rows = [{"x": float(row), "y": row % 2} for row in range(300)]
    ps.convert(rows, tmp_path / "data", target="y", split={"train": 1.0})
    browser = Browser(open_data([str(tmp_path / "data")]))
    fields, summary = fields_of(browser)
    assert (summary.is_exact, summary.num_records) == (True, 300)
    assert dict(fields["x"].numbers)["max"] == "299"
    _, filtered = fields_of(browser, filter="x >= 0")
    assert filtered.num_records == 300
    browser.close()


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        ([1, 1, 2, 4], [2, 1, 0, 1]),
        ([5, 5], [2]),
        ([], []),
        ([np.nan, np.inf], []),
        ([0.0, 1e308, -1e308], [3]),
    ],
)
def test_histogram_counts_finite_numbers(values, counts):
    bins = make_bins(np.array(values, np.float64))
    assert [bar.count for bar in bins] == counts
    assert all(0 <= bar.share <= 1 for bar in bins)


def test_outliers_are_in_the_end_bins_whose_labels_say_so():
    values = np.concatenate([[-1e9], np.linspace(0, 1, 998), [1e9]])
    bins = make_bins(values)
    assert sum(bar.count for bar in bins) == 1000
    assert min(bar.count for bar in bins) > 10  # one outlier does not leave an empty chart
    assert (bins[0].label[:6], bins[-1].label[:5]) == ("up to ", "from ")
    assert not bins[1].label.startswith(("up", "from"))
    whole = make_bins(np.concatenate([np.repeat([1.0, 2.0, 3.0], 333), [1e6]]))
    assert [(bar.label, bar.count) for bar in whole] == [("1", 333), ("2", 333), ("from 3", 334)]
