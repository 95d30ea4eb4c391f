"""The check of an export: the same rows through the run and through the export, which must agree.

In: a run, and a complete folder that does not have its name yet. Out: the largest difference of each output,
or an error that names the first field that differs. The export predicts in a new process, as it will be used:
a SavedModel without Penstock, from requests as TensorFlow Serving takes them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.errors import ExportError, PenstockError, WriteError
from penstock.export.formats import Format
from penstock.export.manifest import MANIFEST_NAME, read_export_json
from penstock.export.raw_inputs import (
    MODEL_INPUTS,
    SERVING,
    RawInput,
    encode_rows,
    name_model_inputs,
    name_tensor,
)
from penstock.jobs.export.check_rows import (
    ANSWERS,
    CheckImages,
    CheckRows,
    ask_model,
    read_answers,
    store_images,
    store_rows,
)
from penstock.jobs.model_file import load_model
from penstock.jobs.predict.raw_layout import Recipe
from penstock.model.task import Task
from penstock.settings.prediction import ExportOptions
from penstock.training.run import Run
from penstock.transform.image import Image as ImageTransform
from penstock.transform.pipeline import Pipeline, without_targets

TOLERANCE: Final = 1e-5
"""Largest accepted difference of probabilities, and of numbers relative to their size: each to itself, or to
the median of all if it is smaller."""

IMAGE_TOLERANCE: Final = 1e-3
"""The same where another library decodes and resizes images."""

_MODULE: Final = "penstock.jobs.export.check_rows"
PIXEL_GAP: Final = 3.0
"""Largest accepted difference of pixels, of 255: decoders differ by up to 2 for CMYK, and resized pixels are
rounded once more."""

_IMAGE_ADVICE: Final = (
    "Nothing was written. Export a bundle, which decodes as the run does. Without the check: `check=False`."
)
_SMALLEST: Final = 1e-30  # instead of 0, which nothing is relative to
_Answers = Mapping[str, list[NDArray[Any]]]
_Steps = Mapping[str, NDArray[np.float64]]
"""What a difference of one pixel value is in the units of the model's input, by input and channel."""
# Run as a program and never imported, as it imports TensorFlow, and must not import Penstock.
_SCRIPT: Final = Path(str(files("penstock.export") / "serve_rows.py"))
_REQUESTS: Final = "requests.json"


@dataclass(frozen=True)
class CheckResult:
    """Result of a check.

    Attributes:
        num_rows: Number of rows that both forms predicted.
        differences: Largest difference by target: of probabilities, or of numbers relative to their size.
        tolerance: Largest difference that is accepted.
        is_fresh: Whether the export was asked in a new process; not if it needs code of the user.
        images: Largest difference of the decoded and resized images of all rows by input, in pixels of 0 to
            255, if another library makes them.
        num_files: Number of JPEG and PNG files of every kind, made for the check, whose pixels agree.
    """

    num_rows: int
    differences: Mapping[str, float]
    tolerance: float
    is_fresh: bool
    images: Mapping[str, float] = field(default_factory=dict)
    num_files: int = 0


def check_export(
    run: Run, recipe: Recipe, chosen: Format, folder: Path, options: ExportOptions
) -> CheckResult:
    """Compare an export with its run.

    `options`: options of the export: the data, and the code of the user. Raises ExportError: the export
    cannot be opened, or differs from the run; `field` is the first field that does, in the order of the
    pipeline, or the target if all inputs agree. Or pixels of images differ by more than decoders explain.
    """
    inputs = without_targets(run.pipeline)
    model_file = _find_model_file(options.model) if _needs_model(run, chosen) else None
    is_unknown = _needs_model(run, chosen) and model_file is None  # to a new process
    needs_code = not chosen.takes_raw and (bool(run.pipeline.maps) or is_unknown)
    all_steps = _find_steps(inputs)
    steps = all_steps if chosen.takes_raw else {}
    tolerance = IMAGE_TOLERANCE if steps else TOLERANCE
    with _temporary_folder() as temporary:
        rows = store_rows(run, recipe, options.check_data, temporary)
        made = store_images(rows, inputs, temporary)
        images = None if made is None else made.rows
        expected = ask_model(run.predictor(), inputs, temporary)
        served = ServedModel(run, rows, images, folder, temporary) if chosen.takes_raw else None
        found: _Answers
        if served is not None:
            found = served.predict(with_inputs=bool(steps))
        elif needs_code:
            opened = chosen.load().open_model(folder, _find_model(run, chosen, options), options.functions)
            found = ask_model(opened.predictor(), without_targets(opened.pipeline), temporary)
        else:
            found = _ask_process(chosen, folder, temporary, model_file)
        differences = {
            name: _compare(task, expected[f"output/{name}"], found.get(f"output/{name}"))
            for name, task in run.tasks.items()
        }
        if not all(each <= tolerance for each in differences.values()):
            inside = found if served is None or steps else served.find_inputs()
            raise _make_error(differences, tolerance, _find_input(expected, inside, tolerance, steps))
        if made is not None:
            _check_kinds(made, expected, found, all_steps, PIXEL_GAP if chosen.takes_raw else tolerance)
    gaps = {name: _measure_gap(name, expected, found, step) for name, step in steps.items()}
    _check_images(gaps)
    num_files = 0 if made is None else len(made.rows.split)
    return CheckResult(len(rows.split), differences, tolerance, not needs_code, gaps, num_files)


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Create a folder for the rows and the answers, and remove it at the end."""
    try:
        with TemporaryDirectory(prefix="penstock-export-") as name:
            yield Path(name)
    except PenstockError:
        raise
    except OSError as error:
        raise WriteError(
            f"rows of the check cannot be written ({error.strerror or error})",
            path=gettempdir(),
            advice="Free some disk space there, or set TMPDIR to another folder.",
        ) from error


def _needs_model(run: Run, chosen: Format) -> bool:
    """Whether opening an export takes the user's own model: only a bundle rebuilds it."""
    members = run.members or (run,)
    return chosen.name == "bundle" and any(each.needs_model for each in members)


