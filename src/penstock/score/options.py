"""What to look into when a model is evaluated.

In: what a caller chose. Out: `EvaluateOptions`, checked when made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.errors import OptionError
from penstock.foundation.wording import show

_LEAST = {"batch_size": 1, "bootstrap": 0, "mistakes": 0, "seed": 0, "importance_records": 1}


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """Choices of an evaluation.

    Attributes:
        batch_size: How many records are predicted at once; 256, or fewer if they are large, if not said.
        slices: Fields by whose values scores are given as well; any field of the data, fed or not.
        bootstrap: How many resamples the intervals come from; 0 gives none.
        importance: Whether to measure which inputs matter. It predicts a sample of the records some three
            times for each field.
        importance_records: How many records that sample has at most; fewer, if they are large.
        mistakes: How many of the worst mistakes to show for each target.
        seed: Of resamples, of the sample, and of permutations.

    Example:
        >>> EvaluateOptions(slices=["breed"], bootstrap=200).slices
        ('breed',)
    """

    batch_size: int | None = None
    slices: tuple[str, ...] = ()
    bootstrap: int = 500
    importance: bool = True
    importance_records: int = 2000
    mistakes: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if name == "batch_size" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                expected = f"a whole number of at least {least}"
                raise OptionError(name, expected=expected, got=show(value))
        if not isinstance(self.importance, bool):
            raise OptionError("importance", expected="True or False", got=show(self.importance))
        given = (self.slices,) if isinstance(self.slices, str) else self.slices
        names = tuple(given) if isinstance(given, Iterable) else (given,)
        if not all(isinstance(name, str) for name in names):
            raise OptionError("slices", expected="names of fields", got=show(self.slices))
        object.__setattr__(self, "slices", tuple(dict.fromkeys(names)))
