"""Dates of every source: which columns become dates, in which unit, and what is noted about time zones."""

import datetime
import zoneinfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.fields import Date, Number
from penstock.plan.planner import PlanOverrides, make_plan
from penstock.settings.conversion import ConvertOptions
from penstock.settings.groups import TextFiles
from penstock.source.opening import open_source
from raising import containing

DAYS = [datetime.date(2024, 1, 31), datetime.date(1969, 12, 31), None, datetime.date(2024, 2, 29)]
TIMES = [
    datetime.datetime(2024, 1, 31, 12, 30),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 250_000),
    None,
    datetime.datetime(2024, 2, 29),
]
WITH_NUMBERS = ("csv", "excel")  # whose empty rows would be left out
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


def plan(source, **overrides):
    """Return the plan of the only column of a source."""
    (made,) = make_plan(
        open_source(source, TextFiles()), PlanOverrides(**overrides), ConvertOptions()
    ).columns
    return made


def read(source, folder, **options):
    """Convert the only column of a source without a change of order, and return its field and values."""
    data = ps.convert(source, folder / "out", split="train=1.0", shuffle=False, **options)
    (name,) = data.schema
    return data.schema[name], [row.get(name) for row in data["train"]]


def write_parquet(path, array):
    pq.write_table(pa.table({"when": array}), path)
    return path


def write_text(path, *lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def write_excel(path, values):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["when", "n"], *([value, 1] for value in values)):
        book.active.append(row)
    book.save(path)
    return path


def write_duckdb(path, kind, values):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"create table pets (n integer, seen {kind})")
        connection.executemany("insert into pets values (?, ?)", list(enumerate(values)))
    with duckdb.connect(str(path)) as connection:
        return connection.sql("select seen as when_ from pets order by n").arrow()


def hold_days(folder):
    texts = ["" if day is None else day.isoformat() for day in DAYS]
    return {
        "csv": write_text(folder / "a.csv", "when,n", *(f"{text},1" for text in texts)),
        "json lines": write_text(
            folder / "a.jsonl", *('{"when": ' + (f'"{text}"' if text else "null") + "}" for text in texts)
        ),
        "date32": pa.table({"when": pa.array(DAYS, pa.date32())}),
        "date64": write_parquet(folder / "a.parquet", pa.array(DAYS, pa.date64())),
        "samples": [{"when": day} for day in DAYS],
        "numpy": {"when": np.array(DAYS, "M8[D]")},
        "pandas": pd.DataFrame({"when": pd.Series(DAYS, dtype=object)}),
        "polars": pl.DataFrame({"when": DAYS}),
        "excel": write_excel(folder / "a.xlsx", DAYS),
        "duckdb": write_duckdb(folder / "a.duckdb", "date", DAYS),
    }


def hold_times(folder):
    texts = ["" if time is None else time.isoformat() for time in TIMES]
    return {
        "csv": write_text(folder / "b.csv", "when,n", *(f"{text},1" for text in texts)),
        "json lines": write_text(
            folder / "b.jsonl", *('{"when": ' + (f'"{text}"' if text else "null") + "}" for text in texts)
        ),
        "milliseconds": pa.table({"when": pa.array(TIMES, pa.timestamp("ms"))}),
        "nanoseconds": write_parquet(folder / "b.parquet", pa.array(TIMES, pa.timestamp("ns"))),
        "samples": [{"when": time} for time in TIMES],
        "numpy": {"when": np.array(TIMES, "M8[ns]")},
        "pandas": pd.DataFrame({"when": pd.Series(TIMES)}),
        "polars": pl.DataFrame({"when": TIMES}),
        "excel": write_excel(folder / "b.xlsx", TIMES),
        "duckdb": write_duckdb(folder / "b.duckdb", "timestamp", TIMES),
    }


@pytest.mark.parametrize(
    "name",
    [
        *("csv", "json lines", "date32", "date64", "samples", "numpy", "pandas"),
        *("polars", "excel", "duckdb"),
    ],
)
def test_dates_of_any_source_become_days(name, tmp_path):
    field, values = read(hold_days(tmp_path)[name], tmp_path, drop=["n"] if name in WITH_NUMBERS else [])
    # The cells of a workbook hold points in time.
    assert field == Date("microseconds" if name == "excel" else "days", optional=True)
    assert values == [day and np.datetime64(day) for day in DAYS]


@pytest.mark.parametrize(
    "name",
    [
        *("csv", "json lines", "milliseconds", "nanoseconds", "samples", "numpy"),
        *("pandas", "polars", "excel", "duckdb"),
    ],
)
def test_points_in_time_of_any_source_become_microseconds(name, tmp_path):
    field, values = read(hold_times(tmp_path)[name], tmp_path, drop=["n"] if name in WITH_NUMBERS else [])
    assert field == Date("microseconds", optional=True)
    assert values == [time and np.datetime64(time) for time in TIMES]


