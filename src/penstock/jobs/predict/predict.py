"""From new data to predictions: the job behind `penstock.predict` and `penstock predict`.

In: a trained run, raw or stored data, and options. Out: a table or a complete file; after an error, no file.
Rows stream from the data through the run's pipeline and model to the output, in order.
"""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, Unpack, cast

import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import NoSuchPathError, OptionError, PathError
from penstock.export.manifest import MANIFEST_NAME, is_export, open_export
from penstock.foundation.keras_backend import importing_keras
from penstock.foundation.wording import show
from penstock.jobs.predict.new_data import open_new_data
from penstock.jobs.predict.new_rows import ModelBatch, NewRows, RefusalLog, choose_batch_size, make_batches
from penstock.jobs.predict.options import PredictChoices, PredictOptions, make_predict_options
from penstock.jobs.predict.prediction_file import Write, check_suffix, open_writer
from penstock.jobs.predict.predictions import HEAD_ROWS, Answers, Predictions
from penstock.jobs.predict.raw_layout import find_recipe
from penstock.jobs.predict.raw_rows import RequestRules
from penstock.model.task import Task
from penstock.storage.atomic import AtomicFile, refuse_existing
from penstock.storage.paths import PathLike
from penstock.training.run_files import CONFIG_NAME
from penstock.transform.map import MapFunction
from penstock.transform.pipeline import Pipeline

if TYPE_CHECKING:
    from penstock.training.run import Run  # imports Keras, which a `Run` object has loaded already

_log = logging.getLogger("penstock")


@dataclass(frozen=True)
class PredictProgress:
    """Progress of a prediction.

    Attributes:
        num_rows: Number of rows predicted so far.
        num_skipped: Number of rows skipped so far.
        num_bytes: Number of bytes of the data read so far.
        total_bytes: Size of the data in bytes, or None if it is unknown.
    """

    num_rows: int
    num_skipped: int
    num_bytes: int
    total_bytes: int | None


OnPredict: TypeAlias = Callable[[PredictProgress], None]


def predict(
    run: Run | PathLike, data: object, out: PathLike | None = None, **options: Unpack[PredictChoices]
) -> Predictions:
    """Predict on new data with the pipeline and the model of a run, in the order of the rows.

    New rows are encoded with the schema that the run was trained with: no type is inferred again. Columns of
    targets and weights are not needed. If another column does not exist, its values count as missing if the
    model was trained with missing values, and otherwise it is an error. A category that did not occur in
    training gets the code for unknown values.

    The output has the id of each row, its number from 0, or the path of the image; the columns of `keep`; and
    for each target, depending on its kind:

    - one of several classes: `NAME`, the label; `NAME_probability`, the probability of this label;
      `NAME_probability_LABEL`, the probability of each label;
    - sets of classes: `NAME`, a list of labels, and `NAME_probability_LABEL`, the probability of each label;
    - numbers: `NAME`, in the units of the data.

    A target that is named in `keep` becomes `NAME_true`.

    Args:
        run: A run, or the path of its folder; or the folder of an export, see `Predictor`.
        data: A split, a data set, TFRecords, or raw data as for `penstock.convert`: paths of CSV, Parquet,
            JSON lines, Arrow or image files, a table, a dict of arrays, or an iterable of dicts.
        out: Path of the file to write, with the suffix `.parquet`, `.csv` or `.jsonl`. The file appears when
            it is complete. By default, the predictions are returned as a table.
        options: Attributes of `penstock.options.PredictOptions`.

    Raises:
        SchemaError: A column that the model needs does not exist, or its type has changed.
        FieldError: A row is not valid.
        PathError: The output file already exists, and `overwrite` is False.

    Example:
        >>> import penstock as ps
        >>> pets = ps.open("pets/", target="adopted")
        >>> run = ps.train(pets, pipeline=ps.Pipeline.fit(pets, name=None), out="runs/pets", epochs=1)
        >>> found = predict(run, [{"name": "Ada", "age": 4.5}, {"name": "Bo", "age": None}], keep="name")
        >>> found.columns[:4]
        ('row', 'name', 'adopted', 'adopted_probability')
        >>> predict("runs/pets", pets["test"], "adopted.parquet").num_rows
        1
    """
    done = run_prediction(run, data, out, make_predict_options(**options))
    for note in done.notes:
        _log.log(logging.WARNING if note in done.cautions else logging.INFO, "%s", note)
    if done.num_skipped:
        _log.warning("%d of %d rows were left out", done.num_skipped, done.num_skipped + done.num_rows)
    return done


