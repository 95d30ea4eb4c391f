"""Choices before the start of a run: it keeps them, and refuses options that ask for others.

In: the content of its `run.yaml`. Out: the choices.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from penstock.errors import StateError
from penstock.settings.training import TrainOptions
from penstock.training.run_config import RunConfig
from penstock.training.run_files import CONFIG_NAME
from penstock.training.train_plan import Chosen
from penstock.tuning.image_fields import IMAGE_OPTIONS

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