@pytest.mark.parametrize(
    "source",
    [
        {"when": ["2024-01-31T12:30+02:00", "2024-01-31T10:30Z"]},
        {"when": ["31.01.2024 12:30+02:00", "31.01.2024 10:30Z"]},
        pa.table(
            {"when": pa.array([datetime.datetime(2024, 1, 31, 10, 30)] * 2, pa.timestamp("us", "Asia/Tokyo"))}
        ),
        pd.DataFrame({"when": pd.to_datetime(["2024-01-31 11:30"] * 2).tz_localize("Europe/Berlin")}),
        [{"when": datetime.datetime(2024, 1, 31, 11, 30, tzinfo=BERLIN)}] * 2,
    ],
    ids=["texts", "texts of an order", "arrow", "pandas", "samples"],
)
def test_time_zones_are_converted_to_utc_with_a_note(source, tmp_path):
    made = plan(source)
    assert made.field.unit == "microseconds"
    assert containing("UTC") in made.warnings
    assert read(source, tmp_path)[1] == [np.datetime64("2024-01-31T10:30")] * 2


def test_times_without_a_zone_have_no_note():
    assert plan({"when": ["2024-01-31T12:30", "2024-02-01T12:30"]}).warnings == ()
    assert plan({"when": ["2024-01-31", "2024-02-01"]}).warnings == ()


@pytest.mark.parametrize(
    ("texts", "word", "values"),
    [
        (
            ["2024-01-31T12:30Z", "2024-01-31T12:30"],
            "UTC",
            ["2024-01-31T12:30", "2024-01-31T12:30"],
        ),
        (["2024-01-31", "2024-01-31T12:30"], "midnight", ["2024-01-31T00:00", "2024-01-31T12:30"]),
    ],
    ids=["zones", "times"],
)
def test_mixture_stays_text_with_a_warning_that_names_the_declaration(texts, word, values, tmp_path):
    made = plan({"when": texts * 5})
    assert made.field.type_name in ("text", "category")
    assert made.warnings == (containing(word, "ps.fields.Date('microseconds')"),)
    declared = {"when": Date("microseconds")}
    assert read({"when": texts}, tmp_path, fields=declared)[1] == [np.datetime64(each) for each in values]
    assert plan({"when": texts}, types={"when": "date"}).field.unit == "microseconds"


def test_declared_dates_take_numbers_and_objects_and_declared_numbers_take_dates(tmp_path):
    for number, (source, value) in enumerate(
        [
            ({"when": [19_753, 0]}, "2024-01-31"),
            ({"when": np.array([19_753.0, np.nan])}, "2024-01-31"),
            ({"when": pa.array([19_753, None], pa.int32())}, "2024-01-31"),
            ({"when": ["2024-01-31", 0]}, "2024-01-31"),
            ({"when": ["2024-01-31", datetime.date(1970, 1, 1)]}, "2024-01-31"),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        values = read(source, folder, fields={"when": Date(optional=True)})[1]
        assert values[0] == np.datetime64(value)
        assert values[1] in (None, np.datetime64("1970-01-01"))
    field, values = read({"when": DAYS}, tmp_path, fields={"when": Number("int64", optional=True)})
    assert (field.type_name, values) == ("number", [19_753, -1, None, 19_782])


def test_times_of_day_and_durations_stay_numbers():
    for value in (datetime.time(12), datetime.timedelta(hours=3)):
        assert plan([{"when": value}] * 3).field == Number("int64")


@pytest.mark.parametrize(
    ("numbers", "unit", "words"),
    [
        ([19_753, 19_760], "days", ("days", "2024-01-31 to 2024-02-07")),
        ([1_706_702_400, 1_706_702_401], "microseconds", ("1706702400", "1970-01-01 00:28:26.702400")),
        (
            [20_240_131, 20_240_207],
            "microseconds",
            ("1970-01-01 00:00:20.240131", "Write dates as 2024-01-31"),
        ),
        ([2**62, 2**62 + 1], "microseconds", ("no dates",)),
    ],
    ids=["days", "seconds", "digits", "beyond"],
)
def test_numbers_that_are_declared_as_dates_have_a_note_that_shows_the_dates(numbers, unit, words):
    made = plan({"when": np.array(numbers * 2)}, types={"when": "date"})
    assert made.field.unit == unit
    assert containing(*words) in made.warnings


def test_unit_of_whole_floats_follows_from_their_size():
    counts = np.array([1_706_702_400_000_000.0, np.nan, 1_706_702_400_000_000.0])
    assert plan({"when": counts}, types={"when": "date"}).field.unit == "microseconds"
    assert plan({"when": counts / 86_400_000_000}, types={"when": "date"}).field.unit == "days"
