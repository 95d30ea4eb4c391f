"""The format `onnx`: the model as an ONNX file, behind the pipeline in Python; predicts without Keras.

In: a run. Out: `model.onnx`, with weights and all fitted numbers inside, beside pipeline and schema. Its
inputs are the arrays that the pipeline makes, and its outputs are the outputs of the model, by target.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.errors import ExportError
from penstock.export.formats import ExportedModel
from penstock.export.parts import Parts, read_parts, write_parts
from penstock.model.batch_predictor import BatchPredictor
from penstock.training.run import Run
from penstock.transform.map import MapFunction

# ONNX Runtime 1.31 sends usage data to its maker from when it is imported, unless this is set.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime

FILE_NAME: Final = "model.onnx"
_TYPES: Final = {"float": "float32", "double": "float64"}  # other types have their NumPy names
_ERRORS_ONLY: Final = 3


def write(run: Run, folder: Path) -> Mapping[str, object]:
    """Convert the model, and write it with its pipeline; return its inputs and outputs."""
    # Both import Keras, which predictions do not need.
    from penstock.export.onnx.model import write_model  # noqa: PLC0415
    from penstock.training.run_model import make_served_model  # noqa: PLC0415

    write_parts(run, folder)
    return write_model(make_served_model(run), tuple(run.tasks), folder / FILE_NAME, run.pipeline.inputs)


def open_model(
    folder: Path,
    model: Any = None,  # noqa: ARG001 - all formats take it
    functions: Mapping[str, MapFunction] | None = None,
) -> ExportedModel:
    """Open an export with ONNX Runtime.

    `model`: not used: the file has the model, also a user's own one.
    """
    parts = read_parts(folder, functions)
    predictor = OnnxPredictor(folder / FILE_NAME, parts)
    return ExportedModel(folder, parts.pipeline, parts.tasks, parts.recorded, predictor)


class OnnxPredictor(BatchPredictor):
    """Predicts batches with ONNX Runtime, on the CPU; see `BatchPredictor`."""

    def __init__(self, path: Path, parts: Parts) -> None:
        super().__init__(parts.pipeline, parts.tasks, parts.logits, parts.temperatures)
        self.fill = "none"  # any number of rows is as fast as any other
        options = onnxruntime.SessionOptions()
        options.log_severity_level = _ERRORS_ONLY
        try:
            self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the classes of ONNX Runtime have no common base, and no public names
            raise ExportError(
                "ONNX model",
                path=path,
                expected=f"a model that ONNX Runtime {onnxruntime.__version__} can run",
                got=str(error).strip().splitlines()[0].rstrip("."),
                advice="Install a newer onnxruntime, or export the run again.",
            ) from error
        self._taken = {
            each.name: (_find_dtype(each.type), len(each.shape)) for each in self._session.get_inputs()
        }
        self._names = [each.name for each in self._session.get_outputs()]

    def call_model(self, arrays: dict[str, NDArray[Any]]) -> Mapping[str, Any]:
        """Return the outputs of the model by target."""
        given = {name: _fit(arrays[name], *each) for name, each in self._taken.items()}
        return dict(zip(self._names, self._session.run(self._names, given), strict=True))


def _find_dtype(name: str) -> str:
    """Return the type of an input of ONNX Runtime, such as `tensor(float)`, as in NumPy."""
    inner = name.removeprefix("tensor(").removesuffix(")")
    return _TYPES.get(inner, inner)


def _fit(array: NDArray[Any], dtype: str, rank: int) -> NDArray[Any]:
    """Return an array in the type and rank of an input; Keras too adds or drops a last dimension of 1."""
    if array.ndim == rank + 1:
        array = array[..., 0]
    elif array.ndim == rank - 1:
        array = array[..., np.newaxis]
    return np.ascontiguousarray(array, dtype)
