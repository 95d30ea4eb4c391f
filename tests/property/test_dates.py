"""Laws of dates: dates that are written are read back, and every unit has the calendar of Python."""

import datetime
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.encode.column import encode_date
from penstock.fields import Date
from penstock.schema.date import DATE_LIMITS, as_times, count_date, make_time, show_date
from penstock.schema.schema import Schema

DAY = 86_400_000_000
MOST = {"microseconds": 2**63 - 1, "days": (2**63 - 1) // DAY}  # what Arrow and NumPy hold of both
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
UNITS = ("days", "microseconds")


def numbers_of(unit: str) -> st.SearchStrategy[int]:
    most = MOST[unit]
    return st.one_of(
        st.sampled_from([0, 1, -1, most, -most, *DATE_LIMITS[unit]]),
        st.integers(*DATE_LIMITS[unit]),
        st.integers(-most, most),
    )


def no_fault(*fault: Any) -> None:
    raise AssertionError(fault)


@pytest.mark.parametrize("unit", UNITS)
@settings(max_examples=15)
@given(st.data())
def test_stored_dates_are_read_as_written(unit, data):
    numbers = np.array(data.draw(st.lists(numbers_of(unit), min_size=1, max_size=24)))
    times = as_times(numbers, unit)
    with tempfile.TemporaryDirectory() as folder:
        options = {"split": "train=1.0", "shuffle": False, "fields": {"x": Date(unit)}}
        split = ps.convert({"x": times}, Path(folder) / "out", **options)["train"]
        samples = [row["x"] for row in split]
        assert split.columns()["x"].values.tolist() == numbers.tolist()
        again = ps.convert(({"x": row} for row in samples), Path(folder) / "again", **options)["train"]
        assert again.columns()["x"].values.tolist() == numbers.tolist()
        if unit == "microseconds" or np.abs(numbers).max() < 2**31:
            table = split.to_arrow()
            copy = ps.convert(table, Path(folder) / "copy", split="train=1.0", shuffle=False)
            assert copy.schema == Schema({"x": Date(unit)})
            assert copy["train"].columns()["x"].values.tolist() == numbers.tolist()
    assert np.array_equal(np.array(samples, times.dtype), times)


@pytest.mark.parametrize("unit", UNITS)
@given(st.data())
def test_text_of_a_date_is_read_as_its_number(unit, data):
    number = data.draw(numbers_of(unit))
    if abs(number) <= MOST[unit] // 1000 or unit == "microseconds":
        assert count_date(show_date(number, unit), unit) == number
    assert count_date(make_time(number, unit), unit) == number


@given(st.lists(st.datetimes(timezones=st.none() | st.timezones()), min_size=1, max_size=6))
def test_points_in_time_of_python_are_encoded_as_their_utc(moments):
    column = np.empty(len(moments), object)
    column[:] = moments
    expected = []
    for moment in moments:
        aware = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
        expected.append((aware - EPOCH) // datetime.timedelta(microseconds=1))
    assert encode_date(Date("microseconds"), column, no_fault).values.tolist() == expected
    for moment, number in zip(moments, expected, strict=True):
        assert count_date(moment, "microseconds") == number


@given(st.lists(st.dates(), min_size=1, max_size=6))
def test_dates_of_python_and_their_texts_are_encoded_alike(dates):
    expected = [each.toordinal() - datetime.date(1970, 1, 1).toordinal() for each in dates]
    for values in (dates, list(map(str, dates)), np.array(dates, "M8[D]"), np.array(dates, "M8[us]")):
        column = values
        if isinstance(values, list):
            column = np.empty(len(values), object)
            column[:] = values
        assert encode_date(Date(), column, no_fault).values.tolist() == expected
