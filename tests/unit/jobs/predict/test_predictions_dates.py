"""Dates as targets and inputs of a run: predictions, scores, mistakes and files have dates."""

import datetime
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import penstock as ps
from fake_runs import FakeRun, fit_run
from penstock.jobs.evaluate.evaluate import evaluate
from penstock.jobs.predict.predict import predict
from penstock.model.task import find_tasks

NUM = 40
START = {"days": datetime.date(2024, 1, 1), "microseconds": datetime.datetime(2024, 1, 1, 6, 30)}


class DateRun(FakeRun):
    """A run that predicts the day or time of each row of `rows`, some hours late, from its scaled number."""

    late = 0.0

    def _ask(self, inputs):
        task = self.tasks["due"]
        days = np.asarray(inputs["n"], np.float64) + self.late
        first = np.datetime64(START[task.unit], "us").astype(np.int64) / 86_400_000_000
        unit = 1 if task.unit == "days" else 86_400_000_000
        return {"due": (days + first) * unit}


def make_rows(unit):
    due = [START[unit] + datetime.timedelta(days=number) for number in range(NUM)]
    return {"n": np.arange(float(NUM)), "due": due}


@pytest.fixture(params=["days", "microseconds"])
def run(request, tmp_path):
    made = fit_run(
        make_rows(request.param), tmp_path / "data", {"n": ps.transform.Keep("float32")}, target="due"
    )
    return DateRun(made.pipeline, made.data)


def unit_of(run):
    return run.tasks["due"].unit


def test_target_of_dates_is_a_regression_with_their_unit(run):
    (task,) = find_tasks(run.pipeline).values()
    assert (task.kind, task.method, task.unit) == ("regression", "standard", unit_of(run))
    assert task.describe() == "regression of dates"
    numbers = np.array([0.0, 1.0])
    np.testing.assert_allclose(task.scale(task.undo(numbers)), numbers, atol=1e-6)


def test_dates_are_predicted_as_dates(run, tmp_path):
    rows = make_rows(unit_of(run))
    run.late = 0.3 if unit_of(run) == "days" else 0.0  # the nearest day is the prediction
    for out in ("a.csv", "a.parquet", "a.jsonl"):
        found = predict(run, {"n": rows["n"]}, out=tmp_path / out)
        assert found.num_rows == NUM
    table = predict(run, {"n": rows["n"]}).table
    assert table["due"].to_pylist() == rows["due"]
    assert table["due"].type == (pa.date32() if unit_of(run) == "days" else pa.timestamp("us"))
    written = [str(each) for each in rows["due"]]
    assert pd.read_csv(tmp_path / "a.csv")["due"].tolist() == written
    lines = (tmp_path / "a.jsonl").read_text().splitlines()
    assert [json.loads(line)["due"] for line in lines] == written
    assert pa.parquet.read_table(tmp_path / "a.parquet")["due"].to_pylist() == rows["due"]
    assert written[0] in str(found)


def test_numbers_that_are_no_dates_are_null(run):
    for late in (np.nan, np.inf, 1e12, -1e12):
        run.late = late
        assert predict(run, {"n": np.array([0.0, 1.0])}).table["due"].null_count == 2
    run.late = 0.0
    assert predict(run, {"n": np.array([0.0])}).table["due"].to_pylist() == [START[unit_of(run)]]


def test_true_dates_are_kept_beside_predictions(run):
    rows = make_rows(unit_of(run))
    table = predict(run, rows, keep=["due"]).table
    assert table["due_true"].to_pylist() == rows["due"]


def test_errors_are_in_days_and_mistakes_are_dates(run):
    run.late = 2.0
    found = evaluate(run, run.data, split="train")
    scores = found.targets["due"]
    assert scores["mae"] == pytest.approx(2, abs=1e-6)
    assert scores["rmse"] == pytest.approx(2, abs=1e-6)
    assert scores["mape"] is None  # relative to 1970
    first = found.mistakes["due"][0]
    truth = np.datetime64(first.truth.replace(" ", "T"))
    assert np.datetime64(first.prediction.replace(" ", "T")) - truth == np.timedelta64(2, "D")
    assert truth in np.array(make_rows(unit_of(run))["due"], "M8[us]")
    assert first.loss == pytest.approx(2, abs=1e-6)
    assert "RMSE and MAE are in days" in str(found)
    json.dumps(found.to_json())


def test_inputs_of_dates_are_shown_and_sliced_as_dates(tmp_path):
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=number) for number in range(NUM)]
    run = fit_run({"seen": days, "y": np.arange(float(NUM))}, tmp_path / "data", target="y")
    found = evaluate(run, run.data, split="train", slices=["seen"])
    assert found.slices["seen"][0].name == "2024-01-01 to 2024-01-08"
    assert found.mistakes["y"][0].inputs["seen"].startswith("2024-0")


def test_missing_dates_of_new_data_are_accepted_as_in_training(tmp_path):
    days = [None if number % 5 == 3 else datetime.date(2024, 1, 1 + number) for number in range(30)]
    run = fit_run({"seen": days, "y": np.arange(30.0)}, tmp_path / "data", target="y")
    for value in (None, np.datetime64("NaT"), pd.NaT, float("nan")):
        predict(run, [{"seen": value}, {"seen": datetime.date(2024, 1, 2)}])
    asked = [{name: values.tolist() for name, values in each.items()} for each in run.asked]
    assert all(each == asked[0] for each in asked)
    assert [values[0] for values in asked[0].values()] == [0.0] * len(asked[0])
