"""Confidence intervals of scores, by bootstrap resampling.

In: truths and predictions. Out: one interval per score, in bounded time for any number of records.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.model.task import Task
from penstock.score.metrics import Counts
from penstock.score.scores import Number, Scores, is_scorable, make_scorer, score, to_number

Interval: TypeAlias = tuple[Number, Number]

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

    Every resample draws as many records as there are, with replacement. With many records (above 20,000 for
    500 resamples of two labels), resamples are drawn from a random part of them: the deviation of its score
    is scaled by the square root of its share, and added to the score of all records.

    An interval is None where the score is undefined, for all records or in most resamples; for one record;
    for the areas of more than 50 labels. `found` are the scores of all records, if they are already known.
    """
    found = score(task, truth, predicted) if found is None else found
    num_records = len(truth)
    if num_resamples < 1 or num_records < 2 or not is_scorable(truth, predicted):
        return dict.fromkeys(found)
    rng = np.random.default_rng(seed)
    num_kept = min(num_records, max(_LEAST_RECORDS, _MOST_WORK // (num_resamples * max(1, task.units))))
    within = found
    if num_kept < num_records:
        kept = np.sort(rng.choice(num_records, num_kept, replace=False))
        truth, predicted = truth[kept], predicted[kept]
        within = score(task, truth, predicted)
    scorer = make_scorer(task, truth, predicted, has_areas=task.units <= _MOST_RANKED)
    step = max(1, _CHUNK // num_kept)
    chunks = [
        scorer(_draw(rng, num_kept, min(step, num_resamples - start)))
        for start in range(0, num_resamples, step)
    ]
    intervals: dict[str, Interval | None] = {}
    for name, value in found.items():
        values, base = np.concatenate([chunk[name] for chunk in chunks]), within[name]
        defined = values[np.isfinite(values)]
        if value is None or base is None or len(defined) < _LEAST_DEFINED * num_resamples:
            intervals[name] = None
            continue
        tail = 50 * (1 - LEVEL)
        moved = value + (np.percentile(defined, [tail, 100 - tail]) - base) * np.sqrt(num_kept / num_records)
        low, high = np.clip(moved, _LOWEST.get(name, 0.0), _HIGHEST.get(name, 1.0)).tolist()
        intervals[name] = (to_number(low), to_number(high))
    return intervals


def _draw(rng: np.random.Generator, num_records: int, num_resamples: int) -> Counts:
    """Return how often each record is drawn, one row per resample."""
    counts = np.empty((num_resamples, num_records))
    for row in counts:
        row[:] = np.bincount(rng.integers(0, num_records, num_records), minlength=num_records)
    return counts
