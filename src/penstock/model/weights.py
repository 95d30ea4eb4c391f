"""Class weights: how much a record of each class counts, so that rare ones are learned too.

In: how many records of the train split each class has. Out: a weight a class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

# What of its equal share the rarest class must have to do without weights.
_LEAST_SHARE: Final = 0.5


def balance(counts: Sequence[int]) -> tuple[float, ...]:
    """Return class weights by which every class counts the same in all, with a mean of 1 over the records.

    A class without records has 1.

    Example:
        >>> balance([30, 10])
        (0.6666666666666666, 2.0)
    """
    num_classes = sum(count > 0 for count in counts)
    total = sum(counts)
    return tuple(total / (num_classes * count) if count > 0 else 1.0 for count in counts)


def choose_class_weights(counts: Sequence[int]) -> tuple[float, ...] | None:
    """Return balanced weights where a class is rare, else None: what "auto" stands for.

    Rare is a class with less than half of the records that it had if all had equally many.

    Example:
        >>> choose_class_weights([30, 10]), choose_class_weights([40, 9])
        (None, (0.6125, 2.7222222222222223))
    """
    found = [count for count in counts if count > 0]
    if len(found) < 2:
        return None
    is_rare = min(found) < _LEAST_SHARE * sum(found) / len(found)
    return balance(counts) if is_rare else None
