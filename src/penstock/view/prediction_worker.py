"""The process that predicts a split of a run for the viewer: `python -m penstock.view.prediction_worker`.

In: the folder of a run, the name of a split, an output folder, a model or "", and the paths of the data. Out:
the arrays that `predictions.load_outcome` reads, and one line of JSON on stdout for each step of progress, or
an error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import PenstockError
from penstock.foundation.keras_backend import importing_keras
from penstock.jobs.given_dataset import open_as_trained
from penstock.jobs.model_file import load_model
from penstock.model.task import Task
from penstock.score.evaluation_batches import fit_batch_size
from penstock.score.mistakes import plain_label
from penstock.score.scores import compute_losses, predict_codes
from penstock.score.split_predictions import SplitPredictions, predict_split
from penstock.settings.prediction import EvaluateOptions
from penstock.training.run import open_run
from penstock.view.predictions import ARRAYS, DESCRIPTION_NAME, ROWS_NAME


def main(argv: Sequence[str]) -> int:
    """Predict, write the arrays, and return the exit status."""
    run, split, out, model, *paths = argv
    try:
        predict(Path(run), split, Path(out), paths, model)
    except PenstockError as error:
        _say({"error": describe_error(error)})
        return 1
    except OSError as error:
        _say({"error": {"what": str(error)}})
        return 1
    return 0


def describe_error(error: PenstockError) -> dict[str, str | int | None]:
    """Return the parts of an error, from which the viewer makes the same error."""
    parts = {name: getattr(error, name) for name in ("what", "path", "field", "expected", "got", "advice")}
    texts = {name: None if value is None else str(value) for name, value in parts.items()}
    return {**texts, "record": error.record, "offset": error.offset}


def predict(folder: Path, split: str, out: Path, paths: Sequence[str], model: str = "") -> None:
    """Predict a split of the data at `paths` with a run, and write the arrays.

    `model`: function that builds the user's own model, as `FILE:FUNCTION`; "" for a model that was built.
    """
    with importing_keras("predictions"):
        import penstock.training.run_model  # noqa: F401, PLC0415 - imports Keras

    run = open_run(folder, partial(load_model, model) if model else None)
    chosen = open_as_trained(list(paths), run.pipeline.schema, "collect")[split]
    options = EvaluateOptions(batch_size=fit_batch_size(run.pipeline))
    judged = predict_split(
        run.predictor(),
        run.pipeline,
        run.tasks,
        chosen.as_source(),
        options,
        lambda _, done, total: _say({"done": done, "total": total}),
    )
    write_outcome(out, run.tasks, judged)


def write_outcome(out: Path, tasks: Mapping[str, Task], judged: SplitPredictions) -> None:
    """Write the predictions of a split; the description is written last."""
    np.save(out / ROWS_NAME, judged.rows)
    described = []
    for number, (name, task) in enumerate(tasks.items()):
        truth, predicted = judged.truths[name], judged.predictions[name]
        losses = compute_losses(task, truth, predicted)
        if task.kind == "regression":
            codes, probabilities, wrong = predicted, np.full(len(truth), np.nan), losses > 0
        else:
            codes = predict_codes(task, predicted)
            wrong = (codes != truth).reshape(len(truth), -1).any(axis=1)
            probabilities = _find_probabilities(task, predicted, codes)
        arrays = (truth, codes, probabilities.astype(np.float32), losses.astype(np.float32), wrong)
        for array, key in zip(arrays, ARRAYS, strict=True):
            np.save(out / f"{number}-{key}.npy", array)
        described.append(
            {
                "name": name,
                "kind": task.kind,
                "labels": [plain_label(label) for label in task.labels],
                "unit": task.unit,
            }
        )
    (out / DESCRIPTION_NAME).write_text(json.dumps({"targets": described}))


def _find_probabilities(task: Task, predicted: NDArray[Any], codes: NDArray[Any]) -> NDArray[Any]:
    if task.kind == "multiclass":
        return np.take_along_axis(predicted, codes[:, None], axis=1)[:, 0]
    if task.kind == "binary":
        return np.asarray(np.where(codes > 0, predicted, 1 - predicted))
    return np.full(len(predicted), np.nan)


def _say(message: Mapping[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
