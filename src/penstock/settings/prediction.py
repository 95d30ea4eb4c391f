"""Options of everything that uses a trained model: prediction, evaluation, export, report.

Annotations are read when a class is used, so this module has no postponed ones.
"""

from collections.abc import Sequence
from typing import Annotated, Final, Literal, TypeAlias

from penstock.settings.groups import BadRows, Execution, Missing, MissingColumns, TextFormat, refuse_local
from penstock.settings.kinds import Count, Functions, Object, Seed, SplitName, Strings, Whole
from penstock.settings.setting import Settings, setting

ExportFormat: TypeAlias = Literal["bundle", "onnx", "saved_model"]

CHECKED_ROWS: Final = 256
"""Number of rows that the check of an export predicts."""


class ModelCode(Settings, title="own models", has_flags=False, affects_output=False):
    """Code that a run does not store."""

    model: Object = setting(
        "The `keras.Model`, or a function that returns it, for a run with your own model. An ensemble needs "
        "a function.",
        default=None,
    )
    functions: Functions | None = setting(
        "Functions of the pipeline's maps by name, because no code is stored. An open `Run` has them.",
        default=None,
    )


class NewData(BadRows, MissingColumns, TextFormat, title="reading raw data"):
    """How raw data is read for a trained model, which knows its columns."""

    missing: Missing | None = setting(
        "Text that marks a missing cell, such as NA; repeatable.",
        default=None,
        usual="as in the conversion of the run",
    )


class BatchThreads(Execution, title="execution", affects_output=False):
    """Where a prediction is made, and how many threads make its batches."""

    num_threads: Count | None = setting(
        "Number of threads that make batches, or of tasks on Ray. The result does not depend on it. With "
        "more than 8 threads, the model is slower than they are.",
        default=None,
        usual="one per core, at most 8",
        flag="--threads",
        earlier=("workers", "--workers"),
    )


class PredictorCall(NewData, BatchThreads, title="prediction"):
    """Keywords of `Predictor.predict`: options of a prediction with a model that is open."""

    split: SplitName | None = setting(
        "Split of a data set or of TFRecords. It is not needed if there is only one.", default=None
    )
    keep: Annotated[str | Sequence[str], Strings("COLUMN", None)] = setting(
        "Copy a column of the data to the output; repeatable.", default=()
    )
    batch_size: Count | None = setting(
        "Rows per prediction step.", default=None, usual="32 to 1,024, about 4 MiB"
    )


class PredictOptions(PredictorCall, ModelCode, title="output"):
    """Options of a prediction.

    Example:
        >>> PredictOptions(keep="name").keep
        ('name',)
    """

    overwrite: bool = setting(
        "Replace an existing file. It is kept until the new one is complete.", default=False
    )
    resume: bool = setting(
        "Continue a run on a Ray cluster. It uses the predictions that the interrupted run has saved.",
        default=False,
    )

    def validate(self) -> None:
        """Refuse what only a Ray cluster has a use for."""
        refuse_local(self, "resume")


class ScoringTasks(Execution, title="execution", affects_output=False):
    """Where an evaluation predicts, and in how many tasks."""

    num_threads: Count | None = setting(
        "Number of tasks on Ray at the same time.",
        default=None,
        usual="one per CPU of the cluster",
        flag="--threads",
        earlier=("workers", "--workers"),
    )

    def validate(self) -> None:
        """Refuse what only a Ray cluster has a use for."""
        refuse_local(self, "num_threads")


class EvaluateOptions(ScoringTasks, title="evaluation"):
    """Options of an evaluation.

    Example:
        >>> EvaluateOptions(slices=["breed"], bootstrap=200).slices
        ('breed',)
    """

    slices: Annotated[str | Sequence[str], Strings("FIELD", None, expected="names of fields")] = setting(
        "Also print scores by the values of a field, which need not be an input; repeatable.",
        default=(),
        flag="--slice",
    )
    mistakes: Whole = setting("Number of worst mistakes to show. They are listed for each target.", default=5)
    bootstrap: Whole = setting("Resamples for the intervals; 0: no intervals.", default=500)
    importance: bool = setting(
        "Whether to measure the importance of inputs: a sample of the records is predicted three times per "
        "field.",
        default=True,
        off="Do not measure the importance of inputs, which takes most of the time.",
    )
    importance_records: Count = setting(
        "Records to measure the importance on. They are fewer if records are large.", default=2000
    )
    batch_size: Count | None = setting(
        "Records per prediction step.", default=None, usual="256, or fewer if they are large"
    )
    seed: Seed = setting("Random seed of resamples, samples and permutations.", default=0)


class EvaluateCall(EvaluateOptions, NewData, ModelCode, title="evaluation"):
    """Keywords of `penstock.evaluate`: options of the evaluation, and of reading raw labelled data."""

    split: SplitName | None = setting(
        "Split of a data set.", default=None, usual="test, or the only one of DATA"
    )


class ExportOptions(ModelCode, title="export", affects_output=False):
    """Options of an export.

    Example:
        >>> ExportOptions(format="saved_model").check
        True
    """

    format: ExportFormat = setting(
        "bundle: for ps.Predictor; onnx: for ps.Predictor without Keras; saved_model: for TensorFlow without "
        "Penstock.",
        default="bundle",
    )
    check: bool = setting(
        "Whether to compare the export with the run. If they differ, nothing is written.",
        default=True,
        off=f"Do not compare the export with the run, on {CHECKED_ROWS} rows in a new process.",
    )
    check_data: Object = setting(
        "Data for the check, as for 'penstock predict'; repeatable.",
        default=None,
        usual="the data of the run",
        flag="",
    )
    overwrite: bool = setting(
        "Replace an existing export. It is kept until the new one is complete.", default=False
    )


class ReportOptions(Settings, title="report", affects_output=False):
    """Options of a report.

    Example:
        >>> ReportOptions(samples=4).records
        20000
    """

    records: Count = setting(
        "Most records of each split that figures about the data come from. They lie at even distances, and "
        "are fewer if records are large or have many fields.",
        default=20_000,
    )
    samples: Whole = setting("Number of sample records to show.", default=12)
    split: SplitName | None = setting(
        "Split to evaluate a run on.", default=None, usual="test, else validation"
    )
    mistakes: Whole = setting("Number of worst mistakes to show. They are listed for each target.", default=8)
    importance: bool = setting(
        "Whether to measure the importance of inputs.",
        default=True,
        off="Do not measure the importance of inputs, which takes most of the time.",
    )
    importance_records: Count = setting("Records to measure the importance on.", default=1000)
    seed: Seed = setting("Random seed of intervals and permutations.", default=0)
    overwrite: bool = setting("Replace an existing file.", default=False)


class ReportCall(ReportOptions, MissingColumns, ModelCode, title="report"):
    """Keywords of `penstock.write_report`."""

    data: Object = setting(
        "Data set to evaluate a run on, or its path.", default=None, usual="the data of the run", flag=""
    )
