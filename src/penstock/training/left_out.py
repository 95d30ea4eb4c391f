"""Parts of the inputs that a run does not use, and why, as the table `facts` of `run.yaml` records them.

In: the content of `run.yaml`, of any version. Out: `LeftOutPart`s, for the run, evaluations, reports and the
viewer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from penstock.schema.field import Field
from penstock.settings.training import PARTS
from penstock.training.run_config import RunConfig
from penstock.training.run_facts import PartChoice

ADVICE: Final = "To use all inputs, train with `parts='all'`."
"""What to do about parts that are left out."""

_TABLE: Final = "table"


@dataclass(frozen=True)
class LeftOutPart:
    """A part of the inputs that a run does not use.

    Attributes:
        name: Name of the part: table, text, image, sequence or tensor.
        fields: Names of its fields.
        reason: Why it is left out, as a sentence; empty if the run does not record it.

    Example:
        ```python
        [(part.name, part.fields, part.reason) for part in ps.open_run("runs/pets").left_out]
        ```
    """

    name: str
    fields: tuple[str, ...]
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(self.fields)})" if self.fields else self.name


@dataclass(frozen=True)
class RecordedParts:
    """The record of a run about the parts of its inputs.

    Attributes:
        left_out: The parts that are left out.
        scores: Main scores of the short trials on validation, by target and by the parts that were used,
            joined by " + ".
    """

    left_out: tuple[LeftOutPart, ...] = ()
    scores: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)


def read_parts(config: RunConfig, fields: Mapping[str, Field] | None = None) -> RecordedParts:
    """Return the parts of the inputs as a run records them.

    `config`: content of `run.yaml`. `fields`: fields of the data, for runs whose parts were named by an
    option.
    """
    stored = config.facts.parts or PartChoice()
    scores: dict[str, dict[str, float | None]] = {}
    for parts, trial in stored.trials.items():
        for target, value in trial.scores.items():
            scores.setdefault(target, {})[parts] = value
    left_out = tuple(
        LeftOutPart(part, names, _find_reason(stored, part)) for part, names in stored.left_out.items()
    )
    return RecordedParts(left_out or _find_unnamed(config.train.parts, fields or {}), scores)


def find_left_out(config: RunConfig, fields: Mapping[str, Field] | None = None) -> tuple[LeftOutPart, ...]:
    """Return the parts of the inputs that a run left out; see `read_parts`."""
    return read_parts(config, fields).left_out


def find_unread(fields: Mapping[str, Field], read: Collection[str]) -> tuple[str, ...]:
    """Return the inputs of the data, and the fields without a role, that a model does not read.

    `read`: names of the fields that the pipeline of the model reads.
    """
    return tuple(
        name for name, each in fields.items() if each.role in ("input", "unused") and name not in read
    )


def describe_left_out(parts: Iterable[LeftOutPart]) -> list[str]:
    """Return one line for each part that is left out, with its reason, and then what to do.

    Example:
        >>> describe_left_out([LeftOutPart("text", ("note",), "The loss is lower without it.")])[0]
        'Not read by the model: text (note). The loss is lower without it.'
    """
    lines = [f"Not read by the model: {part}. {part.reason}".rstrip() for part in parts]
    return [*lines, ADVICE] if lines else []


def _find_reason(stored: PartChoice, part: str) -> str:
    """Return the recorded reason; without one, the losses of the trials, without a judgement."""
    if reason := stored.reasons.get(part, "").strip():
        return reason
    known = [f"{trial.loss:#.3g} with {name}" for name, trial in stored.trials.items()]
    return f"Short trials had these validation losses: {', '.join(known)}." if known else ""


def _find_unnamed(named: str | Sequence[str], fields: Mapping[str, Field]) -> tuple[LeftOutPart, ...]:
    """Return the parts that the option `parts` of a run does not name."""
    if isinstance(named, str):
        return ()
    found: dict[str, list[str]] = {}
    for name, each in fields.items():
        part = each.type_name if each.type_name in PARTS else _TABLE
        if each.role == "input" and part not in named:
            found.setdefault(part, []).append(name)
    reason = f"The option 'parts' names {', '.join(named)} alone."
    return tuple(LeftOutPart(part, tuple(found[part]), reason) for part in PARTS if part in found)
