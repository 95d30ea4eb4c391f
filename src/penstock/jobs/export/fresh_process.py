"""One side of a check: an export with a pipeline in Python, opened and called in a separate process.

In: `python -m penstock.jobs.export.fresh_process EXPORT ROWS [FILE:FUNCTION]`: the folders of the export and
of the stored rows, and a user's own model. Out: `answers.npz` in the folder of the rows: predictions by
target, the inputs of the model, and what the pipeline makes of images of every kind.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.export.manifest import open_export
from penstock.jobs.export.check_rows import IMAGES, open_rows
from penstock.jobs.model_file import load_model
from penstock.model.batch_predictor import BatchPredictor
from penstock.transform.image import Image
from penstock.transform.pipeline import Pipeline, without_targets

ANSWERS: Final = "answers.npz"


def ask_model(predictor: BatchPredictor, pipeline: Pipeline, folder: Path) -> dict[str, list[NDArray[Any]]]:
    """Return what a pipeline without targets and its model make of stored rows, one array per batch.

    Predictions are `output/NAME`, by target; inputs of the model `input/NAME`; and inputs made of the files
    of every kind `image/NAME`.
    """
    found: dict[str, list[NDArray[Any]]] = {}

    def add(kind: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        for name, array in arrays.items():
            found.setdefault(f"{kind}/{name}", []).append(np.asarray(array))

    for _, inputs in open_rows(folder, pipeline).batches(pipeline):
        add("input", inputs)
        add("output", predictor(inputs))
    if (folder / IMAGES).exists():
        for _, inputs in open_rows(folder, pipeline, IMAGES).batches(pipeline):
            images = (name for name in inputs if isinstance(pipeline.transforms.get(name), Image))
            add("image", {name: inputs[name] for name in images})
    return found


def write_answers(path: Path, answers: Mapping[str, list[NDArray[Any]]]) -> None:
    """Write arrays by name and batch."""
    arrays = {f"{number}/{name}": each for name, all_ in answers.items() for number, each in enumerate(all_)}
    np.savez(path, **arrays)  # type: ignore[arg-type]


def read_answers(path: Path) -> dict[str, list[NDArray[Any]]]:
    """Return what `write_answers` wrote."""
    found: dict[str, list[NDArray[Any]]] = {}
    with np.load(path) as stored:
        for key in sorted(stored, key=lambda each: int(each.partition("/")[0])):
            found.setdefault(key.partition("/")[2], []).append(stored[key])
    return found


def main(export: str, rows: str, model_file: str | None = None) -> None:
    """Open an export, predict the rows, and write the answers."""
    folder = Path(rows)
    opened = open_export(Path(export), None if model_file is None else partial(load_model, model_file))
    inputs = without_targets(opened.pipeline)
    write_answers(folder / ANSWERS, ask_model(opened.predictor(), inputs, folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
