"""Dates and times as whole numbers."""

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from encode_columns import encode, objects, values_of
from penstock.fields import Number
from raising import containing

FIELD = Number("int64", optional=True)
SECOND = 1_000_000
EAST = dt.timezone(dt.timedelta(hours=2))

DATES = [
    (pa.array(["1970-01-03", None, "1969-12-31"]), [2, None, -1]),
    (pa.array([" 1970-01-03", "1970-01-02 "]), [2, 1]),
    (pa.array([dt.date(1970, 1, 3), None]), [2, None]),
    (pa.array([2 * 86_400_000], pa.date64()), [2]),
    (np.array(["1970-01-03", "NaT"], "M8[D]"), [2, None]),
    (np.array(["1970-02"], "M8[M]"), [31]),
    (objects(dt.date(1970, 1, 3), "1970-01-04", None), [2, 3, None]),
    (objects(np.datetime64("1970-01-03"), None), [2, None]),
]


@pytest.mark.parametrize(("raw", "expected"), DATES)
def test_date_without_a_clock_is_days_since_1970(raw, expected):
    column, faults = encode(FIELD, raw, "date")
    assert faults == []
    assert values_of(column) == expected
    assert column.values.dtype == np.int64


TIMES = [
    (pa.array(["1970-01-01T00:00:01", "1970-01-01 00:00:02.5", None]), [SECOND, 5 * SECOND // 2, None]),
    (pa.array(["1970-01-01T02:00:01+02:00", "1970-01-01T00:00:01Z"]), [SECOND, SECOND]),
    (pa.array(["1970-01-01T00:00:01", "1970-01-01T00:00:01-00:00"]), [SECOND, SECOND]),
    (pa.array([1000, None], pa.timestamp("ms", "Europe/Berlin")), [SECOND, None]),
    (pa.array([1_000_000_000], pa.timestamp("ns")), [SECOND]),
    (pa.array([1, 2], pa.time32("s")), [SECOND, 2 * SECOND]),
    (pa.array([1000], pa.time64("ns")), [1]),
    (pa.array([1], pa.duration("s")), [SECOND]),
    (np.array(["1970-01-01T01", "NaT"], "M8[h]"), [3600 * SECOND, None]),
    (np.array([2], "m8[s]"), [2 * SECOND]),
    (np.array([2], "m8[D]"), [2 * 86_400 * SECOND]),
    (objects(dt.datetime(1970, 1, 1, 0, 0, 1), None), [SECOND, None]),
    (objects(dt.datetime(1970, 1, 1, 2, 0, 1, tzinfo=EAST), dt.datetime(1970, 1, 1)), [SECOND, 0]),
    (objects(pd.Timestamp("1970-01-01 00:00:01"), pd.NaT), [SECOND, None]),
    # A date alone is its midnight.
    (pa.array(["1970-01-02", "1970-01-01T00:00:01"]), [86_400 * SECOND, SECOND]),
    (objects(dt.datetime(1970, 1, 1), dt.date(1970, 1, 2)), [0, 86_400 * SECOND]),
    (pa.array([dt.date(1970, 1, 2)]), [86_400 * SECOND]),
]


@pytest.mark.parametrize(("raw", "expected"), TIMES)
def test_point_in_time_is_microseconds_since_1970_utc(raw, expected):
    column, faults = encode(FIELD, raw, "time")
    assert faults == []
    assert values_of(column) == expected


ISO = containing("ISO", 8601)
BAD = [
    (pa.array(["1970-01-01", "1970-02-30"]), ISO, "'1970-02-30'"),
    (pa.array(["1970-01-01T00:00", "1970-01-01T25:00"]), ISO, "'1970-01-01T25:00'"),
    (pa.array(["1970-01-01", "yesterday!"]), ISO, "'yesterday!'"),
    (pa.array(["1970-01-01", "1970-01-01T00:01"]), containing("date", "time"), "1970-01-01T00:01:00.000000"),
    (objects(dt.date(1970, 1, 1), dt.datetime(1970, 1, 1, 5)), containing("date", "time"), None),
    (pa.array([0, 1500], pa.timestamp("ns")), containing("time"), "1970-01-01T00:00:00.000001500"),
    (np.array([0, 1], "M8[ns]"), containing("time"), "1970-01-01T00:00:00.000000001"),
    (objects(pd.Timestamp(0), pd.Timestamp(1)), containing("time"), None),
    (np.array([0, 2**60], "M8[s]"), containing("time", 64), None),
    (pa.array([0, 2**60], pa.timestamp("s")), containing("time", 64), None),
    (pa.array([b"1970-01-01", b"\xff"]).view(pa.string()), containing("text", "UTF-8"), None),
    (objects("1970-01-01", 7), ISO, "7"),
]


@pytest.mark.parametrize(("raw", "expected", "got"), BAD)
def test_value_that_is_not_such_a_date_is_a_fault_of_its_row(raw, expected, got):
    column, faults = encode(FIELD, raw, "date")
    assert [fault[:2] for fault in faults] == [(1, expected)]
    assert got is None or faults[0][2] == got
    assert values_of(column)[0] == 0


def test_many_bad_dates_among_good_ones_are_found_exactly():
    days = [f"2024-01-{day:02}" for day in range(1, 61)]
    column, faults = encode(FIELD, pa.array(days), "date")
    assert [row for row, _, _ in faults] == list(range(31, 60))
    assert column.values[:31].tolist() == list(range(19723, 19754))


def test_number_that_is_no_date_is_a_fault():
    assert encode(FIELD, np.array([3]), "date")[1] == [(0, ISO, "3")]


def test_duration_of_no_fixed_length_is_a_fault():
    assert [row for row, _, _ in encode(FIELD, np.array([0, 7], "m8[Y]"), "date")[1]] == [0, 1]


def test_dates_beside_times_are_never_cut_to_dates():
    raw = objects(dt.date(1970, 1, 2), dt.datetime(1970, 1, 2, 0, 0, 3), np.datetime64("1970-01-02T00:01"))
    column, faults = encode(FIELD, raw, "time")
    assert faults == []
    assert values_of(column) == [86_400 * SECOND, 86_403 * SECOND, 86_460 * SECOND]
    _, faults = encode(FIELD, raw, "date")
    assert [fault[:2] for fault in faults] == [
        (1, containing("date", "time")),
        (2, containing("date", "time")),
    ]
