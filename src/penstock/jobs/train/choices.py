"""What is chosen on validation before a run starts: how numbers are learned, and which inputs are used.

In: a training, or the `run.yaml` of a run that has started. Out: the training with what was chosen. A run
that has started keeps its choices, and refuses options that ask for others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from penstock.errors import StateError
from penstock.jobs.train.image_fields import IMAGE_OPTIONS
from penstock.jobs.train.input_parts import choose_parts
from penstock.jobs.train.number_targets import FitPipeline, choose_numbers, describe_choice
from penstock.training.run_files import CONFIG_NAME
from penstock.training.train import Training, is_compiled_by_owner

_CHOSEN: Final = ("target_scale", "number_loss", "parts")  # "auto" by default


def choose_on_trials(
    training: Training, fit: FitPipeline, given: Collection[str], *, has_pipeline: bool
) -> Training:
    """Return the training with what trials on validation prefer.

    First how numbers are learned, with the inputs that are not images; then, with these scales and losses,
    the parts of the inputs. So images are passed through few models.

    Args:
        training: The training before the choices.
        fit: Fits the pipeline again with settings of targets.
        given: Targets whose transform the user gave, so that their scale is not chosen.
        has_pipeline: Whether the user gave the pipeline, so that its inputs are not chosen.
    """
    if training.model is not None and is_compiled_by_owner(training.model):
        return training
    can_try = training.model is None
    chosen, choices = choose_numbers(training, fit, given=given, may_try=can_try)
    for name, choice in choices.items():
        if note := describe_choice(name, choice):
            training.watcher.note(note)
    chosen = replace(chosen, numbers={name: choice.to_json() for name, choice in choices.items()})
    if not can_try or has_pipeline:
        return chosen
    chosen, found = choose_parts(chosen)
    if found is None:
        return chosen
    if note := found.describe():
        training.watcher.note(note)
    return replace(chosen, parts=found.to_json())


def recall_losses(tables: Mapping[str, Any]) -> dict[str, str]:
    """Return the losses that a run chose for its targets of numbers, from its `run.yaml`."""
    numbers = read_table(read_table(tables, "facts"), "numbers")
    return {name: "huber" for name in numbers if read_table(numbers, name).get("loss") == "huber"}


def refuse_other_choices(folder: Path, known: Mapping[str, Any], choices: Mapping[str, Any]) -> None:
    """Refuse another scale or loss of numbers, other parts or other images, for a run that has started.

    Raises:
        StateError: An option differs from that of the run.
    """
    for name in (*_CHOSEN, *IMAGE_OPTIONS):
        stored = read_table(known, "train").get(name, "auto" if name in _CHOSEN else None)
        if _normalize(name, choices.get(name, stored)) != _normalize(name, stored):
            advice = "Resume with the value that the run was started with, or start a new run."
            path = folder / CONFIG_NAME
            expected = "no value" if stored is None else stored
            raise StateError(
                f"{name} of the run", path=path, expected=expected, got=choices[name], advice=advice
            )


def read_table(tables: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a table of `run.yaml`; empty if there is none."""
    table = tables.get(name, {})
    return table if isinstance(table, Mapping) else {}


def _normalize(name: str, value: Any) -> Any:
    """Return a size of images, or parts in any order, as JSON has them."""
    if name == "parts" and value not in ("auto", "all"):
        return [value] if isinstance(value, str) else sorted(value)
    return list(value) if isinstance(value, tuple) else [value, value] if isinstance(value, int) else value
