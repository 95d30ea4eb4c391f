"""Options of a prediction, with their defaults, checked when they are made: one class, one group of flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypedDict, Unpack, get_args

from penstock.errors import OptionError
from penstock.foundation.option_checks import EngineName, OnError, OptionChecks
from penstock.foundation.process import count_cores
from penstock.foundation.wording import check_keywords
from penstock.schema.number_format import (
    DecimalSeparator,
    NumberFormat,
    ThousandsSeparator,
    declare_format,
)
from penstock.source.options import HeaderLine, SourceOptions
from penstock.transform.map import MapFunction

_MOST_WORKERS = 8  # with more threads, the model is the bottleneck

WITHOUT_LABELS: Final = "For data without labels: penstock predict RUN DATA, in Python ps.predict(run, data)."
"""Advice for an evaluation on data without labels."""


@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """Options of a prediction.

    Attributes:
        split: Name of the split of a data set or TFRecords; not needed if there is only one.
        keep: Columns of the data that are copied into the output.
        batch_size: Number of rows per call of the model; by default 32 to 1,024 rows, about 4 MiB.
        on_error: What happens to a row that is not valid: "raise" its error, "skip" it and log a line, or
            "collect" its error in `Predictions.rejected`. Such a row is not in the output.
        max_rejects: Maximum number of skipped rows; one more is an error.
        overwrite: Whether an existing file may be replaced. It is kept until the new one is complete.
        model: The `keras.Model`, for a run with your own model.
        functions: Functions of the pipeline's maps by name, because no code is stored. An open `Run` has them
            already.
        workers: Number of threads that make batches; by default the number of cores, at most 8. The result
            does not depend on it.
        engine: Where the model predicts: "local" in this process, or "ray" on the workers of a Ray cluster.
            This process reads and transforms the data, and writes the output, in both.
        address: Address of the Ray cluster; see `ConvertOptions`.
        resume: Whether to use the predictions that an interrupted run with engine="ray" has saved.
        delimiter: Delimiter of the cells of a CSV; by default detected from the first rows of each file, or
            that of training if it is not one of those that are detected.
        header: Whether the "first" line of a CSV has the names of the columns, or "none" does; see
            `ConvertOptions`. After training on data without a header, there is none.
        encoding: Encoding of a CSV.
        missing: Cells of a CSV that mark a missing value; by default those of the run's conversion.
        decimal: Decimal separator of numbers in texts; by default that of the column in training, if it fits.
        thousands: Separator of thousands of numbers in texts; see `decimal`.
        short_rows: What happens to a row of a CSV with too few cells: "raise" an error, or "fill" it with
            missing values.
        sheet: Name of the sheet of an Excel file; by default the first one.
        files_from: Folders and URLs whose files cells of tables may name; see `ConvertOptions`.

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
    engine: EngineName = "local"
    address: str | None = None
    resume: bool = False
    delimiter: str | None = None
    encoding: str = "utf-8"
    missing: str | tuple[str, ...] | None = None
    decimal: DecimalSeparator | None = None
    thousands: ThousandsSeparator | None = None
    short_rows: Literal["raise", "fill"] = "raise"
    header: HeaderLine | None = "first"
    sheet: str | None = None
    files_from: str | tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checks = OptionChecks(self)
        checks.strings("keep", "missing", "files_from", distinct=True)
        checks.instance("split", str, "the name of a split")
        checks.choice("on_error", get_args(OnError))
        checks.integers("max_rejects", least=0)
        checks.integers("batch_size", "workers", least=1)
        checks.instance("functions", Mapping, "functions by name")
        checks.flags("overwrite", "resume")
        checks.choice("engine", get_args(EngineName))
        checks.instance("address", str, "HOST:PORT or 'auto'")
        for name in ("address", "resume"):
            if self.engine == "local" and getattr(self, name):
                raise OptionError(name, expected="engine='ray' as well", got="engine='local'")
        _ = self.read_as(), self.numbers  # checks the options of reading before any work

    @property
    def num_workers(self) -> int:
        """Number of threads."""
        return self.workers or min(_MOST_WORKERS, count_cores())

    @property
    def numbers(self) -> NumberFormat | None:
        """Declared format of numbers in texts, or None."""
        return declare_format(self.decimal, self.thousands)

    def read_as(self, missing: tuple[str, ...] = ("",)) -> SourceOptions:
        """Return the options for reading raw data; `missing` is the default for the option of that name."""
        return SourceOptions(
            delimiter=self.delimiter,
            encoding=self.encoding,
            missing=missing if self.missing is None else tuple(self.missing),
            short_rows=self.short_rows,
            header=self.header,
            sheet=self.sheet,
            files_from=tuple(self.files_from),
        )


class PredictChoices(TypedDict, total=False):
    """Keyword arguments of `penstock.predict`: the attributes of `PredictOptions`."""

    split: str | None
    keep: str | tuple[str, ...]
    batch_size: int | None
    on_error: OnError
    max_rejects: int
    overwrite: bool
    model: Any
    functions: Mapping[str, MapFunction] | None
    workers: int | None
    engine: EngineName
    address: str | None
    resume: bool
    delimiter: str | None
    encoding: str
    missing: str | tuple[str, ...] | None
    decimal: DecimalSeparator | None
    thousands: ThousandsSeparator | None
    short_rows: Literal["raise", "fill"]
    header: HeaderLine | None
    sheet: str | None
    files_from: str | tuple[str, ...]


def make_predict_options(**choices: Unpack[PredictChoices]) -> PredictOptions:
    """Return the options of some keyword arguments.

    Raises:
        OptionError: An option does not exist, or its value is not valid.
    """
    check_keywords(choices, (each.name for each in fields(PredictOptions)), "predict")
    return PredictOptions(**choices)
