"""`ExpandDate`: which parts of dates models get, in which numbers, and what becomes of missing dates."""

import datetime
import json
import math

import numpy as np
import pytest

from fit_sources import ColumnSource, fit, numbers, run
from penstock.errors import OptionError, SchemaError
from penstock.fields import Date, Text
from penstock.foundation.json_form import JsonValue
from penstock.schema.schema import Schema
from penstock.transform import ExpandDate, Scale
from penstock.transform.base import PIPELINE
from penstock.transform.date import SIZES, find_positions
from penstock.transform.kinds import choose_transform
from raising import containing, raises_with

DAY = 86_400_000_000
EPOCH = datetime.datetime(1970, 1, 1)


def days(*texts, **choices):
    return numbers(
        [text and (datetime.date.fromisoformat(text) - EPOCH.date()).days for text in texts], "int64"
    )


def times(*texts):
    moments = [text and datetime.datetime.fromisoformat(text) - EPOCH for text in texts]
    return numbers([each and each // datetime.timedelta(microseconds=1) for each in moments], "int64")


def circle(position, size):
    return math.sin(2 * math.pi * position / size), math.cos(2 * math.pi * position / size)


def test_dates_become_scaled_time_and_points_on_circles():
    column = days("2024-01-31", "2024-04-03", "2025-01-04")  # Wednesday, Wednesday, Saturday
    found = run(fit(ExpandDate(), Date(), column), column)
    assert list(found) == ["x", "x_month_sin", "x_month_cos", "x_weekday_sin", "x_weekday_cos"]
    stored = column.values.astype(np.float64)
    np.testing.assert_allclose(found["x"], (stored - stored.mean()) / stored.std(), rtol=1e-6)
    for part, positions in (("month", (0, 3, 0)), ("weekday", (2, 2, 5))):
        expected = np.array([circle(position, SIZES[part]) for position in positions])
        np.testing.assert_allclose(found[f"x_{part}_sin"], expected[:, 0], atol=1e-7)
        np.testing.assert_allclose(found[f"x_{part}_cos"], expected[:, 1], atol=1e-7)


def test_scaled_time_is_that_of_scale():
    column = times("2024-01-31T05:00", "2024-02-03T07:30", None, "1931-12-31T23:59:59.999999")
    field = Date("microseconds", optional=True)
    both = ExpandDate(indicator=True), Scale(indicator=True)
    dates, scaled = (run(fit(each, field, column), column) for each in both)
    for name in ("x", "x_missing"):
        assert dates[name].tobytes() == scaled[name].tobytes()
    assert (
        fit(both[0], field, column).scaled_edges.tolist() == fit(both[1], field, column).scaled_edges.tolist()
    )


@pytest.mark.parametrize(
    ("column", "unit", "parts"),
    [
        (days("2024-01-01", "2024-01-08"), "days", ("time",)),  # two Mondays of a month
        (days("2024-01-01", "2024-01-02"), "days", ("time", "weekday")),
        (days("2024-01-01", "2024-02-05"), "days", ("time", "month")),
        (days("2024-01-01", "2024-01-01", None), "days", ("time",)),  # one date: 0 in all records
        (days(None, None), "days", ("time",)),
        (times("2024-01-01T10:00", "2024-01-01T10:59"), "microseconds", ("time",)),
        (times("2024-01-01T10:00", "2024-01-01T11:00"), "microseconds", ("time", "hour")),
        (times("2024-01-01", "2024-02-02"), "microseconds", ("time", "month", "weekday")),  # midnights
    ],
)
def test_parts_that_have_one_value_are_left_out(column, unit, parts):
    fitted = fit(ExpandDate(), Date(unit, optional=True), column)
    assert fitted.fitted.parts == parts
    names = [each.name for each in fitted.outputs("x")]
    assert names == ["x", *(f"x_{part}_{end}" for part in parts[1:] for end in ("sin", "cos"))]
    assert {each.dtype for each in fitted.outputs("x")} == {"float32"}
    assert {each.shape for each in fitted.outputs("x")} == {()}


def test_missing_dates_are_the_mean_and_the_center_of_circles():
    column = times("2024-01-01T10:00", None, "2024-07-05T22:00")
    found = run(fit(ExpandDate(indicator=True), Date("microseconds", optional=True), column), column)
    assert {name: values[1] for name, values in found.items()} == {
        **dict.fromkeys(found, 0.0),
        "x_missing": 1.0,
    }
    assert np.abs(found["x_hour_sin"][0]) > 0


def test_missing_dates_are_a_given_date():
    column = days("2024-01-01", None, "2024-07-05", "2024-03-13")
    fitted = fit(ExpandDate(missing="2024-03-13"), Date(optional=True), column)
    for values in run(fitted, column).values():
        assert values[1] == values[3]


def test_default_of_the_field_is_no_missing_value():
    column = days("2024-01-01", None, "2024-07-05")
    column.values[1] = 19_795  # as decoding fills it in
    field = Date(default="2024-03-13")
    found = run(fit(ExpandDate(indicator=True), field, column), column)
    assert found["x_missing"].tolist() == [0, 1, 0]
    np.testing.assert_allclose(found["x_month_sin"][1], circle(2, 12)[0], atol=1e-7)
    assert abs(found["x"].mean()) < 1e-6  # the default counts


def test_parts_are_chosen_and_records_are_read_only_as_far_as_needed():
    column = days("2024-01-01", "2024-07-05")
    fitted = fit(ExpandDate(parts=("weekday",)), Date(), column)
    assert [each.name for each in fitted.outputs("x")] == ["x_weekday_sin", "x_weekday_cos"]
    assert list(run(fitted, column)) == ["x_weekday_sin", "x_weekday_cos"]
    source = ColumnSource(Schema({"x": Date()}), {"x": column})
    ExpandDate(parts=("time",), bins=0).fit("x", Date(), source)
    assert source.num_passes <= 1
    with raises_with(OptionError, field="parts", got=containing("weekday"), advice=containing("None")):
        fit(ExpandDate(parts=("weekday",)), Date(), days("2024-01-01", "2024-01-08"))


def test_positions_are_those_of_python():
    rng = np.random.default_rng(0)
    stored = rng.integers(-62_135_596_800_000_000, 253_402_300_799_999_999, 2000)
    moments = [EPOCH + datetime.timedelta(microseconds=int(each)) for each in stored]
    for part, expected in (
        ("month", [each.month - 1 for each in moments]),
        ("weekday", [each.weekday() for each in moments]),
        ("hour", [each.hour for each in moments]),
    ):
        assert find_positions(stored, "microseconds", part).tolist() == expected
        if part != "hour":
            assert find_positions(stored // DAY, "days", part).tolist() == expected


@pytest.mark.parametrize(
    ("options", "field", "got"),
    [
        ({"parts": ("year",)}, "parts", "year"),
        ({"parts": ()}, "parts", "()"),
        ({"parts": ("time", "time")}, "parts", "time"),
        ({"missing": 3}, "missing", "3"),
        ({"indicator": 1}, "indicator", "1"),
        ({"bins": -1}, "bins", "-1"),
    ],
)
def test_option_that_is_not_valid_is_refused(options, field, got):
    with raises_with(OptionError, field=field, got=containing(got)):
        ExpandDate(**options)


def test_field_and_date_that_do_not_fit_are_refused():
    with raises_with(OptionError, field="x", expected="dates", got=containing("text")):
        fit(ExpandDate(), Text(), days("2024-01-01"))
    with raises_with(OptionError, field="missing", expected=containing("2024-01-31"), got="'soon'"):
        fit(ExpandDate(missing="soon"), Date(), days("2024-01-01"))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("unit",), "days"),
        (("unit",), "years"),
        (("parts",), ["minute"]),
        (("fill",), 2**63),
        (("time", "dtype"), "float32"),
        (("has_default",), True),
    ],
)
def test_edited_json_is_refused(path, value):
    column = times("2024-01-01T10:00", "2024-07-05T22:00")
    field = Date("microseconds")
    form = json.loads(json.dumps(fit(ExpandDate(), field, column).to_json()))
    inner = form["fitted"]
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(SchemaError):
        ExpandDate.from_json(form).check_fitted("x", field, JsonValue(form, PIPELINE))


def test_dates_are_expanded_as_inputs_and_scaled_as_targets():
    assert choose_transform("x", Date()) == ExpandDate()
    assert choose_transform("x", Date(role="target")) == Scale(bins=0)
    with raises_with(OptionError, expected="a number", got=containing("date")):
        choose_transform("x", Date(role="weight"))
