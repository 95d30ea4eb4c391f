"""Stored numbers as people read them."""

import pytest

from penstock.score.evaluation import SliceScores, format_date, format_number


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (18262, "date", "2020-01-01"),
        (18262.0, "date", "2020-01-01"),
        (-1, "date", "1969-12-31"),
        (1_577_880_000_000_000, "time", "2020-01-01 12:00:00"),
        (1_577_880_000_500_000, "time", "2020-01-01 12:00:00.500000"),
        (10**15, "date", "1000000000000000"),
        (18262.0, "value", "18262"),
        (266_800.0, "value", "266800"),
        (0.1234567, "value", "0.123457"),
        (1e300, "value", "1e+300"),
        (float("inf"), "date", "inf"),
        (2**60, "value", str(2**60)),
    ],
)
def test_number_is_written_in_its_form(value, form, text):
    assert format_number(value, form) == text


def test_numbers_that_are_not_moments_stay():
    assert format_date("2020", "date") is None
    assert format_date(None, "date") is None
    assert format_date(3, "bool") is None


def test_slices_of_dates_are_named_by_dates():
    assert SliceScores(None, 18262.0, 18472.0, 9, {}, "date").name == "2020-01-01 to 2020-07-29"
    assert SliceScores(18262, None, None, 9, {}, "date").name == "2020-01-01"
    assert SliceScores(None, 18262.0, 18472.0, 9, {}).name == "18262 to 18472"
    assert SliceScores(None, None, None, 9, {}).name == "(missing)"
    assert SliceScores("cat", None, None, 9, {}).name == "cat"
