"""Dates in the viewer and in reports: values, statistics, histograms, filters and order."""

import datetime

import numpy as np
import pytest

import penstock as ps
from penstock.model.task import Task
from penstock.report.report import write_report
from penstock.schema.date import Date
from penstock.score.scores import compute_losses
from penstock.view.browser import Browser
from penstock.view.field_summary import make_bins
from penstock.view.opened_data import open_data
from penstock.view.predictions import TargetOutcome
from penstock.view.query import Query
from raising import containing

NUM = 50
START = datetime.datetime(2024, 1, 1, 12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "out"
    rows = [
        {
            "day": None if n % 10 == 3 else (START + datetime.timedelta(days=n)).date(),
            "at": START + n * datetime.timedelta(hours=7),
        }
        for n in range(NUM)
    ]
    ps.convert(rows, folder, split="train=1.0", shuffle=False)
    return folder


def test_samples_and_tables_show_dates(folder):
    train = ps.open(folder)["train"]
    assert "2024-01-02" in str(train.head(3))
    assert "2024-01-01 19:00:00" in str(train.head(3))
    assert "2024-01-02" in train.head(3)._repr_html_()
    assert "2024-01-02" in train._repr_html_()
    frame = train.to_pandas()
    assert str(frame["at"].dtype).startswith("datetime64")
    assert frame["day"].isna().sum() == NUM // 10


def test_statistics_of_dates_are_dates():
    days = np.arange(19_723.0, 19_773.0)
    labels = [each.label for each in make_bins(days, "days")]
    assert all(label.startswith("2024-0") for label in labels)
    assert make_bins(days[:1], "days")[0].label == "2024-01-01"
    times = make_bins(days * 86_400_000_000, "microseconds")
    assert " to 2024-" in times[3].label
    assert sum(each.count for each in times) == 50


def test_viewer_filters_sorts_and_summarizes_dates(folder):
    browser = Browser(open_data([str(folder)]))
    try:
        assert 'day > "2024-01-31"' in browser.example_filter
        query = Query(split="train", filter='day >= "2024-02-15"')
        fields = {each.name: each for each in browser.summarize(query).fields}
        numbers = dict(fields["day"].numbers)
        assert (numbers["first"], numbers["last"]) == ("2024-02-15", "2024-02-19")
        assert numbers["deviation"].endswith(" days")
        assert fields["at"].bins[0].label.startswith("2024-01-")
        page = browser.read_page(Query(split="train", sort="field:day", order="descending"))
        cells = [record.cells["day"].text for record in page.records]
        assert cells[:2] == ["2024-02-19", "2024-02-18"]
    finally:
        browser.close()


@pytest.mark.parametrize("unit", ["days", "microseconds"])
def test_predicted_dates_are_shown_with_errors_in_days(unit):
    scale = 1 if unit == "days" else 86_400_000_000
    truths, codes = np.array([19_723.0, 19_725.0]) * scale, np.array([19_724.4, 19_725.0]) * scale
    task = Task("due", "regression", method="standard", unit=unit)
    losses = compute_losses(task, truths, codes)
    nan, wrong = np.full(2, np.nan), losses > 0
    found = TargetOutcome("regression", (), truths, codes, nan, losses, wrong, unit).describe(0)
    assert found["truth"].startswith("2024-01-01")
    assert found["prediction"].startswith("2024-01-02")
    assert (found["loss"], found["measure"]) == (pytest.approx(1.4), "absolute error in days")
    outcome = TargetOutcome("regression", (), truths, codes, nan, losses, wrong, unit)
    assert outcome.describe_baseline() == containing("in days", "0.700", "1.00")


def test_report_describes_dates(folder):
    found = write_report(ps.open(folder), None)["data"]
    fields = {each["name"]: each for each in found["fields"]}
    summary = fields["day"]["parts"]["values"]["summary"]["train"]
    assert (summary["first"], summary["last"]) == ("2024-01-01", "2024-02-19")
    assert summary["dates"]["0.5"].startswith("2024-01-2")
    assert summary["dates"]["deviation"].endswith(" days")
    assert fields["at"]["form"] == "time"
    texts = {value["name"]: value["text"] for value in found["samples"][0]["values"]}
    assert texts["at"].startswith("2024-01-")
    assert fields["day"]["type"] == Date.type_name
