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
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import PathError, StoreError
from penstock.jobs.predict.new_data import open_new_data
from penstock.jobs.predict.new_raw_rows import RequestRules
from penstock.jobs.predict.new_rows import ModelBatch, NewRows, RefusalLog, choose_num_threads, make_batches
from penstock.jobs.predict.prediction_file import Write, check_suffix, open_writer
from penstock.jobs.predict.predictions import HEAD_ROWS, Answers, Predictions
from penstock.jobs.predict.trained import PredictionSetup, Trained, make_setup, open_trained
from penstock.settings.keywords import takes
from penstock.settings.prediction import PredictOptions
from penstock.storage.paths import PathLike, find_real_path, locate
from penstock.storage.store_path import AnyPath, as_path
from penstock.training.run import Run
from penstock.training.validation_choice import Predict

_log = logging.getLogger("penstock")
Answer: TypeAlias = Callable[
    [Iterator[ModelBatch]], Iterator[tuple[ModelBatch, Mapping[str, NDArray[Any]] | None]]
]
"""Yields batches in order, each with its predictions, or None if no row is left in it."""


@dataclass(frozen=True)
class PredictProgress:
    """Rows and bytes of the data so far; `total_bytes` is None if the size of the data is unknown."""

    num_rows: int
    num_skipped: int
    num_bytes: int
    total_bytes: int | None


OnPredict: TypeAlias = Callable[[PredictProgress], None]


