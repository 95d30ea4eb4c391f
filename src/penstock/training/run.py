"""A run's folder: `run.yaml`, `pipeline.json`, `weights.safetensors`, `history.csv`, `state.json`.

In: the path of a run that has ended. Out: a `Run`: its model with the best weights, its pipeline, its tasks.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from penstock.errors import NoSuchPathError, NotPicklableError, OptionError, PenstockError, StateError
from penstock.foundation.json_text import write_json
from penstock.model.build import build_model
from penstock.model.match import check_model
from penstock.model.options import ModelOptions
from penstock.model.outputs import find_logits
from penstock.model.predictor import Predictor
from penstock.model.task import Task, find_tasks
from penstock.schema.schema import Schema
from penstock.storage.atomic import AtomicFile
from penstock.storage.paths import PathLike
from penstock.training.checkpoint import read_ending
from penstock.training.run_files import CONFIG_NAME, check_facts, read_history, read_run_config
from penstock.training.snapshot import copy_array, pair_weights
from penstock.training.tensorfile import read_tensors, write_tensors
from penstock.transform.map import MapFunction
from penstock.transform.pipeline import Pipeline

_log = logging.getLogger("penstock")

PIPELINE_NAME: Final = "pipeline.json"
WEIGHTS_NAME: Final = "weights.safetensors"
FIELDS_NAME: Final = "fields.json"
DATA_NAME: Final = "data"
_FINGERPRINT: Final = "pipeline"


@dataclass(frozen=True)
class Run:
    """A training run that has ended.

    Attributes:
        folder: Where it is.
        model: The Keras model, with the weights of the best epoch.
        pipeline: What turns records into its inputs.
        tasks: What it predicts, by target.
        logits: By target, whether the model gives logits rather than probabilities.
        history: What each epoch came to.
        settings: What `run.yaml` says.

    Example:
        ```python
        run = ps.train(pets, out="runs/pets", epochs=5)
        run.model.summary()
        run.history[-1]["val_loss"]
        ```
    """

    folder: Path
    model: Any
    pipeline: Pipeline
    tasks: Mapping[str, Task]
    logits: Mapping[str, bool]
    history: list[dict[str, float]]
    settings: Mapping[str, Any]

    @property
    def data(self) -> Path | list[Path]:
        """The path of the data set that it was trained on; several, of files that are none."""
        return find_data(self.folder, self.settings)

    def predictor(self) -> Predictor:
        """Return what predicts with the model."""
        return Predictor(self.model, self.pipeline, self.tasks, self.logits)

    def __reduce__(self) -> tuple[Any, ...]:
        given = [] if isinstance(self.settings.get("model"), Mapping) else ["model=…"]
        given += ["functions={…}"] if self.pipeline.maps else []
        if given:
            code = "model" if "model=…" in given else "functions of the pipeline"
            raise NotPicklableError(
                f"the {code} of the run cannot be pickled or copied: no code is stored",
                path=self.folder,
                advice="Send the path of its folder, and open it there: "
                f"ps.open_run({str(self.folder)!r}, {', '.join(given)}).",
            )
        folder = self.folder.resolve()
        return _reopen, (str(folder), read_ending(folder)[1])

    def __repr__(self) -> str:
        targets = ", ".join(f"{task.name}: {task.describe()}" for task in self.tasks.values())
        return f"Run({str(self.folder)!r}, {len(self.history)} epochs, {targets})"


def find_data(folder: Path, settings: Mapping[str, Any]) -> Path | list[Path]:
    """Return where the data of a run is, by its settings: a path, or those of several files."""
    told = settings.get("data", DATA_NAME)
    paths = [folder / each for each in (told if isinstance(told, list) else [told])]
    return paths if isinstance(told, list) else paths[0]


def open_run(path: PathLike, model: Any = None, functions: Mapping[str, MapFunction] | None = None) -> Run:
    """Open a run: rebuild its model, and load its weights.

    Args:
        path: Its folder.
        model: The model, of a run that was given one: weights hold no code, and none is run.
        functions: The functions of its pipeline's maps, by name.

    Raises:
        NoSuchPathError: There is no run.
        StateError: It has not come to its end, or its files are not of one run.
        OptionError: The model is not given, or does not fit.

    Example:
        ```python
        run = ps.open_run("runs/pets")
        run.predictor()({"age": np.array([0.5, -1.0], np.float32)})  # by target, for batches of your own
        ```
    """
    folder = Path(path)
    if not (folder / CONFIG_NAME).is_file():
        advice = "Name the folder that 'penstock train --out' wrote."
        raise NoSuchPathError(f"holds no run (there is no {CONFIG_NAME})", path=folder, advice=advice)
    settings = {**read_run_config(folder / CONFIG_NAME), **_read_fields(folder)}
    pipeline = Pipeline.load(folder / PIPELINE_NAME, functions)
    facts = settings.get("facts", {})
    check_facts(facts, folder / CONFIG_NAME)
    tasks = {name: _recall_task(task, facts) for name, task in find_tasks(pipeline).items()}
    if model is None:
        model = _rebuild(folder, settings, pipeline)
    else:
        check_model(model, pipeline, tasks)
    load_weights(folder, model, pipeline)
    logits = facts.get("logits") or find_logits(model, tasks, pipeline)
    return Run(folder, model, pipeline, tasks, logits, read_history(folder), settings)


def _reopen(folder: str, digest: str | None) -> Run:
    """Open a run that was pickled, if its weights are still the same."""
    found = read_ending(Path(folder))[1]
    if found != digest:
        raise StateError(
            "SHA-256 of the weights",
            path=folder,
            expected=f"{digest}, as when the run was pickled",
            got=found,
            advice="The run was trained again since. Open it again: ps.open_run(…).",
        )
    return open_run(folder)


def save_fields(folder: Path, schema: Schema, plan: Mapping[str, Any] | None) -> None:
    """Write what the fields of the data are and how columns became them, for rows that come raw.

    Raises:
        WriteError: The disk is full, or fails.
    """
    text = write_json({"schema": schema.to_json(), "plan": plan}, 1)
    with AtomicFile(folder / FIELDS_NAME, overwrite=True) as file:
        file.write(text.encode() + b"\n")


def _read_fields(folder: Path) -> dict[str, Any]:
    try:
        form = json.loads((folder / FIELDS_NAME).read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise StateError("fields of the run", path=folder / FIELDS_NAME, expected="JSON", got=error) from None
    return {name: form[name] for name in ("schema", "plan") if isinstance(form, dict) and form.get(name)}


def save_weights(folder: Path, model: Any, pipeline: Pipeline) -> str:
    """Write the weights of a model, with what tells the pipeline that they belong to; return their SHA-256.

    Raises:
        WriteError: The disk is full, or fails.
    """
    arrays = {f"{number}": copy_array(weight) for number, weight in enumerate(model.weights)}
    paths = {f"path {number}": str(weight.path) for number, weight in enumerate(model.weights)}
    return write_tensors(folder / WEIGHTS_NAME, arrays, {_FINGERPRINT: pipeline.fingerprint(), **paths})


def load_weights(folder: Path, model: Any, pipeline: Pipeline) -> None:
    """Give a model the weights of a run.

    Raises:
        StateError: There are none, or they are those of another pipeline or model.
    """
    path = folder / WEIGHTS_NAME
    if not path.is_file():
        raise _unfinished(folder)
    status, digest = read_ending(folder)
    if status == "running":
        raise _unfinished(folder)
    if status == "failed":
        _log.warning("%s: the run failed; its weights are the last ones before that", folder)
    arrays, texts = read_tensors(path, digest)
    if texts.get(_FINGERPRINT) != pipeline.fingerprint():
        raise StateError(
            f"{PIPELINE_NAME} beside these weights",
            path=path,
            expected=f"the pipeline {str(texts.get(_FINGERPRINT))[:12]}…, which they were trained with",
            got=f"{pipeline.fingerprint()[:12]}…",
            advice="Scales and vocabularies of another data set make nonsense of the inputs: take its own.",
        )
    weights = list(model.weights)
    names = [texts.get(f"path {number}", "") for number in range(len(arrays))]
    if list(arrays) != [f"{number}" for number in range(len(arrays))]:
        raise _misfit(path, "names of arrays", f"0 to {len(arrays) - 1}", "others")
    for number, weight in zip(
        pair_weights(names, [str(each.path) for each in weights], path), weights, strict=True
    ):
        array = arrays[f"{number}"]
        if tuple(weight.shape) != array.shape:
            what = f"shape of weight {number}, {texts.get(f'path {number}')!r}"
            raise _misfit(path, what, array.shape, tuple(weight.shape))
        weight.assign(array)


def _recall_task(task: Task, facts: Mapping[str, Any]) -> Task:
    """Return a task as the loss of a model of one's own meant it: numbers may have been classes."""
    known = facts.get("targets", {}).get(task.name, {})
    if task.kind != "regression" or known.get("kind") != "multiclass":
        return task
    return replace(task, kind="multiclass", labels=tuple(range(int(known["labels"]))))


def _rebuild(folder: Path, settings: Mapping[str, Any], pipeline: Pipeline) -> Any:
    form = settings.get("model")
    if not isinstance(form, Mapping):
        raise OptionError(
            "model of the run",
            path=folder / CONFIG_NAME,
            expected="the model that it was trained with",
            got="none",
            advice="Give it: open_run(…, model=…), evaluate(…, model=…), or --model FILE.py:FUNCTION.",
        )
    try:
        # Its weights come from the run: a file that they began with may be gone.
        options = ModelOptions.from_json({**form, "image_weights": None})
    except PenstockError as error:
        error.path = str(folder / CONFIG_NAME)
        raise
    return build_model(pipeline.schema, pipeline, options)


def _unfinished(folder: Path) -> StateError:
    advice = f"Let it come to its end: penstock train --resume --out {folder}."
    return StateError(
        "run", path=folder, expected="one that has ended", got="one that has not", advice=advice
    )


def _misfit(path: Path, what: str, expected: object, got: object) -> StateError:
    advice = "The model is another one than that of the run."
    return StateError(what, path=path, expected=expected, got=got, advice=advice)
