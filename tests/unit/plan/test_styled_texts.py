"""Dates with the day, month or year first: which are read, by which order, in conversions and predictions."""

import datetime
import itertools
import json

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from fake_runs import fit_run
from penstock.cli.main import main
from penstock.errors import CellError, OptionError
from penstock.jobs.predict.predict import predict
from penstock.plan.planner import PlanOverrides, make_plan
from penstock.plan.styled_texts import find_orders, rewrite_dates
from penstock.settings.conversion import ConvertOptions
from penstock.settings.groups import TextFiles
from penstock.source.opening import open_source
from raising import containing, raises_with


def plan(texts, dates=None, **overrides):
    """Return the plan of a column of texts."""
    source = open_source({"born": texts}, TextFiles())
    (made,) = make_plan(source, PlanOverrides(**overrides), ConvertOptions(date_order=dates)).columns
    return made


def read_as(made):
    """Return "date" or "time" for dates, by their unit; otherwise the representation in the column."""
    return {"days": "date", "microseconds": "time"}.get(getattr(made.field, "unit", None), made.form)


def days(*dates):
    return [(datetime.date.fromisoformat(each) - datetime.date(1970, 1, 1)).days for each in dates]


@pytest.mark.parametrize(
    ("texts", "form", "order"),
    [
        (["31.01.2024", "05.02.2024"], "date", "dmy"),
        (["31/01/2024", "5/2/2024"], "date", "dmy"),
        (["31-01-2024", "5-2-2024"], "date", "dmy"),
        (["01/31/2024", "02/05/2024"], "date", "mdy"),
        (["01.31.2024", "2-5-2024"], "date", "mdy"),
        (["2024/01/31", "2024.2.5"], "date", "ymd"),
        (["2024-1-31", "2024-02-05"], "date", "ymd"),
        (["31.01.2024 12:30", "5.2.2024 9:05:07.5"], "time", "dmy"),
        (["01/31/2024, 12:30+02:00", "2/5/2024T9:05Z"], "time", "mdy"),
        (["05/04/2024", "03/02/2024"], "value", None),  # both orders
        (["31.01.2024", "01.31.2024"], "value", None),  # no order for both
        (["30.02.2024", "31.01.2024"], "value", None),  # no such day
        (["31.01.2024", "05.02.2024 09:05"], "value", None),  # days and microseconds
        (["31.01.24", "05.02.24"], "value", None),  # a century must not be guessed
        (["1.2.3", "10.2.3"], "value", None),
        (["31.01/2024", "05.02/2024"], "value", None),
    ],
)
def test_dates_are_read_where_only_one_order_is_possible(texts, form, order):
    made = plan(texts * 20)
    assert (read_as(made), made.dates) == (form, order)
    assert made.field.type_name == ("category" if form == "value" else "date")


def test_every_day_is_read_as_itself():
    every = [datetime.date(2023, 12, 25) + datetime.timedelta(days=number) for number in range(400)]
    for order, pattern in (
        ("dmy", "{0.day}.{0.month}.{0.year}"),
        ("mdy", "{0.month:02}/{0.day:02}/{0.year}"),
    ):
        texts = pa.chunked_array([[pattern.format(each) for each in every]])
        assert find_orders(texts, texts.to_pylist()[:256]).orders == (order,)
        assert rewrite_dates(texts, order).to_pylist() == [str(each) for each in every]


def test_doubt_stays_text_with_a_warning_that_names_the_flag_and_is_read_as_declared():
    texts = ["05/04/2024", "03/02/2024"] * 20
    (warning,) = plan(texts).warnings
    assert warning == containing("'05/04/2024'", "date_order='dmy'", "date_order='mdy'")
    assert (plan(texts, dates="dmy").dates, plan(texts, dates="mdy").dates) == ("dmy", "mdy")
    other = plan(["31/03/2024", "01/02/2024"] * 20, dates="mdy")  # a declaration is never overruled
    assert (read_as(other), other.dates) == ("value", None)
    assert other.warnings == (containing("'31/03/2024'", "date_order='dmy'"),)
    for texts, order in ((["2024/01/31", "2024/02/05"], "ymd"), (["2024-01-31", "2024-02-05"], None)):
        found = plan(texts * 20, dates="mdy")
        assert (read_as(found), found.dates) == ("date", order)


