"""Options of a report: `ReportOptions`, checked when created."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import OptionError
from penstock.foundation.option_checks import OptionChecks
from penstock.foundation.wording import show

_LEAST = {"records": 1, "samples": 0, "mistakes": 0, "importance_records": 1, "seed": 0}


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Options of a report.

    Attributes:
        split: Split that a run is evaluated on; by default "test", else "validation", else any other.
        records: Maximum number of records of each split that the figures about the data come from; fewer, if
            records are large or have many fields. They lie at even distances.
        samples: Number of records of the data to show.
        mistakes: Number of the worst mistakes to show for each target.
        importance: Whether to measure the importance of inputs, which takes most of the time.
        importance_records: Maximum number of records to measure it on.
        seed: Random seed of confidence intervals and of the importance.
        overwrite: Whether to replace an existing file.

    Example:
        >>> ReportOptions(samples=4).records
        20000
    """

    split: str | None = None
    records: int = 20_000
    samples: int = 12
    mistakes: int = 8
    importance: bool = True
    importance_records: int = 1000
    seed: int = 0
    overwrite: bool = False

    def __post_init__(self) -> None:
        checks = OptionChecks(self)
        for name, least in _LEAST.items():
            checks.integers(name, least=least)
        checks.flags("importance", "overwrite")
        if self.split is not None and not isinstance(self.split, str):
            raise OptionError("split", field="split", expected="the name of a split", got=show(self.split))
