"""How far scores would move with other records: confidence intervals by resampling.

In: truths and predictions. Out: an interval a score, in bounded time however many records there are.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.model.scores import Number, Scores, is_sound, score, score_rows, to_number
from penstock.model.task import Task

Interval: TypeAlias = tuple[Number, Number]

LEVEL: Final = 0.95
_MOST_WORK: Final = 25_000_000  # records × resamples × columns of a prediction: some 3 s on one core
_LEAST_RECORDS: Final = 2_000
_CHUNK: Final = 1 << 20  # counts that are looked at together: 8 MB of floats
_LEAST_DEFINED: Final = 0.5  # share of the resamples in which a score must be defined


def find_intervals(
    task: Task, truth: NDArray[Any], predicted: NDArray[Any], num_resamples: int, seed: int
) -> dict[str, Interval | None]:
    """Return where each score would lie in 95 of 100 draws of as many records: percentiles of resamples.

    Every resample draws as many records as there are, with replacement. Of many records, a random subset
    stands for all of them and is drawn from as often (a "bag of little bootstraps"); what it gives is moved
    to the score of all. None, where a score is not defined, or not in most resamples, or of one record.
    """
    found = score(task, truth, predicted)
    if num_resamples < 1 or len(truth) < 2 or not is_sound(truth, predicted):
        return dict.fromkeys(found)
    rng = np.random.default_rng(seed)
    num_kept = min(len(truth), max(_LEAST_RECORDS, _MOST_WORK // (num_resamples * max(1, task.units))))
    moves = dict.fromkeys(found, 0.0)
    num_drawn = len(truth)
    if num_kept < num_drawn:
        kept = np.sort(rng.choice(num_drawn, num_kept, replace=False))
        truth, predicted = truth[kept], predicted[kept]
        within = score(task, truth, predicted)
        moves = {name: (found[name] or 0.0) - (within[name] or 0.0) for name in found}
    chunks = []
    shares = np.full(num_kept, 1 / num_kept)
    step = max(1, _CHUNK // num_kept)
    for start in range(0, num_resamples, step):
        size = min(step, num_resamples - start)
        counts = rng.multinomial(num_drawn, shares, size=size).astype(np.float64)
        chunks.append(score_rows(task, truth, predicted, counts))
    return {
        name: _find_interval(np.concatenate([chunk[name] for chunk in chunks]) + moves[name], name, found)
        for name in found
    }


def _find_interval(values: NDArray[np.float64], name: str, found: Scores) -> Interval | None:
    defined = values[np.isfinite(values)]
    if found[name] is None or len(defined) < _LEAST_DEFINED * len(values):
        return None
    tail = 50 * (1 - LEVEL)
    low, high = np.percentile(defined, [tail, 100 - tail])
    # What is moved can leave the range that a score has.
    most = np.inf if name in _UNBOUNDED else 1.0
    least = -np.inf if name == "r2" else 0.0
    return to_number(np.clip(low, least, most)), to_number(np.clip(high, least, most))


_UNBOUNDED: Final = ("rmse", "mae", "mape", "log_loss")