@takes(PredictOptions)
def predict(
    run: Run | PathLike, data: object, out: PathLike | None = None, *, options: PredictOptions
) -> Predictions:
    """Predict on new data with the pipeline and the model of a run, in the order of the rows.

    New rows are encoded with the schema that the run was trained with: no type is inferred again. Columns of
    targets and weights are not needed. If another column does not exist, it is an error; with
    `allow_missing_columns=True` its values count as missing in all rows, if the model was trained with
    missing values. A category that did not occur in training gets the code for unknown values.

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
            it is complete; it may be in an object store. By default, the predictions are returned as a table.
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
    done = run_prediction(run, data, out, options)
    for note in done.notes:
        _log.log(logging.WARNING if note in done.cautions else logging.INFO, "%s", note)
    if done.num_skipped:
        _log.warning("%d of %d rows were left out", done.num_skipped, done.num_skipped + done.num_rows)
    return done


def run_prediction(
    run: Trained | PredictionSetup | PathLike,
    data: object,
    out: PathLike | None,
    options: PredictOptions,
    on_progress: OnPredict | None = None,
    write: Write | None = None,
    rules: RequestRules | None = None,
) -> Predictions:
    """Predict, and return the predictions or a summary of the file that was written.

    `write`: called with the bytes of a CSV if `out` is None; without it, the result has a table.
    """
    path = None if out is None else as_path(out)
    suffix = ".csv" if path is None else check_suffix(path)
    if path is not None:
        _refuse_output(path, data, options)
    if isinstance(run, PredictionSetup):
        setup = run
    else:
        setup = make_setup(open_trained(run, options.model, options.functions))
    batch_size = options.batch_size or setup.batch_size
    rows = open_new_data(data, setup.inputs, setup.recipe, options, batch_size, rules)
    answers = Answers(setup.answers, rows.kept)
    work = _Work(rows, answers, options, on_progress)
    with ExitStack() as stack:
        if path is not None:
            write = stack.enter_context(locate(path).creating(overwrite=options.overwrite)).write
        most = 0 if options.on_error == "raise" else options.max_skipped
        num_threads = choose_num_threads(options.num_threads)
        batches = make_batches(rows, setup.inputs, batch_size, num_threads, most)
        answer, remove_saved = _open_engine(run, setup, path, options, stack)
        answered = work.answer(answer(work.check(stack.enter_context(closing(batches)))))
        first = list(itertools.islice(answered, 1))  # if this fails, nothing is written
        held: list[pa.RecordBatch] = []
        take = held.append
        if write is not None:
            take = stack.enter_context(open_writer(suffix, answers.schema, write)).write
        for batch in itertools.chain(first, answered):
            take(batch)
    remove_saved()  # not before the output is complete: writing its end may fail as well
    return work.summarize(path, pa.Table.from_batches(held, answers.schema) if write is None else None)


def _open_engine(
    run: object, setup: PredictionSetup, path: AnyPath | None, options: PredictOptions, stack: ExitStack
) -> tuple[Answer, Callable[[], None]]:
    """Return the function that predicts batches, here or on a cluster, and one that removes what it saved.

    `stack` closes what they need.
    """
    if options.engine == "local":
        return partial(_answer_here, setup.predictor), lambda: None
    # Loaded late: Ray is an extra.
    from penstock.distributed.ray_cluster import Cluster  # noqa: PLC0415
    from penstock.distributed.ray_model import (  # noqa: PLC0415
        RayModel,
        SavedPredictions,
        find_model_folder,
    )

    folder = find_model_folder(setup.trained, run)
    if path is None and options.resume:
        raise options.refuse("resume", "an output file, beside which predictions are saved", "none")
    cluster = stack.enter_context(Cluster(options.address, options.num_threads))
    saved = None if path is None else SavedPredictions(path, resume=options.resume)
    answer = stack.enter_context(RayModel(cluster, folder, saved)).answer
    return answer, lambda: None if saved is None else _remove_saved(saved.remove, path)


def _remove_saved(remove: Callable[[], None], path: AnyPath | None) -> None:
    try:
        remove()
    except StoreError as error:
        _log.warning("%s is complete, but the saved predictions beside it were not removed: %s", path, error)


def _answer_here(
    open_predictor: Callable[[], Predict], batches: Iterator[ModelBatch]
) -> Iterator[tuple[ModelBatch, Mapping[str, NDArray[Any]] | None]]:
    ask = None
    for batch in batches:
        if batch.inputs is None:
            yield batch, None
        else:
            ask = ask or open_predictor()
            yield batch, ask(batch.inputs)


def _refuse_output(path: AnyPath, data: object, options: PredictOptions) -> None:
    given = data if isinstance(data, list | tuple) else [data]
    target = find_real_path(path)
    for each in given:
        if isinstance(each, str | os.PathLike) and find_real_path(as_path(each)) == target:
            raise PathError("the output is also the input data", path=path, advice="Choose another name.")
    locate(path).refuse_output(overwrite=options.overwrite)


class _Work:
    """One prediction: makes rows of the output, and counts them."""

    def __init__(
        self, rows: NewRows, answers: Answers, options: PredictOptions, on_progress: OnPredict | None
    ) -> None:
        self._rows = rows
        self._answers = answers
        self._on_progress = on_progress
        self._num_rows = self._num_bytes = 0
        self._refused = RefusalLog(options.on_error, options.max_skipped)
        self._head: list[pa.RecordBatch] = []

    def check(self, batches: Iterator[ModelBatch]) -> Iterator[ModelBatch]:
        """Yield batches whose refused rows were handled, before the model gets them."""
        for batch in batches:
            for refusal in batch.refusals:
                self._refused.add(refusal)
            yield batch

    def answer(
        self, answered: Iterator[tuple[ModelBatch, Mapping[str, NDArray[Any]] | None]]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the output, one record batch per batch of the model."""
        for batch, predicted in answered:
            self._num_bytes += batch.num_bytes
            if predicted is not None:
                made = self._answers.make(batch.kept, predicted)
                if self._num_rows < HEAD_ROWS:
                    self._head.append(made.slice(0, HEAD_ROWS - self._num_rows))
                self._num_rows += batch.num_rows
                yield made
            if self._on_progress is not None:
                total = self._rows.num_bytes
                self._on_progress(
                    PredictProgress(self._num_rows, self._refused.num_skipped, self._num_bytes, total)
                )

    def summarize(self, out: AnyPath | None, table: pa.Table | None) -> Predictions:
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
