"""Dates: which values stand for which stored number, how they are written, and which texts are not dates."""

import datetime
import json

import numpy as np
import pandas as pd
import pytest

from penstock.errors import SchemaError
from penstock.fields import Date, Number
from penstock.schema.comparison import compare_schemas
from penstock.schema.date import DATE_LIMITS, choose_unit, count_date, make_time, show_date
from penstock.schema.schema import Schema
from raising import containing, raises_with

BERLIN = datetime.timezone(datetime.timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "days", "microseconds"),
    [
        ("1970-01-01", 0, 0),
        (" 1969-12-31 ", -1, -86_400_000_000),
        (b"2024-01-31", 19_753, 1_706_659_200_000_000),
        ("0001-01-01", *(DATE_LIMITS[unit][0] for unit in ("days", "microseconds"))),
        ("-0005-01-01", -721_354, -62_324_985_600_000_000),
        ("12024-01-01", 3_672_148, 317_273_587_200_000_000),
        (datetime.date(2024, 1, 31), 19_753, 1_706_659_200_000_000),
        (datetime.datetime(2024, 1, 31, 2, tzinfo=BERLIN), 19_753, 1_706_659_200_000_000),
        (np.datetime64("2024-01-31T00:00", "ns"), 19_753, 1_706_659_200_000_000),
        (np.datetime64("2024-01", "M"), 19_723, 1_704_067_200_000_000),
    ],
)
def test_dates_are_counted_from_1970(value, days, microseconds):
    assert (count_date(value, "days"), count_date(value, "microseconds")) == (days, microseconds)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1970-01-01T00:00:00.000001", 1),
        ("1970-01-01 01:00+01:00", 0),
        ("1970-01-01T00:00Z", 0),
        ("1969-12-31T23:59:59.999999", -1),
    ],
)
def test_times_are_counted_in_microseconds_of_utc(text, number):
    assert count_date(text, "microseconds") == number
    if number:
        with pytest.raises(ValueError, match=r"."):
            count_date(text, "days")


@pytest.mark.parametrize("unit", ["days", "microseconds"])
@pytest.mark.parametrize(
    "value",
    [
        *("", "now", "NaT", "2024", "2024-13-01", "2024-02-30", "20240131", "31.01.2024", "12024-13-01"),
        "12024-01-01T00:00+01:00",  # NumPy would ignore the time zone
        *(19_753, 1.5, None, np.datetime64("NaT"), pd.NaT, datetime.time(12)),
        *("0001-01-01T00:00+01:00", "9999-12-31T23:59-01:00"),  # other years in UTC
    ],
)
def test_what_is_no_date_is_refused(value, unit):
    with pytest.raises(ValueError, match=r"."):
        count_date(value, unit)


def test_numbers_are_shown_as_dates():
    assert show_date(19_753, "days") == "2024-01-31"
    assert show_date(19_753.7, "days") == "2024-01-31"  # a mean
    assert show_date(1_706_659_200_000_000, "microseconds") == "2024-01-31 00:00:00"
    assert [show_date(each, "days") for each in (float("nan"), float("inf"), -1e19)] == [
        "nan",
        "inf",
        "-1e+19",
    ]
    assert show_date(-1, "microseconds") == "1969-12-31 23:59:59.999999"
    for unit in ("days", "microseconds"):
        for number in DATE_LIMITS[unit]:
            assert count_date(make_time(number, unit).item(), unit) == number
            assert count_date(show_date(number, unit), unit) == number


def test_default_is_kept_as_the_stored_number_in_json():
    for default in ("2024-01-31", datetime.date(2024, 1, 31), 19_753, np.int64(19_753)):
        field = Date(default=default)
        assert (field.default, field.optional) == (19_753, True)
    schema = Schema({"day": Date(default="2024-01-31"), "at": Date("microseconds", role="target")})
    form = json.loads(json.dumps(schema.to_json()))
    assert form["fields"]["day"] == {"type": "date", "unit": "days", "role": "input", "default": 19_753}
    assert Schema.from_json(form) == schema
    form["fields"]["day"]["default"] = "2024-01-31"
    assert Schema.from_json(form) == schema
    form["fields"]["day"]["default"] = "tomorrow"
    with raises_with(SchemaError, field="$.fields.day.default", got="'tomorrow'"):
        Schema.from_json(form)


def test_declaration_that_is_not_valid_is_refused():
    with raises_with(SchemaError, expected=containing("'days'", "'microseconds'"), got="'seconds'"):
        Date("seconds")
    with raises_with(SchemaError, expected=containing("2024-01-31"), got=containing("12:00")):
        Date(default="2024-01-31T12:00")
    with raises_with(SchemaError, expected=containing("2024-01-31"), got="NaT"):
        Date("microseconds", default=pd.NaT)
    with raises_with(SchemaError, field="default", got="True"):
        Date(default=True)


def test_records_of_dates_and_numbers_are_read_as_each_other_but_not_other_units():
    for old, new in ((Number("int64"), Date()), (Date("microseconds"), Number("int64"))):
        assert compare_schemas({"x": old}, {"x": new}).is_readable
    assert not compare_schemas({"x": Date()}, {"x": Date("microseconds")}).is_readable
    assert not compare_schemas({"x": Number()}, {"x": Date()}).is_readable


def test_unit_of_numbers_follows_from_their_size():
    assert [choose_unit(*ends) for ends in ((0, 20_000), (-800_000, 0), (None, None), (0, 10**8))] == [
        "days",
        "days",
        "days",
        "microseconds",
    ]
