"""`Predictor`: an exported model, opened once and asked many times.

In: the folder of an export, or a run; rows of any kind. Out: the columns that `penstock.predict` returns.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import Any, Final, Literal, TypeAlias, get_args

from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.export.formats import FORMATS
from penstock.export.manifest import MANIFEST_NAME, copy_export, read_export_json
from penstock.foundation.option_checks import check_choice, check_flag
from penstock.foundation.wording import show
from penstock.jobs.predict.new_raw_rows import RequestRules
from penstock.jobs.predict.predict import run_prediction
from penstock.jobs.predict.predictions import Predictions
from penstock.jobs.predict.trained import Trained, make_setup, open_trained
from penstock.model.batch_predictor import BatchPredictor
from penstock.model.task import Task
from penstock.settings.keywords import takes
from penstock.settings.prediction import PredictOptions, PredictorCall
from penstock.storage.store_path import as_path
from penstock.transform.map import MapFunction
from penstock.transform.pipeline import Pipeline

_log = logging.getLogger("penstock")

Backend: TypeAlias = Literal["keras", "onnx"]

_BACKENDS: Final[Mapping[str, Backend]] = {"bundle": "keras", "onnx": "onnx"}


class Predictor:
    """Predicts on new rows with an exported model, opened once; any number of threads may call it.

    Predictions are those of `penstock.predict` for the run: the same columns, with the temperature of
    probabilities and in the units of the targets.

    Args:
        source: Folder of an export in the format "bundle" or "onnx"; also a run, or the folder of one.
        backend: Library that runs the model: "keras" or "onnx". By default that of the export, with which it
            must agree.
        model: The `keras.Model` or a function that returns it, for a bundle of a run with your own model:
            code is not stored.
        functions: Functions of the pipeline's maps by name.
        read_files: Whether a text in an image column of rows and tables is the path of a file, as in
            `penstock.predict`. By default it is an error, because a client of a server could name any file of
            the server. Files that you pass by path, such as a CSV with paths of images, are read in any case.

    Raises:
        NoSuchPathError: The folder is neither an export nor a run.
        ExportError: A file of the export has changed since it was written; `path` names it.
        OptionError: The format is for another program; or a model or a function is needed and not given.
        SchemaError: The settings of the run are not valid.

    Example:
        ```python
        predictor = ps.Predictor("served/pets")
        predictor.predict({"name": "Ada", "age": 4.5}).to_pylist()  # one row
        predictor.predict({"age": [4.5, 2.0]}).to_pandas()  # columns
        predictor.predict("new.csv", keep="name")
        ```
    """

    def __init__(
        self,
        source: Any,
        *,
        backend: Backend | None = None,
        model: Any = None,
        functions: Mapping[str, MapFunction] | None = None,
        read_files: bool = False,
    ) -> None:
        check_flag("Predictor", "read_files", read_files)
        self._rules = RequestRules(read_files)
        if backend is not None:
            check_choice("Predictor", "backend", backend, get_args(Backend))
        opened = _open(source, backend, model, functions)
        shared = _SharedPredictor(opened)
        # A third of the CPU time of one row, if made per request.
        self._setup = replace(make_setup(opened), predictor=lambda: shared)
        self._logged: set[str] = set()

    @property
    def pipeline(self) -> Pipeline:
        """Pipeline that makes the inputs of the model; changes to it do not affect predictions."""
        return self._setup.trained.pipeline

    @property
    def tasks(self) -> dict[str, Task]:
        """Task of each target."""
        return dict(self._setup.trained.tasks)

    @takes(PredictorCall)
    def predict(self, data: object, *, options: PredictorCall) -> Predictions:
        """Predict on rows, in their order.

        Args:
            data: One row as a dict of values; columns as a dict of lists or arrays; a list of such rows; a
                table (pandas, polars, Arrow); or anything else that `penstock.predict` takes, such as the
                path of a file. A dict is one row if a value in it is a string, a number, bytes, a dict or
                None. Images are bytes, arrays, or bytes in base64 as `{"b64": "…"}`.
            options: …

        Raises:
            SchemaError: A column that the model needs does not exist, or its type has changed.
            FieldError: A row is not valid.
        """
        rows = [data] if _is_row(data) else data
        done = run_prediction(self._setup, rows, None, options.narrow(PredictOptions), rules=self._rules)
        for note in done.notes:
            if note not in self._logged:  # a server is called often, mostly with the same columns
                self._logged.add(note)
                _log.log(logging.WARNING if note in done.cautions else logging.INFO, "%s", note)
        if done.num_skipped:
            _log.warning("%d of %d rows were left out", done.num_skipped, done.num_skipped + done.num_rows)
        return done

    def __repr__(self) -> str:
        targets = ", ".join(f"{task.name}: {task.describe()}" for task in self.tasks.values())
        return f"Predictor({str(self._setup.trained.folder)!r}, {targets})"


def _open(
    source: Any, backend: Backend | None, model: Any, functions: Mapping[str, MapFunction] | None
) -> Trained:
    found: Backend = "keras"
    is_path = isinstance(source, str | os.PathLike)
    files = copy_export(as_path(source)) if is_path else None  # `open_trained` uses the same copy
    if files is not None:
        name = read_export_json(files / MANIFEST_NAME).child("format").choice(FORMATS)
        found = _BACKENDS.get(name, backend or "keras")  # opening refuses formats for other programs
    if backend is not None and backend != found:
        format_name = next(name for name, each in _BACKENDS.items() if each == backend)
        raise OptionError(
            "backend",
            field="backend",
            expected=f"{found!r}, which the export is for",
            got=show(backend),
            advice=f"Export the run for it: `ps.export_model(RUN, OUT, format={format_name!r})`.",
        )
    return open_trained(source, model, functions)


def _is_row(data: object) -> bool:
    """Whether data is one row: a dict with a value that cannot be a column."""
    return isinstance(data, Mapping) and any(
        isinstance(each, str | bytes | Mapping) or not hasattr(each, "__len__") for each in data.values()
    )


class _SharedPredictor:
    """A predictor that one thread at a time runs, with batches of few sizes; opened when it is first used."""

    def __init__(self, opened: Trained) -> None:
        self._opened = opened
        self._lock = Lock()

    @cached_property
    def _predictor(self) -> Any:
        predictor = self._opened.predictor()
        if isinstance(predictor, BatchPredictor) and predictor.fill == "largest":
            predictor.fill = "power_of_two"
        return predictor

    def __call__(self, inputs: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        with self._lock:
            found: Mapping[str, NDArray[Any]] = self._predictor(inputs)
            return found
