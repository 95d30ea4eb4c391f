"""What to measure of a loader, and for how long.

In: what a caller chose. Out: `BenchOptions`, checked when made.
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
        read: How to read.
        declaration: Types, shapes and roles of fields.
        split: Which split; "train", or the only one, if not said.
        batch_size: Records of a batch.
        shuffle: As for a loader; True, if not said, since models are trained so.
        seed: Of everything random.
        num_threads: How many threads make batches; as many as there are cores, if not said.
        cache: As for a loader.
        pipeline: A file with a pipeline; if not said, one is fitted to the train split.
        is_stored: Whether to load values as they are stored, without a pipeline.
        seconds: For how long; 5, if neither this nor `batches` is said. It ends with the batch at hand.
        batches: For how many batches.
        consumer_seconds: How long to wait with each batch, as if a model worked on it.
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
            raise OptionError("pipeline", expected="none beside is_stored", got=show(self.pipeline))
        checks = OptionChecks(self)
        checks.numbers("seconds", most=_MOST_SECONDS, above=True)
        checks.integers("batches", least=1)
        checks.numbers("consumer_seconds", most=_MOST_SECONDS)

    @property
    def most_seconds(self) -> float:
        """After how many seconds the batch at hand is the last."""
        if self.seconds is not None:
            return self.seconds
        return USUAL_SECONDS if self.batches is None else math.inf
