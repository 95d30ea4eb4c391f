"""The result of an evaluation: scores, intervals, slices, importance and mistakes, as text and as JSON.

In: the parts, from the other modules of this folder. Out: `Evaluation`, which is printed or written.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final, NamedTuple

from penstock.foundation.html import Html, display_safely, make_block, make_line, make_table
from penstock.foundation.wording import count
from penstock.model.task import Task
from penstock.score.intervals import Interval
from penstock.score.mistakes import Mistake
from penstock.score.scores import MAIN_SCORES, Number, Scores

_EPOCH: Final = datetime.datetime(1970, 1, 1)

MOST_CLASSES: Final = 200
"""Maximum number of classes of a confusion matrix; with more classes it is omitted."""

MEANINGS: Final = {
    "accuracy": "share of correct predictions",
    "balanced_accuracy": "mean recall of the classes",
    "auc": "probability that a member of the class is ranked higher; 0.5 is chance",
    "pr_auc": "mean precision over all thresholds; chance is the share of the class",
    "f1": "harmonic mean of precision and recall",
    "log_loss": "cross-entropy of the predicted probabilities; lower is better",
    "ece": "calibration error: probabilities against frequencies; lower is better",
    "rmse": "root of the mean squared error; lower is better",
    "mae": "mean absolute error; lower is better",
    "r2": "share of the variance explained; 1 is perfect, 0 is no better than the mean",
    "mape": "mean absolute error relative to the true value; lower is better",
}
"""What each score means, in a few words."""

_MOST_SHOWN: Final = 10
_MOST_TARGETS: Final = 5  # in a short text and in a notebook
_WIDEST: Final = 110
_TOGETHER: Final = " + "  # between the parts of a trial


@dataclass(frozen=True)
class SliceScores:
    """Scores of the records that have one value of a field.

    Attributes:
        value: The value; None where it is missing, or for a range.
        low: Lowest number of a range, or None.
        high: Highest number of a range, or None.
        records: Number of records.
        targets: Scores of these records, by target.
        form: Type of the value in the raw column: "date" and "time" are stored as numbers.
    """

    value: str | int | float | None
    low: Number
    high: Number
    records: int
    targets: dict[str, Scores]
    form: str = "value"

    @property
    def is_missing(self) -> bool:
        """Whether the records have no value."""
        return self.value is None and self.low is None

    @property
    def name(self) -> str:
        """The value or the range, as text."""
        if self.low is not None and self.high is not None:
            return f"{format_number(self.low, self.form)} to {format_number(self.high, self.form)}"
        if self.value is None:
            return "(missing)"
        return self.value if isinstance(self.value, str) else format_number(self.value, self.form)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        edges = {} if self.low is None else {"low": self.low, "high": self.high}
        return {"value": self.value, **edges, "records": self.records, "targets": self.targets}


class _Details(NamedTuple):
    """A table below the scores: title, rows with the header first, number of the right-aligned column."""

    title: str
    cells: list[tuple[str, ...]]
    right: int


@dataclass(frozen=True, kw_only=True, repr=False)
class Evaluation:
    """Scores of a model on a split, with slices, feature importance and the worst mistakes.

    Attributes:
        split: Name of the split; "all" for raw data.
        data: Name of the raw data; None for a split of a data set.
        records: Number of records that were predicted.
        tasks: Task of each target.
        targets: Scores of each target: `accuracy`, `balanced_accuracy`, `auc`, `pr_auc`, `f1`, `log_loss` and
            `ece` for classes; `rmse`, `mae`, `r2` and `mape` for numbers. None where a score is not defined.
        intervals: 95 % confidence intervals of these scores.
        classes: `precision`, `recall`, `f1`, `support` and `auc` of each class of a target.
        confusion: Labels of a target, and the confusion matrix: rows are true classes, columns predicted
            ones. For a multilabel target, one 2 × 2 matrix per label. `pairs` has the most frequent
            confusions of two classes: true label, predicted label, and number of records.
        curves: Points of the ROC, precision–recall and calibration curves of a target, or its residuals.
        thresholds: For each binary target with a threshold chosen on validation: `threshold`, and `accuracy`,
            `balanced_accuracy` and `f1` on these records with that threshold instead of 0.5.
        slices: Scores of the records with each value of a field, by field.
        importance_by_target: Drop of the main score without a field, by target and field.
        ablation_by_target: Drop of the main score without all fields of a modality, by target and modality.
        parts_by_target: Drop of the main score without all fields of a part of the inputs (table, text,
            image, sequence, tensor), by target and part; empty for a single part.
        part_trials: Main scores on validation of the trials that chose the parts before the run, by target
            and by the parts that were used; empty if there were none.
        left_out_parts: Fields of the parts that the run left out, by part.
        importance_records: Number of records that importance was measured on.
        mistakes: The worst mistakes, by target.
        members: For an ensemble, the scores of each member by target, by name of the member.
        notes: Remarks on the numbers.
        slice_notes: Those of them that are about slices.

    Printed, it shows the scores with their intervals, which inputs matter, and the worst mistakes.
    """

    split: str
    records: int
    tasks: Mapping[str, Task]
    targets: dict[str, Scores]
    intervals: dict[str, dict[str, Interval | None]]
    classes: dict[str, list[dict[str, Any]]]
    confusion: dict[str, dict[str, Any]]
    thresholds: dict[str, Scores] = field(default_factory=dict)
    curves: dict[str, dict[str, Any]] = field(default_factory=dict)
    slices: dict[str, list[SliceScores]] = field(default_factory=dict)
    importance_by_target: dict[str, dict[str, Number]] = field(default_factory=dict)
    ablation_by_target: dict[str, dict[str, Number]] = field(default_factory=dict)
    parts_by_target: dict[str, dict[str, Number]] = field(default_factory=dict)
    part_trials: dict[str, dict[str, Number]] = field(default_factory=dict)
    left_out_parts: dict[str, list[str]] = field(default_factory=dict)
    importance_records: int = 0
    mistakes: dict[str, list[Mistake]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    slice_notes: tuple[str, ...] = ()
    data: str | None = None
    members: dict[str, dict[str, Scores]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The split or the raw data, as text."""
        return f"split {self.split!r}" if self.data is None else self.data

    @property
    def importance(self) -> dict[str, Number]:
        """Importance of each field: the mean over the targets."""
        return _mean_over_targets(self.importance_by_target)

    @property
    def ablation(self) -> dict[str, Number]:
        """Importance of each modality: the mean over the targets."""
        return _mean_over_targets(self.ablation_by_target)

    @property
    def main_scores(self) -> dict[str, str]:
        """The name of the score by which inputs are compared, by target."""
        return {name: MAIN_SCORES[task.kind] for name, task in self.tasks.items()}

    def with_forms(self, forms: Mapping[str, str]) -> Evaluation:
        """Return a copy that shows dates and times, which are stored as numbers, as text.

        Args:
            forms: Type of the values in each raw column: "date", "time", ….
        """
        slices = {
            name: [replace(each, form=forms.get(name, "value")) for each in found]
            for name, found in self.slices.items()
        }
        mistakes = {
            target: [replace(each, inputs=_format_dates(each.inputs, forms)) for each in found]
            for target, found in self.mistakes.items()
        }
        return replace(self, slices=slices, mistakes=mistakes)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form: dicts, lists and scalars; undefined scores are None."""
        return {
            "split": self.split,
            "data": self.data,
            "records": self.records,
            "tasks": {name: task.kind for name, task in self.tasks.items()},
            "targets": self.targets,
            "intervals": {
                target: {name: None if each is None else list(each) for name, each in found.items()}
                for target, found in self.intervals.items()
            },
            "classes": self.classes,
            "confusion": self.confusion,
            "thresholds": self.thresholds,
            "curves": self.curves,
            "slices": {name: [each.to_json() for each in found] for name, found in self.slices.items()},
            "importance": self.importance,
            "importance_by_target": self.importance_by_target,
            "importance_records": self.importance_records,
            "ablation": self.ablation,
            "ablation_by_target": self.ablation_by_target,
            "parts_by_target": self.parts_by_target,
            "part_trials": self.part_trials,
            "left_out_parts": self.left_out_parts,
            "mistakes": {name: [each.to_json() for each in found] for name, found in self.mistakes.items()},
            **({"members": self.members} if self.members else {}),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        scores = [
            f"{target}: {name} {format_score(self.targets[target].get(name))}"
            for target, name in islice(self.main_scores.items(), _MOST_TARGETS)
            if target in self.targets
        ]
        more = [f"… {len(self.targets) - len(scores)} more"] if len(self.targets) > len(scores) else []
        return f"Evaluation({', '.join([self.name, count(self.records, 'record'), *scores, *more])})"

    def _repr_html_(self) -> str:
        return display_safely(repr(self), self._draw)

    def _draw(self) -> Html:
        """Return what `print` shows, as tables; of many targets, the first ones."""
        parts: list[Html] = []
        for target, found in islice(self.targets.items(), _MOST_TARGETS):
            rows = [
                (name, format_score(value), format_interval(self.intervals.get(target, {}).get(name)))
                for name, value in found.items()
            ]
            parts.append(make_line(f"{target} ({self.tasks[target].describe()})"))
            parts.append(make_table(("score", "value", "95 % interval"), rows, right=(1,)))
            parts += [make_line(line) for line in self.describe_threshold(target)]
            if self.members:
                header, *members = self.list_members(target)
                parts.append(make_table(header, members, right=range(1, len(header))))
            for title, cells, align in self._list_details(target):
                parts += [make_line(title), make_table(cells[0], cells[1:], right=(align,))]
        if len(self.targets) > _MOST_TARGETS:
            parts.append(make_line(f"… {len(self.targets) - _MOST_TARGETS} more targets", is_faint=True))
        parts += [make_line(f"note: {note}", is_faint=True) for note in self.notes[:_MOST_SHOWN]]
        return make_block(f"{self.name}, {count(self.records, 'record')}", *parts)

    def _list_details(self, target: str) -> list[_Details]:
        """Return the tables of importance, parts and mistakes, those that are known."""
        found = (self._list_importance(target), self._list_parts(target), self._list_mistakes(target))
        return [each for each in found if each is not None]

    def __str__(self) -> str:
        lines = [f"{self.name}, {count(self.records, 'record')}"]
        for target, found in self.targets.items():
            rows = [
                (name, format_score(value), format_interval(self.intervals[target].get(name)))
                for name, value in found.items()
            ]
            lines += ["", f"{target} ({self.tasks[target].describe()})"]
            lines += _align([("score", "value", "95 % interval"), *rows], right=1)
            lines += [f"  {line}" for line in self.describe_threshold(target)]
            if self.members:
                lines += ["", *_align(self.list_members(target), right=1)]
        for target in self.targets:
            for title, cells, right in self._list_details(target):
                lines += ["", title, *_align(cells, right=right)]
        lines += ["", *(f"note: {note}" for note in self.notes)] if self.notes else []
        return "\n".join(_shorten(line.rstrip()) for line in lines)

    def list_members(self, target: str) -> list[list[str]]:
        """Return a table of the scores of the members of an ensemble and of their average, with a header."""
        names = list(self.targets[target])
        rows = {
            **{name: found[target] for name, found in self.members.items()},
            "average": self.targets[target],
        }
        cells = [[name, *(format_score(found[each]) for each in names)] for name, found in rows.items()]
        return [["run", *names], *cells]

    def describe_threshold(self, target: str) -> list[str]:
        """Return a line with the scores for the threshold that was chosen on validation, if there is one."""
        found = self.thresholds.get(target)
        if found is None or found.get("balanced_accuracy") is None:
            return []
        return [
            f"With a threshold of {found['threshold']:.3g}, the best on validation: "
            f"balanced_accuracy {format_score(found['balanced_accuracy'])}, "
            f"accuracy {format_score(found['accuracy'])}, f1 {format_score(found['f1'])}"
        ]

    def _list_importance(self, target: str) -> _Details | None:
        drops = self.importance_by_target.get(target, {})
        known = sorted(((drop, name) for name, drop in drops.items() if drop is not None), reverse=True)
        if not known:
            return None
        of_target = f" for {target}" if len(self.targets) > 1 else ""
        rows = [(name, f"{drop:+.4f}") for drop, name in known[:_MOST_SHOWN]]
        more = f", the {len(rows)} most important of {len(known)}" if len(known) > len(rows) else ""
        header = ("input", f"drop of {self.main_scores[target]} without it")
        return _Details(f"Feature importance{of_target}{more}", [header, *rows], 1)

    def list_parts(self, target: str) -> list[tuple[str, str, str]]:
        """Return a row for each part and for the whole: name, drop without it, score on validation alone."""
        drops, trials = self.parts_by_target.get(target, {}), self.part_trials.get(target, {})
        alone = [name for name in trials if _TOGETHER not in name]
        rows = [
            (
                f"{name} (left out)" if name in self.left_out_parts else name,
                format_score(drops[name]) if name in drops else "",
                format_score(trials[name]) if name in trials else "",
            )
            for name in dict.fromkeys([*drops, *alone, *self.left_out_parts])
        ]
        together = [(name, "", format_score(value)) for name, value in trials.items() if name not in alone]
        return [*rows, *together]

    def _list_parts(self, target: str) -> _Details | None:
        rows = self.list_parts(target)
        if not rows:
            return None
        of_target = f" for {target}" if len(self.targets) > 1 else ""
        score = self.main_scores[target]
        header = ("part", f"drop of {score} without it", f"{score} on validation in trials")
        shown = len(header) if any(row[2] for row in rows) else 2  # without trials, their column is empty
        return _Details(f"Parts of the inputs{of_target}", [row[:shown] for row in (header, *rows)], 1)

    def _list_mistakes(self, target: str) -> _Details | None:
        worst = self.mistakes.get(target, [])
        if not worst:
            return None
        of_target = f" for {target}" if len(self.targets) > 1 else ""
        rows = [
            (
                str(each.row),
                _format_value(each.truth),
                _format_value(each.prediction),
                _format_inputs(each.inputs),
            )
            for each in worst
        ]
        header = ("record", "truth", "prediction", "inputs")
        return _Details(f"Worst mistakes{of_target}", [header, *rows], 0)


def format_number(value: float, form: str = "value") -> str:
    """Format a stored number: dates and times as such, others with six digits, whole numbers with all.

    Example:
        >>> format_number(18262, "date"), format_number(18262.0), format_number(0.1234567)
        ('2020-01-01', '18262', '0.123457')
    """
    moment = format_date(value, form)
    if moment is not None:
        return moment
    if isinstance(value, int):
        return str(value)
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def format_date(value: object, form: str) -> str | None:
    """Return a stored number as date or time; None if it is not one."""
    if form not in ("date", "time") or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    try:
        if form == "date":
            return (_EPOCH + datetime.timedelta(days=int(value))).date().isoformat()
        return (_EPOCH + datetime.timedelta(microseconds=int(value))).isoformat(" ")
    except OverflowError:  # beyond the year 9999
        return None


def format_score(value: Number) -> str:
    """Format a score: four decimal places, fewer for large numbers."""
    if value is None:
        return "–"
    return f"{value:.4f}" if abs(value) < 100 else f"{value:,.1f}"


def format_interval(interval: Interval | None) -> str:
    """Format an interval; empty if there is none."""
    return "" if interval is None else f"{format_score(interval[0])} to {format_score(interval[1])}"


def _format_dates(inputs: Mapping[str, Any], forms: Mapping[str, str]) -> dict[str, Any]:
    return {name: format_date(value, forms.get(name, "value")) or value for name, value in inputs.items()}


def _mean_over_targets(found: Mapping[str, Mapping[str, Number]]) -> dict[str, Number]:
    names = dict.fromkeys(name for each in found.values() for name in each)
    means: dict[str, Number] = {}
    for name in names:
        numbers = [value for each in found.values() if (value := each.get(name)) is not None]
        means[name] = sum(numbers) / len(numbers) if numbers else None
    return means


def _align(rows: Sequence[Sequence[str]], *, right: int) -> list[str]:
    """Return the rows of a table, indented; column `right` is aligned on the right."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(
            cell.rjust(width) if at == right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _format_value(value: Any) -> str:
    if isinstance(value, float):
        return format_score(value)
    if isinstance(value, list):
        return ", ".join(map(_format_value, value)) or "none"
    text = str(value)
    return text if text.isprintable() else repr(text)[1:-1]


def _format_inputs(inputs: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_format_input(value)}" for name, value in inputs.items())


def _format_input(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_format_input, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else _format_value(value)


def _shorten(line: str) -> str:
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…"
