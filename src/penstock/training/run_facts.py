"""The table `facts` of `run.yaml`: results of a run, which another run with its settings does not take over.

In: the parsed table, of any version. Out: `RunFacts`, and the table again; every fault has its path. The
annotation of an attribute is the check of its entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache, partial
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args, get_origin, get_type_hints

from penstock.foundation.json_form import JsonValue, list_of
from penstock.model.task import Kind, Task
from penstock.settings.kinds import Count, NotNegative, UnexpectedError, Whole, find_kind
from penstock.settings.kinds import Kind as ValueKind
from penstock.training.validation_choice import ValidationChoice

ScoreTable: TypeAlias = Mapping[str, Mapping[str, float | None]]
"""Scores by target and name; None where a score is not defined."""

HELD_OUT: Final = "held out of train"
"""Value of `validation` where a share of the train split is held out for validation."""

MOST_LABELS: Final = 1_000_000
"""Maximum number of labels of a target; more is taken for a damaged file."""


Scale: TypeAlias = Literal["linear", "log"]
NumberLoss: TypeAlias = Literal["squared", "huber"]


@dataclass(frozen=True)
class TargetFacts:
    """Results of a run about a target.

    Attributes:
        kind: Kind of the task.
        labels: Number of labels; 0 for numbers.
    """

    kind: Kind
    labels: int

    @classmethod
    def from_json(cls, table: JsonValue) -> TargetFacts:
        """Return the facts of their JSON form."""
        kind: Kind = table.child("kind").choice(get_args(Kind))
        return cls(kind, table.child("labels").integer(0 if kind == "regression" else 1, MOST_LABELS))


@dataclass(frozen=True)
class NumberChoice:
    """How a target of numbers is learned.

    Attributes:
        scale: "linear" or "log".
        loss: "squared" or "huber".
        trials: Errors on validation in each trial, `rmse` and `mae`, by scale and loss; empty if there was
            none.
    """

    scale: Scale = "linear"
    loss: NumberLoss = "squared"
    trials: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class PartTrial:
    """Results of a trial with some parts.

    Attributes:
        loss: Mean loss of the validation records.
        scores: Main score of each target on these records: AUC, accuracy or R².
    """

    loss: float
    scores: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class PartChoice:
    """Which parts of the inputs are used.

    Attributes:
        used: Names of the parts that are used.
        left_out: Fields of the parts that are left out, by part.
        trials: Trials by the names of their parts, joined by " + ".
        exchanged: Loss of the model with all parts where each record has one part of another record, by part.
        reasons: Why a part is left out, as a sentence, by part.
    """

    used: tuple[str, ...] = ()
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    trials: Mapping[str, PartTrial] = field(default_factory=dict)
    exchanged: Mapping[str, float] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

    def describe(self) -> str:
        """Return a warning of the parts that are left out; empty if all are used."""
        if not self.left_out:
            return ""
        parts = [
            f"{part} ({', '.join(names)}). {self.reasons.get(part, 'No reason was recorded.')}"
            for part, names in self.left_out.items()
        ]
        return f"Not used as input: {' '.join(parts)} To use all inputs: `parts='all'`."


@dataclass(frozen=True)
class Stage:
    """One stage of a run that fine-tunes a pretrained encoder.

    Attributes:
        trained: "head" for all layers but the encoder, or "all".
        epochs: Maximum number of epochs.
        learning_rate: Maximum learning rate.
    """

    trained: Literal["head", "all"]
    epochs: Whole
    learning_rate: NotNegative


@dataclass(frozen=True)
class RunSeconds:
    """How long a run took.

    Attributes:
        trials: Seconds of the short trials, which choose inputs and losses.
        training: Seconds of the training; None before its end.
    """

    trials: NotNegative = 0.0
    training: NotNegative | None = None


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """Results of a run; runs of earlier versions lack some.

    Attributes:
        revision: Revision of what models compute; None for earlier versions.
        keras: Version of Keras; empty until the model is built.
        backend: Backend of Keras.
        batch_size: Number of records per step.
        steps_per_epoch: Number of steps of an epoch.
        targets: Kind of the task and number of labels of each target.
        logits: Whether the model returns logits rather than probabilities, by target.
        class_weights: Weights of the classes, by target whose classes are weighted.
        numbers: How targets of numbers are learned, by target.
        parts: Which parts of the inputs are used; None if there was no choice.
        stages: Stages of a run that fine-tunes; empty for a single one.
        seconds: How long the run took; None if it is not stored.
        validation: Name of the split for validation, `HELD_OUT`, or None without validation.
        pipeline: Fingerprint of the pipeline.
        choices: Measurements and choices on the validation records, by target with classes.
        records: Number of records that a cross-validation predicted.
        scores: Scores of the members of an ensemble, or of folds, by their name.
        mean: Mean of each score over the folds.
        deviation: Standard deviation of each score over the folds.
    """

    revision: Count | None = None
    keras: str = ""
    backend: str = ""
    batch_size: Count | None = None
    steps_per_epoch: Whole | None = None
    targets: Mapping[str, TargetFacts] = field(default_factory=dict)
    logits: Mapping[str, bool] = field(default_factory=dict)
    class_weights: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    numbers: Mapping[str, NumberChoice] = field(default_factory=dict)
    parts: PartChoice | None = None
    stages: tuple[Stage, ...] = ()
    seconds: RunSeconds | None = None
    validation: str | None = None
    pipeline: str = ""
    choices: Mapping[str, ValidationChoice] = field(default_factory=dict)
    records: Whole | None = None
    scores: Mapping[str, ScoreTable] = field(default_factory=dict)
    mean: ScoreTable = field(default_factory=dict)
    deviation: ScoreTable = field(default_factory=dict)

    @classmethod
    def from_json(cls, table: JsonValue) -> RunFacts:
        """Return the facts of a table.

        Raises:
            SchemaError: A key is unknown, or a value has the wrong type or is out of range.
        """
        return cls(**_read_attributes(table, cls))

    def restore_tasks(self, tasks: Mapping[str, Task]) -> dict[str, Task]:
        """Return tasks as a user's own loss defined them."""
        found = dict(tasks)
        for name, each in self.targets.items():
            if name in found:
                found[name] = found[name].restored(each.kind, each.labels)
        return found

    def to_json(self) -> dict[str, object]:
        """Return the table, without results that there are not."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        kept = _OF_A_MODEL if self.keras else ()
        given = {name: each for name, each in values.items() if name in kept or each not in _NOTHING}
        return {name: _dump(each) for name, each in given.items()}


_get_types = cache(partial(get_type_hints, include_extras=True))


def _read_attributes(table: JsonValue, wanted: type) -> dict[str, Any]:
    """Return the attributes of a class that a table has; null is an entry that it lacks."""
    types = _get_types(wanted)
    given = {name: each for name, each in table.children(*types).items() if each.value is not None}
    for each in fields(wanted):
        if each.default is MISSING and each.default_factory is MISSING:
            given.setdefault(each.name, table.child(each.name))
    return {name: _read(each, types[name]) for name, each in given.items()}


def _read(value: JsonValue, wanted: Any) -> Any:
    """Return a value of an annotated type."""
    origin, arguments = get_origin(wanted), get_args(wanted)
    if type(None) in arguments:
        return None if value.value is None else _read(value, arguments[0])
    if origin in (tuple, Mapping):
        return _read_several(value, wanted)
    if origin in (Annotated, Literal):
        return _check(value, find_kind(wanted)[0])
    if wanted in _SCALARS:
        return _SCALARS[wanted](value)
    load: Callable[[JsonValue], Any] | None = getattr(wanted, "from_json", None)
    return wanted(**_read_attributes(value, wanted)) if load is None else load(value)


def _read_several(value: JsonValue, wanted: Any) -> Any:
    """Return a list, or values by name; null is left out unless it is a value."""
    *_, inner = [each for each in get_args(wanted) if each is not ...]
    if get_origin(wanted) is tuple:
        return list_of(partial(_read, wanted=inner))(value)
    can_be_none = type(None) in get_args(inner)
    children = value.children().items()
    return {name: _read(each, inner) for name, each in children if can_be_none or each.value is not None}


def _check(value: JsonValue, kind: ValueKind) -> Any:
    try:
        return kind.check(value.value)
    except UnexpectedError as error:
        raise value.refuse(error.expected, advice=error.advice) from None


def _read_figure(value: JsonValue) -> float:
    """Return a number, which may be infinite or not a number, as a loss may be."""
    if isinstance(value.value, bool) or not isinstance(value.value, int | float):
        raise value.refuse("a number")
    return value.value


_SCALARS: Final[Mapping[Any, Callable[[JsonValue], Any]]] = {
    str: JsonValue.text,
    bool: JsonValue.flag,
    float: _read_figure,
}

_NOTHING: Final[tuple[Any, ...]] = (None, "", {}, ())
_OF_A_MODEL: Final = ("targets", "logits", "class_weights", "validation")
"""Facts that are written even if they are empty, once there is a model."""


def _dump(value: Any) -> Any:
    """Return the JSON form of facts; objects without attributes that are None."""
    if isinstance(value, Mapping):
        return {name: _dump(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [_dump(each) for each in value]
    if isinstance(value, ValidationChoice):
        return value.to_json()
    if not is_dataclass(value):
        return value
    given = {each.name: getattr(value, each.name) for each in fields(value)}
    return {name: _dump(each) for name, each in given.items() if each is not None}
