"""Dates that do not fit: out of range, no dates at all, times of day among days, time zones in some rows."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from fake_runs import fit_run
from penstock.errors import CellError, FieldError, SchemaError
from penstock.fields import Date
from penstock.jobs.predict.predict import predict
from raising import containing, raises_with


def convert(values, folder, unit="days", **options):
    return ps.convert({"x": values}, folder / "out", fields={"x": Date(unit)}, split="train=1.0", **options)


@pytest.mark.parametrize(
    ("values", "unit", "got"),
    [
        (np.array(["2024-01-01", "400000-01-01"], "M8[D]"), "days", "400000-01-01"),
        (np.array(["2024-01-01", "400000-01-01"], "M8[D]"), "microseconds", "400000-01-01"),
        (pa.array([0, 2**31 - 1], pa.date32()), "days", "5881580"),
        (pa.array([0, 2**62], pa.timestamp("s")), "microseconds", ""),
        ([0, 2**63], "microseconds", str(2**63)),
        ([0, -(2**63)], "days", str(-(2**63))),  # which NumPy and Arrow have no date for
        (["2024-01-01", "294300-01-01"], "microseconds", "294300"),
        (pa.array([0, 1], pa.timestamp("ns")), "microseconds", "1970-01-01T00:00:00.000000001"),
    ],
)
def test_date_out_of_range_is_named_with_its_row(values, unit, got, tmp_path):
    with raises_with(CellError, row=2, field="x", got=containing(got)):
        convert(values, tmp_path, unit)


@pytest.mark.parametrize(
    ("values", "unit", "got"),
    [
        (["2024-01-01", "2024-02-30"], "days", "2024-02-30"),
        (["2024-01-01", "tomorrow"], "days", "tomorrow"),
        (["2024-01-01", "20240101"], "days", "20240101"),
        (["2024-01-01", "31.01.2024"], "days", "31.01.2024"),
        (["2024-01-01", "2024-01-01T12:00"], "days", "12:00"),
        ([datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 12)], "days", "12:00"),
        ([datetime.datetime(2024, 1, 1), datetime.time(12)], "microseconds", "12"),
        ([datetime.datetime(2024, 1, 1), datetime.timedelta(hours=3)], "microseconds", ""),
        ([0, 1.5], "days", "1.5"),
        ([0, True], "days", "True"),
        ([0, [1]], "days", "[1]"),
    ],
)
def test_what_is_no_date_is_named_with_its_row(values, unit, got, tmp_path):
    with raises_with(CellError, row=2, field="x", got=containing(got)):
        convert(values, tmp_path, unit)


def test_bad_dates_are_left_out_and_counted(tmp_path):
    data = convert(["2024-01-31", "soon", "2024-02-30", None], tmp_path, on_error="collect")
    assert {row.get("x") for row in data["train"]} == {np.datetime64("2024-01-31"), None}
    assert data.manifest.rejects["by_column"] == {"x": 2}


def test_wrong_text_in_a_target_of_dates_is_an_error_with_its_row(tmp_path):
    rows = [*(f"2024-01-{day:02}" for day in range(1, 31)), "not sold"]
    with raises_with(CellError, row=31, field="sold", got="'not sold'", expected=containing("ISO 8601")):
        ps.convert({"sold": rows, "x": list(range(31))}, tmp_path / "a", fields={"sold": Date(role="target")})
    lacking = [*rows[:30], "NA"]  # a well-known marker: the record has no label
    data = ps.convert({"sold": lacking, "x": list(range(31))}, tmp_path / "b", target="sold")
    assert (data.schema["sold"].type_name, data.schema["sold"].optional) == ("date", True)


def test_mixed_zones_are_read_as_utc_where_declared_and_refused_as_days(tmp_path):
    zone = datetime.timezone(datetime.timedelta(hours=-5))
    moments = [datetime.datetime(2024, 1, 1, 12, tzinfo=zone), datetime.datetime(2024, 1, 1, 12)]
    for number, values in enumerate((moments, [each.isoformat() for each in moments])):
        folder = tmp_path / str(number)
        folder.mkdir()
        data = convert(values, folder, "microseconds", shuffle=False)
        assert [row["x"] for row in data["train"]] == [
            np.datetime64("2024-01-01T17:00"),
            np.datetime64("2024-01-01T12:00"),
        ]
    midnights = ["2024-01-01T00:00-05:00", "2024-01-02T00:00-05:00"]  # 5 o'clock in UTC
    with raises_with(CellError, row=1, got=containing("05:00")):
        convert(midnights, tmp_path)


def test_new_data_with_another_zone_or_a_text_is_read_as_trained_or_refused(tmp_path):
    times = [f"2024-01-{day:02}T12:00:00" for day in range(1, 29)]
    run = fit_run({"at": times, "y": ["a", "b"] * 14}, tmp_path / "data", target="y")
    predict(run, {"at": ["2024-01-05T12:00:00"]})
    predict(run, {"at": ["2024-01-05T14:00:00+02:00"]})
    predict(run, [{"at": datetime.datetime(2024, 1, 5, 12)}])
    asked = [{name: values.tolist() for name, values in each.items()} for each in run.asked]
    assert asked[0] == asked[1] == asked[2]
    with raises_with(CellError, field="at", got="'later'"):
        predict(run, {"at": ["later"]})


def test_days_that_arrow_cannot_hold_are_refused_by_name(tmp_path):
    data = ps.convert({"x": [2**40]}, tmp_path / "out", split="train=1.0")
    dates = ps.open(tmp_path / "out", fields={"x": Date()})
    assert data["train"][0]["x"] == 2**40
    with raises_with(FieldError, field="x", got=str(2**40), advice=containing("Number")):
        dates["train"].to_arrow()


def test_records_that_do_not_hold_integers_are_not_opened_as_dates(tmp_path):
    ps.convert({"x": [0.5]}, tmp_path / "out", split="train=1.0")
    with raises_with(SchemaError, field="x", got=containing("float")):
        ps.open(tmp_path / "out", fields={"x": Date()})
