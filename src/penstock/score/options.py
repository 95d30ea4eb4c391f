"""Options of an evaluation: `EvaluateOptions`, checked when created."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

from penstock.errors import OptionError
from penstock.foundation.option_checks import EngineName, OptionChecks
from penstock.foundation.wording import show

_LEAST = {"batch_size": 1, "bootstrap": 0, "mistakes": 0, "seed": 0, "importance_records": 1}


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """Options of an evaluation.

    Attributes:
        batch_size: Number of records that are predicted at once; by default 256, or fewer if they are large.
        slices: Names of the fields to slice by: scores are also given for the records with each of their
            values. Any field of the data, whether it is an input or not.
        bootstrap: Number of resamples for confidence intervals; 0 gives no intervals.
        importance: Whether to measure feature importance. It predicts a sample of the records three times
            per field.
        importance_records: Maximum number of records of that sample; it has fewer if they are large.
        mistakes: Number of the worst mistakes to show for each target.
        seed: Random seed of resamples, of the sample, and of permutations.
        engine: Where the model predicts: "local" in this process, or "ray" on the workers of a Ray cluster.
            This process reads the data and computes the scores in both.
        address: Address of the Ray cluster; see `ConvertOptions`.
        workers: Number of tasks on Ray at the same time; default: the number of CPUs of the cluster.

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
    engine: EngineName = "local"
    address: str | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        checks = OptionChecks(self)
        for name, least in _LEAST.items():
            checks.integers(name, least=least)
        checks.flags("importance")
        checks.integers("workers", least=1)
        checks.choice("engine", get_args(EngineName))
        checks.instance("address", str, "HOST:PORT or 'auto'")
        for name in ("address", "workers"):
            if self.engine == "local" and getattr(self, name) is not None:
                raise OptionError(name, expected="engine='ray' as well", got="engine='local'")
        given = (self.slices,) if isinstance(self.slices, str) else self.slices
        names = tuple(given) if isinstance(given, Iterable) else (given,)
        if not all(isinstance(name, str) for name in names):
            raise OptionError("slices", expected="names of fields", got=show(self.slices))
        object.__setattr__(self, "slices", tuple(dict.fromkeys(names)))
