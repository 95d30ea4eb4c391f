"""Confidence intervals of scores, by bootstrap resampling, and the calibration error that is due to chance.

In: truths and predictions. Out: one interval per score, in bounded time for any number of records.

The calibration error has no interval: with every sample of records, and again with every resample, it grows
by what chance adds. In simulations with calibrated probabilities, percentiles of resamples covered the error
of the model in no case, and reversed ones ("basic" intervals) in 12 to 66 % of the cases instead of 95 %. In
its place there is the error of calibrated models on as many records.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.model.task import Task
from penstock.score.metrics import Counts
from penstock.score.scores import (
    Number,
    Scores,
    is_scorable,
    list_calibrations,
    make_scorer,
    score,
    to_number,
)

Interval: TypeAlias = tuple[Number, Number]

CALIBRATION_ERROR: Final = "ece"
LEVEL: Final = 0.95
_MOST_WORK: Final = 10_000_000  # records × resamples × columns of a prediction: about a second on one core
_LEAST_RECORDS: Final = 1_000
_MOST_RANKED: Final = 50  # labels: with more, the areas of all resamples would take minutes
_CHUNK: Final = 1 << 16  # counts that are processed together: they fit into the cache of a core
_LEAST_DEFINED: Final = 0.5  # share of the resamples in which a score must be defined
_LOWEST: Final = {"r2": -np.inf}  # others begin at 0
_HIGHEST: Final = dict.fromkeys(("rmse", "mae", "mape", "log_loss"), np.inf)  # others end at 1


def find_intervals(
    task: Task,
    truth: NDArray[Any],
    predicted: NDArray[Any],
    num_resamples: int,
    seed: int,
    found: Scores | None = None,
) -> dict[str, Interval | None]:
    """Return the 95 % confidence interval of each score: percentiles over bootstrap resamples.

    Every resample draws as many records as there are, with replacement. The percentiles are taken relative
    to the median of the resamples, and added to the score: resamples are biased where few records decide,
    such as PR AUC with a few records per class, and the interval always contains the score. With many records
    (above 20,000 for 500 resamples of two labels), resamples are drawn from a random part of them, and the
    deviations are scaled by the square root of its share.

    An interval is None where the score is undefined, for all records or in most resamples; for one record;
    for the areas of more than 50 labels; and for the calibration error, for which there is
    `find_calibrated_error`. `found` are the scores of all records, if they are already known.
    """
    found = score(task, truth, predicted) if found is None else found
    num_records = len(truth)
    if num_resamples < 1 or num_records < 2 or not is_scorable(truth, predicted):
        return dict.fromkeys(found)
    rng = np.random.default_rng(seed)
    truth, predicted = _draw_part(rng, task, truth, predicted, num_resamples)
    num_kept = len(truth)
    scorer = make_scorer(task, truth, predicted, has_areas=task.units <= _MOST_RANKED)
    step = max(1, _CHUNK // num_kept)
    chunks = [
        scorer(_draw(rng, num_kept, min(step, num_resamples - start)))
        for start in range(0, num_resamples, step)
    ]
    intervals: dict[str, Interval | None] = {}
    for name, value in found.items():
        values = np.concatenate([chunk[name] for chunk in chunks])
        defined = values[np.isfinite(values)]
        if value is None or name == CALIBRATION_ERROR or len(defined) < _LEAST_DEFINED * num_resamples:
            intervals[name] = None
            continue
        tail = 50 * (1 - LEVEL)
        ends = np.percentile(defined, [tail, 100 - tail]) - np.median(defined)
        moved = value + ends * np.sqrt(num_kept / num_records)
        low, high = np.clip(moved, _LOWEST.get(name, 0.0), _HIGHEST.get(name, 1.0)).tolist()
        intervals[name] = (to_number(low), to_number(high))
    return intervals


class CalibratedError(NamedTuple):
    """The calibration error of models whose probabilities are right, on as many records: chance alone.

    Attributes:
        mean: Mean error.
        most: The error that 95 % of such models stay below.
    """

    mean: float
    most: float


def find_calibrated_error(
    task: Task, truth: NDArray[Any], predicted: NDArray[Any], num_draws: int, seed: int
) -> CalibratedError | None:
    """Return the calibration error that the probabilities would have if they were right.

    Truths are drawn with the probabilities that the model gives, `num_draws` times; truths of several labels
    are drawn independently. With many records a part is drawn, as for intervals: the error falls with the
    square root of their number.

    It is None for numbers, without draws, and where there is no interval for lack of records.
    """
    if task.kind == "regression" or num_draws < 1 or len(truth) < 2 or not is_scorable(truth, predicted):
        return None
    rng, num_records = np.random.default_rng(seed), len(truth)
    truth, predicted = _draw_part(rng, task, truth, predicted, num_draws)
    step = max(1, _CHUNK // len(truth))
    starts = range(0, num_draws, step)
    errors: Any = np.mean(
        [
            np.concatenate([each.draw_errors(rng, min(step, num_draws - start)) for start in starts])
            for each in list_calibrations(task, truth, predicted)
        ],
        axis=0,
    )
    errors *= np.sqrt(len(truth) / num_records)
    return CalibratedError(float(errors.mean()), float(np.quantile(errors, LEVEL)))


def _draw_part(
    rng: np.random.Generator, task: Task, truth: NDArray[Any], predicted: NDArray[Any], num_resamples: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return all records, or as many random ones as can be resampled in bounded time."""
    num_kept = max(_LEAST_RECORDS, _MOST_WORK // (num_resamples * max(1, task.units)))
    if num_kept >= len(truth):
        return truth, predicted
    kept = np.sort(rng.choice(len(truth), num_kept, replace=False))
    return truth[kept], predicted[kept]


def _draw(rng: np.random.Generator, num_records: int, num_resamples: int) -> Counts:
    """Return how often each record is drawn, one row per resample."""
    counts = np.empty((num_resamples, num_records))
    for row in counts:
        row[:] = np.bincount(rng.integers(0, num_records, num_records), minlength=num_records)
    return counts