def run_prediction(
    run: Trained | PathLike,
    data: object,
    out: PathLike | None,
    options: PredictOptions,
    on_progress: OnPredict | None = None,
    write: Write | None = None,
    rules: RequestRules | None = None,
) -> Predictions:
    """Predict, and return the predictions or a summary of the file that was written.

    Args:
        run: As for `predict`.
        data: As for `predict`.
        out: As for `predict`.
        options: All options.
        on_progress: Called with the progress after each batch.
        write: Called with the bytes of a CSV if `out` is None; without it, the result has a table.
        rules: As for `open_new_data`.

    Raises:
        PenstockError: See `predict`.
    """
    path = None if out is None else Path(out)
    suffix = ".csv" if path is None else check_suffix(path)
    if path is not None:
        _refuse_output(path, data, options)
    trained = open_trained(run, options.model, options.functions)
    inputs = trained.pipeline.without_targets()
    recipe = find_recipe(trained.pipeline, trained.settings, _find_folder(trained))
    batch_size = options.batch_size or choose_batch_size(inputs)
    rows = open_new_data(data, inputs, recipe, options, batch_size, rules)
    answers = Answers(trained.tasks, rows.kept)
    work = _Work(trained, rows, answers, options, on_progress)
    with ExitStack() as stack:
        if path is not None:
            write = stack.enter_context(AtomicFile(path, overwrite=options.overwrite)).write
        most = 0 if options.on_error == "raise" else options.max_rejects
        batches = make_batches(rows, inputs, batch_size, options.num_workers, most)
        answered = work.answer(stack.enter_context(closing(batches)))
        first = list(itertools.islice(answered, 1))  # if this fails, nothing is written
        held: list[pa.RecordBatch] = []
        take = held.append
        if write is not None:
            take = stack.enter_context(open_writer(suffix, answers.schema, write)).write
        for batch in itertools.chain(first, answered):
            take(batch)
    return work.summarize(path, pa.Table.from_batches(held, answers.schema) if write is None else None)


class Trained(Protocol):
    """What a prediction needs: a `Run`, or an `ExportedModel`."""

    @property
    def pipeline(self) -> Pipeline:
        """Pipeline that makes the inputs of the model."""

    @property
    def tasks(self) -> Mapping[str, Task]:
        """Task of each target."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of the run: `schema`, `plan` and `convert`."""

    def predictor(self) -> Callable[[Mapping[str, NDArray[Any]]], Mapping[str, NDArray[Any]]]:
        """Return a function from the inputs of a batch to predictions by target."""


def open_trained(run: object, model: Any, functions: Mapping[str, MapFunction] | None) -> Trained:
    """Return a run or an export; a folder is opened.

    Args:
        run: A run, an export, or the path of the folder of one.
        model: The user's own model, or a function that returns it, if it needs one.
        functions: Functions of the pipeline's maps, by name.

    Raises:
        NoSuchPathError: The folder is neither a run nor an export.
        OptionError: `run` is something else; or a model or a function is needed and not given.
        ExportError: A file of the export has changed.
    """
    if not isinstance(run, str | os.PathLike):
        if not hasattr(run, "predictor"):
            raise OptionError("run", expected="a run, or the folder of one", got=show(run))
        return cast("Trained", run)
    folder = Path(run)
    if is_export(folder):
        return open_export(folder, model, functions)
    if not (folder / CONFIG_NAME).is_file():  # before Keras is imported, which takes seconds
        raise NoSuchPathError(
            f"is neither a run nor an export (it has neither {CONFIG_NAME} nor {MANIFEST_NAME})"
            if folder.is_dir()
            else "no such folder",
            path=folder,
            advice="Pass a folder that 'penstock train --out' or 'penstock export' wrote.",
        )
    with importing_keras("predict"):
        from penstock.training.run import open_run  # noqa: PLC0415 - imports Keras

    return open_run(folder, model, functions)


def _refuse_output(path: Path, data: object, options: PredictOptions) -> None:
    if not options.overwrite:
        refuse_existing(path)
    given = data if isinstance(data, list | tuple) else [data]
    target = path.resolve()
    for each in given:
        if isinstance(each, str | os.PathLike) and Path(each).resolve() == target:
            raise PathError("the output is also the input data", path=path, advice="Choose another name.")


class _Work:
    """One prediction: calls the model, and counts rows."""

    def __init__(
        self,
        run: Trained,
        rows: NewRows,
        answers: Answers,
        options: PredictOptions,
        on_progress: OnPredict | None,
    ) -> None:
        self._run = run
        self._rows = rows
        self._answers = answers
        self._on_progress = on_progress
        self._num_rows = self._num_bytes = 0
        self._refused = RefusalLog(options.on_error, options.max_rejects)
        self._head: list[pa.RecordBatch] = []

    def answer(self, batches: Iterator[ModelBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the output, one record batch per batch of the model."""
        ask = None
        for batch in batches:
            for refusal in batch.refusals:
                self._refused.add(refusal)
            self._num_bytes += batch.num_bytes
            if batch.inputs is not None:
                ask = ask or self._run.predictor()
                made = self._answers.make(batch.kept, ask(batch.inputs))
                if self._num_rows < HEAD_ROWS:
                    self._head.append(made.slice(0, HEAD_ROWS - self._num_rows))
                self._num_rows += batch.num_rows
                yield made
            if self._on_progress is not None:
                total = self._rows.num_bytes
                self._on_progress(
                    PredictProgress(self._num_rows, self._refused.num_skipped, self._num_bytes, total)
                )

    def summarize(self, out: Path | None, table: pa.Table | None) -> Predictions:
        """Return the result of the prediction."""
        head = pa.Table.from_batches(self._head, self._answers.schema)
        rows, notes = self._rows, (*self._rows.cautions, *self._rows.notes)
        return Predictions(
            self._num_rows,
            self._refused.num_skipped,
            out,
            table,
            head,
            self._refused.rejected,
            notes,
            rows.cautions,
        )


def _find_folder(run: Trained) -> Path | None:
    """Return the folder of the data set that a run was trained on; None for single files or an export."""
    data = getattr(run, "data", None)
    return data if isinstance(data, Path) else None