def _find_model(run: Run, chosen: Format, options: ExportOptions) -> Any:
    """Return the user's own model, or a function that makes one like it; None if none is needed."""
    if options.model is not None or not _needs_model(run, chosen):
        return options.model
    from penstock.export.bundle import copy_model  # noqa: PLC0415 - imports Keras, which the run has loaded

    return partial(copy_model, run)


def _find_model_file(model: Any) -> str | None:
    """Return the `FILE:FUNCTION` of a model that is given so, which any process can build; else None."""
    is_from_file = isinstance(model, partial) and model.func is load_model
    return model.args[0] if is_from_file else None


def _ask_process(chosen: Format, export: Path, folder: Path, model_file: str | None) -> _Answers:
    """Open the export in a new process, and return its predictions."""
    own = [] if model_file is None else [model_file]
    run_process(chosen.name, ["-m", _MODULE, os.fspath(export.resolve()), os.fspath(folder), *own])
    return read_answers(folder / ANSWERS)


def _compare(task: Task, expected: list[NDArray[Any]], found: list[NDArray[Any]] | None) -> float:
    """Return the largest difference of an output; infinity if shapes differ, or one has NaN."""
    if found is None or [each.shape for each in expected] != [each.shape for each in found]:
        return float("inf")
    one, other = (np.concatenate([each.reshape(-1) for each in all_]) for all_ in (expected, found))
    both = np.isnan(one) & np.isnan(other)
    gaps = np.where(both, 0.0, np.abs(one.astype(np.float64) - other))
    if task.unit is not None:
        # In deviations of the dates: their numbers are far from 0, and served ones are whole.
        gaps = np.maximum(gaps[~both] - 0.5, 0.0) * abs(task.factor)
    elif task.kind == "regression":
        # In units of the target, which may be dollars or light years.
        sizes = np.abs(one.astype(np.float64))[~both]
        gaps = gaps[~both] / np.maximum(np.maximum(sizes, np.median(sizes) if len(sizes) else 0), _SMALLEST)
    largest = float(np.max(gaps, initial=0.0))
    return largest if np.isfinite(largest) else float("inf")


def _find_steps(inputs: Pipeline) -> _Steps:
    """Return the inputs that are images, with the size of one pixel value in their units."""
    images = {name: each for name, each in inputs.transforms.items() if isinstance(each, ImageTransform)}
    return {
        name: np.abs(np.float64(each.scale or 1) / np.asarray(each.deviation or 1, np.float64))
        for name, each in images.items()
        if name in inputs.inputs
    }


def _check_images(images: Mapping[str, float]) -> None:
    """Refuse images that differ by more than the rounding of decoders."""
    for name, gap in images.items():
        if not gap <= PIXEL_GAP:
            what = "decodes or resizes images differently from the run"
            raise _make_image_error(name, what, PIXEL_GAP, gap)


def _check_kinds(made: CheckImages, expected: _Answers, found: _Answers, steps: _Steps, most: float) -> None:
    """Refuse an export that decodes a kind of image to other pixels than the run."""
    for name in made.kinds:
        key = f"image/{name}"
        kind, gap = made.find_worst(name, expected[key], found[key], steps[name])
        if not gap <= most:
            raise _make_image_error(name, f"decodes {kind} to other pixels than the run", most, gap)


def _make_image_error(name: str, what: str, most: float, gap: float) -> ExportError:
    return ExportError(
        f"field {name!r}: the export {what}",
        field=name,
        expected=f"pixels that differ by at most {most:g} of 255",
        got=f"{gap:.3g}",
        advice=_IMAGE_ADVICE,
    )


