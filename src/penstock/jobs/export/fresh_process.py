"""One side of a check: an export with a pipeline in Python, opened and asked in a process of its own.

In: `python -m penstock.jobs.export.fresh_process EXPORT ROWS [FILE:FUNCTION]`: the folders of the export and
of the stored rows, and a user's own model. Out: `answers.npz` in the folder of the rows: predictions by
target, and the inputs of the model.
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
from penstock.jobs.export.check_rows import CheckRows, load_rows
from penstock.jobs.model_file import load_model
from penstock.model.predictor import BatchPredictor
from penstock.transform.pipeline import Pipeline

ANSWERS: Final = "answers.npz"


def ask_model(
    predictor: BatchPredictor, pipeline: Pipeline, rows: CheckRows
) -> dict[str, list[NDArray[Any]]]:
    """Return the predictions of rows, one array per batch: `output/NAME` by target, `input/NAME` by input."""
    found: dict[str, list[NDArray[Any]]] = {}
    for _, inputs in rows.batches(pipeline):
        named = {f"input/{name}": each for name, each in inputs.items()}
        named |= {f"output/{name}": each for name, each in predictor(inputs).items()}
        for name, array in named.items():
            found.setdefault(name, []).append(np.asarray(array))
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
    inputs = opened.pipeline.without_targets()
    write_answers(folder / ANSWERS, ask_model(opened.predictor(), inputs, load_rows(folder, inputs)))


if __name__ == "__main__":
    main(*sys.argv[1:])
