"""How to predict: every choice with its default, checked when made. One class, one group of flags."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypedDict, Unpack, get_args

from penstock.foundation.option_checks import OnError, OptionChecks
from penstock.foundation.wording import check_keywords
from penstock.source.options import SourceOptions
from penstock.transform.map import MapFunction

_MOST_WORKERS = 8  # beyond that a model is what takes the time

WITHOUT_LABELS: Final = "For data without labels: penstock predict RUN DATA, in Python ps.predict(run, data)."
"""The advice for an evaluation on data without labels."""


@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """Choices of a prediction.

    Attributes:
        split: Name of the split of a data set or TFRecords; not needed if there is only one.
        keep: Columns of the data that are copied into the output.
        batch_size: Rows that the model sees at once; by default as many as take about 4 MiB: 32 to 1,024.
        on_error: What a row gets that does not fit: "raise" its error, "skip" it with a line in the log, or
            "collect" its error in `Predictions.rejected`. Such a row is not in the output.
        max_rejects: How many rows may be left out before the run gives up.
        overwrite: Whether an existing file may be replaced. It is kept until the new one is complete.
        model: The `keras.Model`, for a run of a model of one's own.
        functions: Those of the pipeline's maps, by name: no code is stored. A run that is open has them.
        workers: How many threads make batches; as many as there are cores, at most 8, if not said. The result
            is the same.
        delimiter: Between the cells of a CSV; a comma, or a tab in a `.tsv`.
        encoding: Of a CSV.
        missing: Cells of a CSV that mark a missing value; by default those of the run's conversion.
        short_rows: What a row of a CSV gets that has too few cells: "raise" or "fill".

    Example:
        >>> PredictOptions(keep="name").keep
        ('name',)
    """

    split: str | None = None
    keep: str | tuple[str, ...] = ()
    batch_size: int | None = None
    on_error: OnError = "raise"
    max_rejects: int = 1000
    overwrite: bool = False
    model: Any = None
    functions: Mapping[str, MapFunction] | None = None
    workers: int | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"
    missing: str | tuple[str, ...] | None = None
    short_rows: Literal["raise", "fill"] = "raise"

    def __post_init__(self) -> None:
        checks = OptionChecks(self)
        checks.strings("keep", "missing", distinct=True)
        checks.instance("split", str, "the name of a split")
        checks.choice("on_error", get_args(OnError))
        checks.integers("max_rejects", least=0)
        checks.integers("batch_size", "workers", least=1)
        checks.instance("functions", Mapping, "functions by name")
        checks.flags("overwrite")
        _ = self.read_as()  # what reading checks is checked now, before any work

    @property
    def num_workers(self) -> int:
        """Number of threads."""
        return self.workers or min(_MOST_WORKERS, len(os.sched_getaffinity(0)))

    def read_as(self, missing: tuple[str, ...] = ("",)) -> SourceOptions:
        """Return the choices that reading raw data needs; `missing` is what counts if it was not said."""
        return SourceOptions(
            delimiter=self.delimiter,
            encoding=self.encoding,
            missing=missing if self.missing is None else tuple(self.missing),
            short_rows=self.short_rows,
        )


class PredictChoices(TypedDict, total=False):
    """The keywords of `penstock.predict`: the attributes of `PredictOptions`."""

    split: str | None
    keep: str | tuple[str, ...]
    batch_size: int | None
    on_error: OnError
    max_rejects: int
    overwrite: bool
    model: Any
    functions: Mapping[str, MapFunction] | None
    workers: int | None
    delimiter: str | None
    encoding: str
    missing: str | tuple[str, ...] | None
    short_rows: Literal["raise", "fill"]


def make_predict_options(**choices: Unpack[PredictChoices]) -> PredictOptions:
    """Return the options for some keywords.

    Raises:
        OptionError: There is no such option, or it has a value that it cannot have.
    """
    check_keywords(choices, (each.name for each in fields(PredictOptions)), "predict")
    return PredictOptions(**choices)
