"""A SavedModel in a process without Penstock, asked with requests as TensorFlow Serving takes them.

In: stored rows, and the folder of a SavedModel. Out: predictions by target, and the inputs of the model.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from penstock.errors import ExportError
from penstock.export.manifest import MANIFEST_NAME, read_export_json
from penstock.export.raw_inputs import (
    MODEL_INPUTS,
    SERVING,
    RawInput,
    encode_rows,
    name_model_inputs,
    name_tensor,
)
from penstock.jobs.export.check_rows import CheckRows
from penstock.jobs.export.fresh_process import ANSWERS, read_answers
from penstock.training.run import Run
from penstock.transform.pipeline_parts import without_targets

# Run as a program and never imported, as it imports TensorFlow, and must not import Penstock.
_SCRIPT: Final = Path(str(files("penstock.export") / "serve_rows.py"))
_REQUESTS: Final = "requests.json"


class ServedModel:
    """A SavedModel, and the rows that it is asked.

    Args:
        run: The run that it was exported from.
        rows: The rows.
        images: Rows with images of every kind; None for no such rows.
        export: Folder of the SavedModel.
        folder: Folder for temporary files.
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
