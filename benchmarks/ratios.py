"""How much faster one contestant is than another: a ratio for each round, then their median and spread.

Two passes of the same round ran within seconds of each other; a machine that slows down slows both.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import NamedTuple

from arena import Score, Turn


class Ratio(NamedTuple):
    """A median over the rounds, with the lowest and highest of them."""

    middle: float
    low: float
    high: float


def pick_turns(score: Score, entry: str, dataset: str, num_cores: int) -> dict[int, Turn]:
    """Return the turns of one contestant by round."""
    wanted = (entry, dataset, num_cores)
    return {turn.round: turn for turn in score.turns if (turn.entry, turn.dataset, turn.num_cores) == wanted}


def compare(
    ours: dict[int, Turn],
    theirs: dict[int, Turn],
    rate: Callable[[Turn], float] = lambda turn: turn.records_per_second,
) -> Ratio | None:
    """Divide records per second round by round; None if the two share no round."""
    rates = [rate(ours[round]) / rate(theirs[round]) for round in sorted(ours.keys() & theirs.keys())]
    return Ratio(median(rates), min(rates), max(rates)) if rates else None


def find_rate(
    turns: dict[int, Turn], rate: Callable[[Turn], float] = lambda turn: turn.records_per_second
) -> float | None:
    """Return the median records per second."""
    return median(map(rate, turns.values())) if turns else None
