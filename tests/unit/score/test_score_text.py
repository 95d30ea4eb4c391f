"""Scores as people read them: one name each, three significant digits, and no digit before the point lost."""

import math

import pytest

from penstock.score.score_text import (
    MEANINGS,
    NAMES,
    format_answer,
    format_interval,
    format_score,
    name_score,
)
from penstock.score.scores import CLASS_SCORES, NUMBER_SCORES


def test_every_score_has_a_name_and_a_meaning():
    assert [*CLASS_SCORES, *NUMBER_SCORES] == list(NAMES) == list(MEANINGS)
    assert len(set(NAMES.values())) == len(NAMES)
    assert not [name for name in NAMES.values() if "_" in name]
    assert (name_score("log_loss"), name_score("ece")) == ("log loss", "calibration error")
    assert name_score("val_data_loss") == "val_data_loss"  # a metric of Keras stays


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.98765, "0.988"),
        (0.05049, "0.0505"),
        (0.0, "0.00"),
        (-1.1e-16, "0.00"),
        (1.0, "1.00"),
        (-0.25, "-0.250"),
        (12.345, "12.3"),
        (99.96, "100"),
        (123.4, "123"),
        (999.7, "1,000"),
        (12345.6, "12,346"),
        (1.25e16, "1.25e+16"),
        (0.0000123, "1.23e-05"),
        (math.inf, "inf"),
        (None, "–"),
    ],
)
def test_score_has_three_significant_digits(value, text):
    assert format_score(value) == text


@pytest.mark.parametrize(
    ("value", "other", "text"),
    [
        (13.7281, 12.5, "13.7"),
        (48.13886, 48.1372, "48.139"),
        (48.1372, 48.13886, "48.137"),
        (2.0, 12345.678, "2"),
        (12345.678, 2.0, "12,346"),
        (100234.0, 100512.25, "100,234"),
        (0.000123, 0.5, "0.000123"),
        (1e-12, 2.0, "1e-12"),
        (0.1 + 0.2, 0.3, "0.3"),
        (math.inf, 1.0, "inf"),
        (1.5, math.nan, "1.50"),
        (1e300, 1.0, "1e+300"),
        ([1.25, 2.0], [1.0, 2.5], "1.25, 2"),
        (["x", "y"], [], "x, y"),
        ([], ["x"], "none"),
        ("yes", "no", "yes"),
        (3, 4, "3"),
    ],
)
def test_difference_of_truth_and_prediction_can_be_read(value, other, text):
    assert format_answer(value, other) == text


def test_interval_has_the_digits_of_its_score():
    assert format_interval((0.66666, 0.93333)) == "0.667 to 0.933"
    assert format_interval(None) == ""
