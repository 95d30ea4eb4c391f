"""Scores as text: their names, their meanings, and their values with three significant digits.

In: keys and numbers of `scores.py`. Out: what people read; JSON has the keys, and all digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from penstock.score.intervals import Interval
from penstock.score.scores import Number

NAMES: Final = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "auc": "AUC",
    "pr_auc": "PR AUC",
    "f1": "F1",
    "log_loss": "log loss",
    "ece": "calibration error",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R²",
    "mape": "MAPE",
}
"""Name of each score by its key in JSON and in Python."""

MEANINGS: Final = {
    "accuracy": "share of correct predictions",
    "balanced_accuracy": "mean recall of the classes",
    "auc": "probability that a member of the class is ranked higher; 0.5 is chance",
    "pr_auc": "mean precision over all thresholds; chance is the share of the class",
    "f1": "harmonic mean of precision and recall",
    "log_loss": "cross-entropy of the predicted probabilities; lower is better",
    "ece": "probabilities against frequencies; lower is better",
    "rmse": "root of the mean squared error; lower is better",
    "mae": "mean absolute error; lower is better",
    "r2": "share of the variance explained; 1 is perfect, 0 is no better than the mean",
    "mape": "mean absolute error relative to the true value; lower is better",
}
"""What each score means, in a few words."""

_DIGITS: Final = 3  # significant
_WHOLE: Final = 10.0**_DIGITS - 0.5  # from here on, all digits before the point are shown
_LARGEST: Final = 1e15  # larger numbers have a power of ten
_MOST_DECIMALS: Final = 9
_ROUNDING: Final = 1e-12  # smaller differences of scores are errors of rounding


def name_score(key: str) -> str:
    """Return the name of a score.

    Example:
        >>> name_score("ece"), name_score("pr_auc")
        ('calibration error', 'PR AUC')
    """
    return NAMES.get(key, key)


def format_score(value: Number) -> str:
    """Format a score with three significant digits, and with all digits before the decimal point.

    Example:
        >>> format_score(0.98765), format_score(0.5), format_score(12345.6), format_score(None)
        ('0.988', '0.500', '12,346', '–')
    """
    if value is None:
        return "–"
    if not math.isfinite(value) or abs(value) >= _LARGEST:
        return f"{value:.{_DIGITS}g}"
    if abs(value) < _ROUNDING:
        value = 0.0
    if abs(value) >= _WHOLE:
        return f"{value:,.0f}"
    return f"{value:#.{_DIGITS}g}".removesuffix(".")


def format_signed(value: float) -> str:
    """Format a difference of scores, with its sign.

    Example:
        >>> format_signed(0.12345), format_signed(-2.0)
        ('+0.123', '−2.00')
    """
    return f"{'−' if value < 0 else '+'}{format_score(abs(value))}"


def format_interval(interval: Interval | None) -> str:
    """Format an interval; empty if there is none."""
    return "" if interval is None else f"{format_score(interval[0])} to {format_score(interval[1])}"


def format_answer(value: Any, other: Any = None) -> str:
    """Format a true or predicted value: a label as it is, several joined, a number shortened.

    A number has three significant digits, and more where the difference to another number needs them.

    Example:
        >>> format_answer(3.27893, 3.2), format_answer(48.13886, 48.1372), format_answer(["a", "b"])
        ('3.28', '48.139', 'a, b')
    """
    if isinstance(value, list | tuple):
        others = (
            other if isinstance(other, list | tuple) and len(other) == len(value) else [None] * len(value)
        )
        return ", ".join(map(format_answer, value, others)) or "none"
    if not isinstance(value, float) or not math.isfinite(value):
        return str(value)
    if abs(value) >= _LARGEST:
        return f"{value:.6g}"
    if value.is_integer():
        return f"{value:,.0f}"
    gap = abs(value - other) if isinstance(other, int | float) and math.isfinite(other) else 0.0
    decimals = max(_count_decimals(value, _DIGITS), _count_decimals(gap, 1) if gap else 0)
    return f"{value:,.{decimals}f}" if decimals <= _MOST_DECIMALS else f"{value:.6g}"


def _count_decimals(value: float, digits: int) -> int:
    """Return the number of decimal places with which a number has some significant digits."""
    return max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0


def list_names(keys: Sequence[str]) -> list[str]:
    """Return the names of several scores."""
    return [name_score(key) for key in keys]
