"""Options of a loader benchmark.

In: values that the caller chose. Out: `BenchOptions`, validated when created.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import Final

from penstock.batch.options import LoadOptions, Shuffling
from penstock.errors import OptionError
from penstock.foundation.option_checks import OptionChecks
from penstock.foundation.wording import show
from penstock.jobs.stored_data import Declaration
from penstock.read.options import ReadOptions

USUAL_SECONDS: Final = 5.0
_MOST_SECONDS: Final = 86_400.0


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """What to load, and for how long.

    Attributes:
        read: How to read the files.
        declaration: Types, shapes and roles of fields.
        split: Name of the split; by default "train", or the only split.
        batch_size: Number of records per batch.
        shuffle: As for a loader; True by default, as in training.
        seed: Random seed.
        num_threads: Number of threads that load batches; by default, the number of cores.
        cache: As for a loader.
        pipeline: Path of a saved pipeline; by default, a pipeline is fitted to the train split.
        is_stored: Whether to load values as they are stored, without a pipeline.
        seconds: Duration of the measurement; 5 by default, if `batches` is not given. The current batch is
            completed.
        batches: Number of batches to load.
        consumer_seconds: Time to wait after each batch, to simulate a model.
    """

    read: ReadOptions = field(default_factory=ReadOptions)
    declaration: Declaration = field(default_factory=Declaration)
    split: str | None = None
    batch_size: int = 128
    shuffle: bool | Shuffling = True
    seed: int = 0
    num_threads: int | None = None
    cache: str | os.PathLike[str] | None = None
    pipeline: str | os.PathLike[str] | None = None
    is_stored: bool = False
    seconds: float | None = None
    batches: int | None = None
    consumer_seconds: float = 0.0

    def __post_init__(self) -> None:
        LoadOptions(
            batch_size=self.batch_size,
            shuffle=self.shuffle,
            seed=self.seed,
            num_threads=self.num_threads,
            cache=self.cache,
        )
        if self.pipeline is not None and self.is_stored:
            raise OptionError(
                "pipeline", expected="no pipeline together with is_stored", got=show(self.pipeline)
            )
        checks = OptionChecks(self)
        checks.numbers("seconds", most=_MOST_SECONDS, above=True)
        checks.integers("batches", least=1)
        checks.numbers("consumer_seconds", most=_MOST_SECONDS)

    @property
    def most_seconds(self) -> float:
        """Number of seconds after which no further batch is loaded."""
        if self.seconds is not None:
            return self.seconds
        return USUAL_SECONDS if self.batches is None else math.inf