@pytest.mark.parametrize("order", [None, "dmy"])
def test_missing_values_among_dates_are_missing(order):
    texts = ["05.04.2024" if order else "31.01.2024", "NA", None, "05.02.2024"] * 10
    made = plan(texts, dates=order)
    assert (read_as(made), made.dates, made.missing) == ("date", "dmy", ("NA",))
    doubtful = plan(["05.04.2024", "NA", None, "05.02.2024"] * 10)
    assert (read_as(doubtful), doubtful.missing) == ("value", ())  # in a column of texts, a text


def test_conversion_stores_days_and_records_the_order(tmp_path):
    data = ps.convert({"born": ["31.01.2024", "5.2.2024", None] * 5}, tmp_path / "out", split="train=1.0")
    found = {row.get("born") for row in data["train"]}
    assert found == {np.datetime64("2024-01-31"), np.datetime64("2024-02-05"), None}
    column = json.loads((tmp_path / "out" / "penstock.json").read_text())["plan"]["columns"]["born"]
    assert (column["type"], column["unit"], column["date_order"]) == ("date", "days", "dmy")
    entry = {"columns": {"born": {"date_order": "mdy"}}}
    other = ps.convert({"born": ["05.04.2024"] * 9}, tmp_path / "other", plan=entry, split="train=1.0")
    assert next(iter(other["train"]))["born"] == np.datetime64("2024-05-04")
    numbers = {"born": ps.fields.Number("int64")}
    plain = ps.convert({"born": ["31.01.2024"] * 9}, tmp_path / "plain", fields=numbers, split="train=1.0")
    assert next(iter(plain["train"]))["born"] == days("2024-01-31")[0]


def test_row_of_another_order_after_the_survey_is_an_error_that_names_it(tmp_path):
    rows = ["31.01.2024"] * 70_000 + ["01.31.2024"]
    with raises_with(
        CellError,
        row=70_001,
        expected=containing("31.01.2024"),
        got="'01.31.2024'",
        advice=containing("date_order="),
    ):
        ps.convert({"born": rows}, tmp_path / "out")
    with raises_with(CellError, got="'05.04.2024'", advice=containing("date_order='dmy'")):
        ps.convert({"born": ["05.04.2024"] * 9}, tmp_path / "out", fields={"born": ps.fields.Number("int64")})
    with raises_with(OptionError, "date_order 'dmy' 'mdy' 'ymd'"):
        ps.convert({"born": rows}, tmp_path / "out", date_order="german")


def test_prediction_reads_dates_by_the_order_of_the_run(tmp_path):
    run = fit_run(
        {"born": ["31.01.2024", "05.02.2024"] * 15, "y": ["a", "b"] * 15}, tmp_path / "out", target="y"
    )
    same = (["05.02.2024"], ["5/2/2024"], ["2024-02-05"], [datetime.date(2024, 2, 5)])
    for texts in same:
        predict(run, {"born": texts})
    predict(run, {"born": ["02/05/2024"]}, date_order="mdy")
    assert [asked["born"].tolist() for asked in run.asked] == [run.asked[0]["born"].tolist()] * 5
    predict(run, {"born": ["02/05/2024"]})  # the second of May, as in training: no file is guessed anew
    assert run.asked[-1]["born"].tolist() != run.asked[0]["born"].tolist()
    with raises_with(CellError, got="'01/31/2024'", advice=containing("date_order=")):
        predict(run, {"born": ["01/31/2024"]})


def test_prediction_of_a_run_with_other_dates_guesses_no_order(tmp_path):
    run = fit_run(
        {"born": ["2024-01-31", "2024-02-05"] * 15, "y": ["a", "b"] * 15}, tmp_path / "out", target="y"
    )
    with raises_with(CellError, got="'31.01.2024'", advice=containing("date_order='dmy'")):
        predict(run, {"born": ["31.01.2024"]})
    for texts in (["31.01.2024"], ["2024-01-31"]):
        predict(run, {"born": texts}, date_order="dmy")
    assert run.asked[0]["born"].tolist() == run.asked[1]["born"].tolist()


def test_command_line_declares_the_order(tmp_path, capsys):
    rows = itertools.chain(["born,sold"], itertools.repeat("05/04/2024,no\n03/02/2024,yes", 9))
    (tmp_path / "a.csv").write_text("\n".join(rows) + "\n")
    assert main(["inspect", str(tmp_path / "a.csv")]) == 0
    assert containing("--date-order dmy") == capsys.readouterr().err
    assert main(["inspect", str(tmp_path / "a.csv"), "--date-order", "dmy", "--json"]) == 0
    column = json.loads(capsys.readouterr().out)["columns"]["born"]
    assert (column["type"], column["unit"], column["date_order"]) == ("date", "days", "dmy")