def _find_input(
    expected: _Answers, found: _Answers, tolerance: float, steps: _Steps
) -> tuple[str, float] | None:
    """Return the first input of the model that differs, and by how much; None if all agree.

    Images of another library always differ a little: they are named if no other input differs.
    """
    gaps = {
        (name := key.partition("/")[2]): _measure_gap(name, expected, found, steps.get(name, 1.0))
        for key, arrays in expected.items()
        if key.startswith("input/") and key in found and arrays[0].dtype.kind in "biuf"
    }
    for name, gap in gaps.items():
        if gap > (PIXEL_GAP if name in steps else tolerance):
            return name, gap
    return next(((name, gaps[name]) for name in steps if gaps.get(name, 0.0) > 0), None)


def _measure_gap(
    name: str, expected: _Answers, found: _Answers, step: NDArray[np.float64] | float = 1.0
) -> float:
    """Return the largest difference of an input of the model, in units of `step`."""
    key = f"input/{name}"
    pairs = [[each.astype(np.float64) / step for each in all_] for all_ in (expected[key], found[key])]
    return _compare(Task(name, "binary"), *pairs)


def _make_error(
    differences: Mapping[str, float], tolerance: float, at: tuple[str, float] | None
) -> ExportError:
    worst = max(differences, key=lambda name: differences[name])
    where = f"target {worst!r}" if at is None else f"field {at[0]!r}"
    cause = "all inputs agree" if at is None else f"its values for the model differ by {at[1]:.3g}"
    return ExportError(
        f"{where}: the export differs from the run",
        field=worst if at is None else at[0],
        expected=f"predictions of {worst!r} that differ by at most {tolerance:g}",
        got=f"{differences[worst]:.3g} ({cause})",
        advice="Nothing was written. Without the check: `check=False`.",
    )


class ServedModel:
    """The SavedModel of a run in the folder `export`, and the rows that it predicts.

    `images` are rows with images of every kind, if there are any; `folder` is for temporary files.
    """

    def __init__(
        self, run: Run, rows: CheckRows, images: CheckRows | None, export: Path, folder: Path
    ) -> None:
        self._run = run
        self._export = export
        self._folder = folder
        form = read_export_json(export / MANIFEST_NAME).child("details").child("inputs").object()
        inputs = {name: RawInput.from_json(name, each) for name, each in form.items()}
        requests = [{"inputs": encode_rows(inputs, samples)} for samples in rows.samples()]
        self._num_requests = len(requests)
        if images is not None:
            requests += [{"inputs": encode_rows(inputs, samples)} for samples in images.samples()]
        self._num_all = len(requests)
        self._names = name_model_inputs(without_targets(run.pipeline))
        (folder / _REQUESTS).write_text(json.dumps(requests))

    def predict(self, *, with_inputs: bool) -> dict[str, list[NDArray[Any]]]:
        """Return the predictions by target, one array per batch, as the predictor of the run returns them.

        `with_inputs`: whether to return also what preprocessing makes of the rows and images, by input.
        """
        number = self._num_requests
        answers = self._serve({SERVING: number, MODEL_INPUTS: self._num_all if with_inputs else 0})
        found = self._take_inputs(answers) if with_inputs else {}
        for name, task in self._run.tasks.items():
            part = "" if task.kind == "regression" else "_probabilities"
            arrays = answers[f"{SERVING}/{name_tensor(f'{name}{part}', ())}"]
            # The run returns the probability of the second of two labels.
            found[f"output/{name}"] = [each[:, 1] for each in arrays] if task.kind == "binary" else arrays
        return found

    def find_inputs(self) -> dict[str, list[NDArray[Any]]]:
        """Return what the preprocessing of the SavedModel makes of the rows."""
        return self._take_inputs(self._serve({MODEL_INPUTS: self._num_requests}))

    def _take_inputs(self, answers: dict[str, list[NDArray[Any]]]) -> dict[str, list[NDArray[Any]]]:
        found = {name: answers[f"{MODEL_INPUTS}/{each}"] for name, each in self._names.items()}
        rows = {f"input/{name}": arrays[: self._num_requests] for name, arrays in found.items()}
        return rows | {f"image/{name}": arrays[self._num_requests :] for name, arrays in found.items()}

    def _serve(self, signatures: Mapping[str, int]) -> dict[str, list[NDArray[Any]]]:
        """Ask signatures, each so many of the requests."""
        out = self._folder / ANSWERS
        paths = [_SCRIPT, self._export.resolve(), self._folder / _REQUESTS, out]
        asked = [f"{name}={number}" for name, number in signatures.items() if number]
        run_process("saved_model", [*map(os.fspath, paths), *asked])
        return read_answers(out)


def run_process(name: str, arguments: list[str]) -> None:
    """Run Python in a new process, with the Keras backend of this one."""
    environment = {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ}
    if "keras" in sys.modules:
        environment["KERAS_BACKEND"] = sys.modules["keras"].backend.backend()
    # -P: a `numpy.py` in the current folder, which may be one of the data, must not be imported.
    command = [sys.executable, "-P", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise ExportError(
            f"{name} in a new process",
            expected="predictions",
            got=lines[-1].strip() if lines else "no output",
            advice="Nothing was written.",
        )
