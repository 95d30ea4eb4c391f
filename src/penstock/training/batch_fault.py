"""Runs and exports of versions in which predictions from texts depended on the size of the batch.

In: the tables of a run, or an export without Penstock's revision. Out: a warning that names the remedy. On
TensorFlow, Keras added the words of record i to member i of every record in batches with as many records as
the ensemble has members, while a model was trained, calibrated, and tried for the choice of its inputs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from penstock.model.presets import fill_in_preset
from penstock.model.task import Task
from penstock.storage.store_path import AnyPath
from penstock.training.left_out import LeftOutPart, read_parts
from penstock.training.run_config import RunConfig, StoredModel
from penstock.training.run_facts import HELD_OUT, RunFacts
from penstock.training.run_files import DATA_NAME, read_config
from penstock.transform.pipeline import Pipeline
from penstock.transform.text import Tokenize

REVISION: Final = 2
"""Revision of what models compute, `revision` in the facts of a run: 2 since predictions do not depend
on the batch size."""

BatchFault: TypeAlias = Literal["", "choices", "held_out", "weights", "inputs"]
"""The fault of a run: none; choices on validation; such choices on records that this version does
not hold out; or also the weights; or the choice of the inputs, which leaves some out."""


def find_batch_fault(config: RunConfig, pipeline: Pipeline, tasks: Iterable[Task]) -> BatchFault:
    """Return the fault of a run that an earlier version trained."""
    facts = config.facts
    if facts == RunFacts() or facts.revision is not None or not isinstance(config.model, StoredModel):
        return ""
    options = fill_in_preset(config.model.rebuild())
    members, left_out, given = options.members or 1, read_parts(config).left_out, list(tasks)
    is_affected = options.text == "ngrams" and members > 1 and _adds_words(pipeline, given, left_out)
    if not is_affected or facts.backend not in ("", "tensorflow"):
        return ""
    if left_out:  # in trials without images, batches are smaller than in the run
        return "inputs"
    if facts.batch_size == members:
        return "weights"
    if not _has_choices(facts, given):
        return ""
    return "held_out" if facts.validation == HELD_OUT else "choices"


def keep_revision(config: RunConfig, path: Path) -> RunConfig:
    """Return the content of `run.yaml` of a run that continues.

    It has no revision if an earlier version began the run.

    `path`: the `run.yaml` that was written when the run began; it may not exist.
    """
    begun = read_config(path).facts if path.is_file() else RunFacts()
    if begun == RunFacts() or begun.revision is not None:
        return config
    return replace(config, facts=replace(config.facts, revision=None))


def find_export_fault(outputs: RunFacts, pipeline: Pipeline, tasks: Iterable[Task]) -> BatchFault:
    """Return the possible fault in an export of such a run; `outputs` is the table of `model.json`."""
    given = list(tasks)
    has_choices = outputs.revision is None and _has_choices(outputs, given)
    return "choices" if has_choices and _adds_words(pipeline, given) else ""


def describe_batch_fault(fault: BatchFault, folder: AnyPath, config: RunConfig) -> str:
    """Return a warning on a run."""
    if fault == "inputs":
        parts = "; ".join(map(str, read_parts(config).left_out))
        return (
            f"{folder}: an earlier version of Penstock left out inputs of this run, {parts}, after short "
            "trials that predicted some batches of texts wrongly. Train it again, in a new folder, without "
            f"the settings of the run: {_name_training(folder, config)}."
        )
    if fault == "weights":
        return (
            f"{folder}: an earlier version of Penstock trained this run on batches of as many records as its "
            "model has members, and added the words of a text to the wrong records. Train it again, in a new "
            f"folder: penstock train --config {folder}/run.yaml --out NEW."
        )
    if fault == "held_out":
        return (
            f"{folder}: an earlier version of Penstock made this run. It predicted some batches of texts "
            "wrongly when it chose temperatures, thresholds and inputs on records that it held out. Train it "
            f"again, in a new folder: penstock train --config {folder}/run.yaml --out NEW."
        )
    return (
        f"{folder}: an earlier version of Penstock made this run. It predicted some batches of texts wrongly "
        "when it chose temperatures, thresholds and inputs on validation. Calibrate it again: penstock train "
        f"--resume --out {folder}, in Python ps.train(None, out={str(folder)!r}, resume=True)."
    )


def describe_export_fault(folder: AnyPath) -> str:
    """Return a warning on an export."""
    return (
        f"{folder}: exported by an earlier version of Penstock. It predicted some batches of texts wrongly "
        "when it chose temperatures and thresholds. Calibrate the run again (penstock train --resume --out "
        "RUN), and export it again."
    )


def _name_training(folder: AnyPath, config: RunConfig) -> str:
    """Return the command that trains on the data of a run; settings of its fields would drop inputs again."""
    data, target = config.data, config.target
    given = "DATA" if not isinstance(data, str) else f"{folder}/{data}" if data == DATA_NAME else data
    names = ",".join([target] if isinstance(target, str) else target or ())
    if not names:
        return f"penstock train {given} --out NEW"
    return f"penstock train {given} --target {names} --out NEW"


def _has_choices(facts: RunFacts, tasks: Iterable[Task]) -> bool:
    """Return whether a temperature or a threshold was chosen for a target with one output per member.

    Numbers have neither, and nothing is chosen without validation.
    """
    return any(task.units == 1 and task.name in facts.choices for task in tasks)


def _adds_words(pipeline: Pipeline, tasks: Iterable[Task], left_out: Iterable[LeftOutPart] = ()) -> bool:
    """Return whether a model, or a trial of parts that are left out, adds words to one output per member."""
    texts = [each for each in pipeline.transforms.values() if isinstance(each, Tokenize)]
    has_words = any(each.output == "index" for each in texts) or any(each.name == "text" for each in left_out)
    return has_words and any(task.units == 1 for task in tasks)
