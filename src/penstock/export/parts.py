"""Files that exports with a pipeline in Python share: `pipeline.json`, `schema.json`, `model.json`.

In: a run. Out: the files, and what they say again, without Keras: pipeline, tasks, logits, temperatures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.export.manifest import read_export_json
from penstock.foundation.json_form import JsonValue
from penstock.foundation.json_text import write_json
from penstock.model.task import Task, find_tasks
from penstock.storage.atomic import AtomicFile
from penstock.training.run_files import check_facts, read_choices
from penstock.training.validation_choice import ValidationChoice
from penstock.transform.map import MapFunction
from penstock.transform.pipeline import Pipeline

if TYPE_CHECKING:
    from penstock.training.run import Run  # imports Keras

PIPELINE_NAME: Final = "pipeline.json"
SCHEMA_NAME: Final = "schema.json"
MODEL_NAME: Final = "model.json"


@dataclass(frozen=True)
class Parts:
    """What an export contains beside its model.

    Attributes:
        pipeline: Pipeline that makes the inputs of the model.
        tasks: Task of each target.
        logits: Whether the model returns logits, by target.
        choices: What was measured and chosen on the validation records, by target with classes.
        settings: `schema`, `plan` and `convert`, as in the settings of a run.
        model: Rest of `model.json`, which the format itself defines.
    """

    pipeline: Pipeline
    tasks: Mapping[str, Task]
    logits: Mapping[str, bool]
    choices: Mapping[str, ValidationChoice]
    settings: Mapping[str, Any]
    model: JsonValue

    @property
    def temperatures(self) -> dict[str, float]:
        """Temperature of the probabilities by target."""
        return {name: choice.temperature for name, choice in self.choices.items()}


def write_parts(run: Run, folder: Path, model: Mapping[str, Any] | None = None) -> None:
    """Write pipeline, schema, and how the outputs of the model are read.

    Args:
        run: The run; its settings have `schema` and `plan`, as far as they are known.
        folder: Folder to write to.
        model: What `model.json` is to contain about the model itself.

    Raises:
        WriteError: The disk is full, or fails.
    """
    run.pipeline.save(folder / PIPELINE_NAME)
    known = {name: run.settings[name] for name in ("schema", "plan") if run.settings.get(name)}
    converted = run.settings.get("convert")
    missing = converted.get("missing") if isinstance(converted, Mapping) else None
    _write(folder / SCHEMA_NAME, {**known, **({} if missing is None else {"missing": missing})})
    outputs = {
        "targets": {
            name: {"kind": task.kind, "labels": len(task.labels)} for name, task in run.tasks.items()
        },
        "logits": {name: bool(run.logits.get(name, False)) for name in run.tasks},
        "choices": {name: choice.to_json() for name, choice in run.choices.items()},
    }
    _write(folder / MODEL_NAME, {"outputs": outputs, "model": dict(model or {})})


def read_parts(folder: Path, functions: Mapping[str, MapFunction] | None = None) -> Parts:
    """Read what `write_parts` wrote.

    Raises:
        ExportError: A file is not valid.
        OptionError: A map of the pipeline has no function.
    """
    pipeline = Pipeline.load(folder / PIPELINE_NAME, functions)
    path = folder / MODEL_NAME
    root = read_export_json(path)
    outputs = root.child("outputs").object()
    check_facts(outputs, path)
    found = find_tasks(pipeline)
    tasks = {name: task.restored(outputs.get("targets", {}).get(name, {})) for name, task in found.items()}
    stored = read_export_json(folder / SCHEMA_NAME).object()
    settings = {name: stored[name] for name in ("schema", "plan") if stored.get(name)}
    if stored.get("missing") is not None:
        settings["convert"] = {"missing": stored["missing"]}
    logits = outputs.get("logits") or {}
    return Parts(pipeline, tasks, logits, read_choices(outputs, path), settings, root.child("model"))


def _write(path: Path, form: Mapping[str, Any]) -> None:
    with AtomicFile(path, overwrite=True) as file:
        file.write(write_json(form, 1).encode() + b"\n")
