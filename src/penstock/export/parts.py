"""Files that exports with a pipeline in Python share: `pipeline.json`, `schema.json`, `model.json`.

In: a run. Out: the files, and their content again, without Keras: pipeline, tasks, logits, temperatures.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from penstock.export.manifest import read_export_json
from penstock.foundation.json_form import JsonValue
from penstock.foundation.json_text import write_json
from penstock.model.task import Task, find_tasks
from penstock.settings.groups import TextFiles
from penstock.storage.atomic import AtomicFile
from penstock.training.batch_fault import (
    REVISION,
    describe_export_fault,
    find_batch_fault,
    find_export_fault,
)
from penstock.training.recorded_data import RecordedData
from penstock.training.run import Run
from penstock.training.run_facts import RunFacts, TargetFacts
from penstock.training.validation_choice import ValidationChoice
from penstock.transform.map import MapFunction
from penstock.transform.pipeline import Pipeline

_log = logging.getLogger("penstock")

PIPELINE_NAME: Final = "pipeline.json"
SCHEMA_NAME: Final = "schema.json"
MODEL_NAME: Final = "model.json"


@dataclass(frozen=True)
class Parts:
    """Content of an export except its model.

    `choices` are measurements and choices on the validation records, by target with classes. `model` is the
    rest of `model.json`, which the format itself defines.
    """

    pipeline: Pipeline
    tasks: Mapping[str, Task]
    logits: Mapping[str, bool]
    choices: Mapping[str, ValidationChoice]
    recorded: RecordedData
    model: JsonValue

    @property
    def temperatures(self) -> dict[str, float]:
        """Temperature of the probabilities by target."""
        return {name: choice.temperature for name, choice in self.choices.items()}


def write_parts(run: Run, folder: Path, model: Mapping[str, Any] | None = None) -> None:
    """Write pipeline, schema, and how the outputs of the model are read.

    `run`: the run, with all that is known about its data. `model`: what `model.json` is to contain about the
    model itself.
    """
    run.pipeline.save(folder / PIPELINE_NAME)
    tasks = list(run.tasks.values())
    reading = run.recorded.reading
    missing = {"missing": list(reading.missing)} if "missing" in reading.given else {}
    _write(folder / SCHEMA_NAME, run.recorded.to_json() | missing)
    outputs = RunFacts(
        targets={name: TargetFacts(task.kind, len(task.labels)) for name, task in run.tasks.items()},
        logits={name: bool(run.logits.get(name, False)) for name in run.tasks},
        choices=run.choices,
        revision=None if find_batch_fault(run.config, run.pipeline, tasks) else REVISION,
    )
    _write(folder / MODEL_NAME, {"outputs": outputs.to_json(), "model": dict(model or {})})


def read_parts(folder: Path, functions: Mapping[str, MapFunction] | None = None) -> Parts:
    """Read what `write_parts` wrote."""
    pipeline = Pipeline.load(folder / PIPELINE_NAME, functions)
    path = folder / MODEL_NAME
    root = read_export_json(path)
    outputs = RunFacts.from_json(root.child("outputs"))
    tasks = outputs.restore_tasks(find_tasks(pipeline))
    if find_export_fault(outputs, pipeline, tasks.values()):
        _log.warning("%s", describe_export_fault(folder))
    stored = read_export_json(folder / SCHEMA_NAME)
    reading, missing = TextFiles(), stored.child("missing")
    if missing.value is not None:
        reading = TextFiles(missing=tuple(each.text() for each in missing.elements()))
    recorded = RecordedData.from_json(stored, reading)
    return Parts(pipeline, tasks, outputs.logits, outputs.choices, recorded, root.child("model"))


def _write(path: Path, form: Mapping[str, Any]) -> None:
    with AtomicFile(path, overwrite=True) as file:
        file.write(write_json(form, 1).encode() + b"\n")
