"""The choices before a new run: how numbers are learned, and which inputs are used, by trials on validation.

In: a plan, and an object that fits its pipeline again. Out: the plan with the choices, and notes. A run that
has started keeps its choices: they are read from its `run.yaml`, and options that ask for others are refused.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from penstock.errors import StateError
from penstock.settings.training import TrainOptions
from penstock.training.assembly import is_compiled_by_owner
from penstock.training.progress import Watcher
from penstock.training.run_config import RunConfig
from penstock.training.run_files import CONFIG_NAME
from penstock.training.train_plan import Chosen, TrainPlan
from penstock.transform.class_codes import describe_classes
from penstock.transform.pipeline import Pipeline
from penstock.tuning.input_parts import choose_parts
from penstock.tuning.number_targets import choose_numbers, describe_choice
from penstock.tuning.pipeline_fitter import IMAGE_OPTIONS, PipelineFitter, note_augmentation
from penstock.tuning.repeated_texts import note_repeated_texts

_log = logging.getLogger("penstock")


@dataclass
class Tuner:
    """Chooses by short trials before a run starts.

    Attributes:
        folder: Folder of the run, which trials may begin.
        watcher: Object that is notified of progress. After the choices, it is the watcher of the run: one
            that a trial of the run itself has notified shows no note twice.
        fitter: Fits the pipeline again; None where the user gave the pipeline, whose inputs and scales are
            then not chosen.
        can_fit: Whether the run itself may be trained to choose: in this process, without callbacks.
    """

    folder: Path
    watcher: Watcher
    fitter: PipelineFitter | None = None
    can_fit: bool = True

    def choose(self, plan: TrainPlan) -> TrainPlan:
        """Return the plan with what trials on validation prefer.

        First how numbers are learned, with the inputs that are not images; then, with these scales and
        losses, the parts of the inputs.
        """
        for note in self._list_notes(plan):
            self.watcher.note(note)
        if plan.model is not None and is_compiled_by_owner(plan.model):
            return replace(plan, chosen=Chosen())
        begun = time.monotonic()
        tuned, choices = choose_numbers(plan, self.fitter, self.watcher)
        for name, choice in choices.items():
            if note := describe_choice(name, choice):
                self.watcher.note(note)
        tuned = replace(tuned, chosen=Chosen(choices, seconds=time.monotonic() - begun))
        if plan.model is not None or self.fitter is None:
            return tuned
        return self._choose_parts(tuned)

    def _choose_parts(self, plan: TrainPlan) -> TrainPlan:
        found = choose_parts(plan, self.folder, self.watcher, can_fit=self.can_fit)
        if found is None:
            return plan
        if note := found.choice.describe():
            _log.warning("%s", note)
        self.watcher = found.watcher
        return found.plan

    def _list_notes(self, plan: TrainPlan) -> Iterator[str]:
        """Yield notes about the data before the run."""
        yield from note_repeated_texts(plan.data, plan.pipeline)
        yield from _note_classes(plan.pipeline)
        if self.fitter is not None:
            yield from note_augmentation(plan.pipeline, self.fitter.fields, plan.options)


def _note_classes(pipeline: Pipeline) -> Iterator[str]:
    """Yield the codes of the classes of each target whose classes are numbers, but not their own codes."""
    for name, classes in pipeline.classes.items():
        if isinstance(classes[0], int) and classes != tuple(range(len(classes))):
            yield f"Codes of the classes of {name!r}: {describe_classes(classes)}."


_CHOSEN: Final = ("target_scale", "number_loss", "parts")  # "auto" by default


def recall_choices(config: RunConfig) -> Chosen:
    """Return the choices of a run before it started, from its `run.yaml`."""
    facts = config.facts
    return Chosen(facts.numbers, facts.parts, 0.0 if facts.seconds is None else facts.seconds.trials)


def recall_losses(config: RunConfig) -> dict[str, str]:
    """Return the losses that a run chose for its targets of numbers, from its `run.yaml`."""
    return {name: each.loss for name, each in config.facts.numbers.items() if each.loss == "huber"}


def refuse_other_choices(folder: Path, known: RunConfig, options: TrainOptions) -> None:
    """Refuse another scale or loss of numbers, other parts or other images, for a run that has started."""
    for name in (*_CHOSEN, *IMAGE_OPTIONS):
        stored = getattr(known.train, name)
        given = getattr(options, name) if name in options.given else stored
        if _normalize(name, given) != _normalize(name, stored):
            advice = "Resume with the value that the run was started with, or start a new run."
            path = folder / CONFIG_NAME
            expected = "no value" if stored is None else stored
            raise StateError(f"{name} of the run", path=path, expected=expected, got=given, advice=advice)


def _normalize(name: str, value: Any) -> Any:
    """Return a size of images, or parts in any order, as JSON has them."""
    if name == "parts" and value not in ("auto", "all"):
        return [value] if isinstance(value, str) else sorted(value)
    return list(value) if isinstance(value, tuple) else [value, value] if isinstance(value, int) else value
