"""Dates and times as people write them: of stored numbers, which are days or microseconds since 1970.

In: a number, and how its column held it. Out: a text.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from penstock.foundation.wording import count
from penstock.model.task import Task
from penstock.score.intervals import Interval
from penstock.score.mistakes import Mistake
from penstock.score.scores import MAIN_SCORES, Number, Scores

_BEGIN: Final = datetime.datetime(1970, 1, 1)


def write_number(value: float, form: str = "value") -> str:
    """Write a stored number: a date or a time as such, others with six digits, whole ones with all.

    Example:
        >>> write_number(18262, "date"), write_number(18262.0), write_number(0.1234567)
        ('2020-01-01', '18262', '0.123457')
    """
    moment = read_moment(value, form)
    if moment is not None:
        return moment
    if isinstance(value, int):
        return str(value)
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def read_moment(value: object, form: str) -> str | None:
    """Return the date or time that a stored number is; None, if it is none."""
    if form not in ("date", "time") or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    try:
        if form == "date":
            return (_BEGIN + datetime.timedelta(days=int(value))).date().isoformat()
        return (_BEGIN + datetime.timedelta(microseconds=int(value))).isoformat(" ")
    except OverflowError:  # beyond the year 9999
        return None


MOST_CLASSES: Final = 200
"""Of a confusion matrix: beyond that it is left out."""
_MOST_SHOWN: Final = 10
_WIDEST: Final = 110


@dataclass(frozen=True)
class SliceScores:
    """Scores of the records that have one value of a field.

    Attributes:
        value: The value; None where it is missing, or a range.
        low: The least number of a range, or None.
        high: The greatest.
        records: How many records there are.
        targets: Their scores, by target.
        form: How the raw column held the value: "date" and "time" are stored as numbers.
    """

    value: str | int | float | None
    low: Number
    high: Number
    records: int
    targets: dict[str, Scores]
    form: str = "value"

    @property
    def name(self) -> str:
        """The value or the range, in words."""
        if self.low is not None and self.high is not None:
            return f"{write_number(self.low, self.form)} to {write_number(self.high, self.form)}"
        if self.value is None:
            return "(missing)"
        return self.value if isinstance(self.value, str) else write_number(self.value, self.form)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        edges = {} if self.low is None else {"low": self.low, "high": self.high}
        return {"value": self.value, **edges, "records": self.records, "targets": self.targets}


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """How good a model is on a split, where, and by what.

    Attributes:
        split: The name of the split; "all" for raw data.
        data: The name of raw data; None for a split of stored data.
        records: How many records were predicted.
        tasks: What is predicted, by target.
        targets: The scores of each target: of classes `accuracy`, `balanced_accuracy`, `auc`, `pr_auc`,
            `f1`, `log_loss`, `ece`; of numbers `rmse`, `mae`, `r2`, `mape`. None where one is not defined.
        intervals: 95 % confidence intervals, likewise.
        classes: For each class of a target its `precision`, `recall`, `f1`, `support` and `auc`.
        confusion: The labels of a target, and how many records of each (rows) are taken for each (columns);
            of any number of labels at once, such a matrix of no and yes for each.
        slices: By field, the scores of the records with each of its values.
        importance_by_target: By target and field, how much the main score drops without the field.
        ablation_by_target: Likewise for all fields of a modality at once.
        importance_records: How many records that was measured on.
        mistakes: The worst, by target.
        notes: What to know about the numbers.

    Printed, it shows the scores with their intervals, which inputs matter, and the worst mistakes.
    """

    split: str
    records: int
    tasks: Mapping[str, Task]
    targets: dict[str, Scores]
    intervals: dict[str, dict[str, Interval | None]]
    classes: dict[str, list[dict[str, Any]]]
    confusion: dict[str, dict[str, Any]]
    slices: dict[str, list[SliceScores]] = field(default_factory=dict)
    importance_by_target: dict[str, dict[str, Number]] = field(default_factory=dict)
    ablation_by_target: dict[str, dict[str, Number]] = field(default_factory=dict)
    importance_records: int = 0
    mistakes: dict[str, list[Mistake]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    data: str | None = None

    @property
    def name(self) -> str:
        """What was evaluated on, in words."""
        return f"split {self.split!r}" if self.data is None else self.data

    @property
    def importance(self) -> dict[str, Number]:
        """The mean over the targets of what each field is worth."""
        return _mean_over_targets(self.importance_by_target)

    @property
    def ablation(self) -> dict[str, Number]:
        """The mean over the targets of what each modality is worth."""
        return _mean_over_targets(self.ablation_by_target)

    @property
    def main_scores(self) -> dict[str, str]:
        """The name of the score by which inputs are compared, by target."""
        return {name: MAIN_SCORES[task.kind] for name, task in self.tasks.items()}

    def with_forms(self, forms: Mapping[str, str]) -> Evaluation:
        """Return the same with dates and times written as such, which are stored as numbers.

        Args:
            forms: How raw columns held values, by field: "date", "time", ….
        """
        slices = {
            name: [replace(each, form=forms.get(name, "value")) for each in found]
            for name, found in self.slices.items()
        }
        mistakes = {
            target: [replace(each, inputs=_word_moments(each.inputs, forms)) for each in found]
            for target, found in self.mistakes.items()
        }
        return replace(self, slices=slices, mistakes=mistakes)

    def to_json(self) -> dict[str, Any]:
        """Return dicts, lists and scalars, for `json.dumps`; what is not defined is None."""
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
            "slices": {name: [each.to_json() for each in found] for name, found in self.slices.items()},
            "importance": self.importance,
            "importance_by_target": self.importance_by_target,
            "importance_records": self.importance_records,
            "ablation": self.ablation,
            "ablation_by_target": self.ablation_by_target,
            "mistakes": {name: [each.to_json() for each in found] for name, found in self.mistakes.items()},
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [f"{self.name}, {count(self.records, 'record')}"]
        for target, found in self.targets.items():
            rows = [
                (name, write_score(value), write_interval(self.intervals[target].get(name)))
                for name, value in found.items()
            ]
            lines += ["", f"{target} ({self.tasks[target].describe()})"]
            lines += _align([("score", "value", "95 % interval"), *rows], right=1)
        for target in self.targets:
            lines += self._show_importance(target)
            lines += self._show_mistakes(target)
        lines += ["", *(f"note: {note}" for note in self.notes)] if self.notes else []
        return "\n".join(_shorten(line.rstrip()) for line in lines)

    def _show_importance(self, target: str) -> list[str]:
        drops = self.importance_by_target.get(target, {})
        known = sorted(((drop, name) for name, drop in drops.items() if drop is not None), reverse=True)
        if not known:
            return []
        of_target = f" for {target}" if len(self.targets) > 1 else ""
        rows = [(name, f"{drop:+.4f}") for drop, name in known[:_MOST_SHOWN]]
        more = [f"  … and {len(known) - len(rows)} that matter less"] if len(known) > len(rows) else []
        header = ("input", f"drop of {self.main_scores[target]} without it")
        return ["", f"Which input matters{of_target}", *_align([header, *rows], right=1), *more]

    def _show_mistakes(self, target: str) -> list[str]:
        worst = self.mistakes.get(target, [])
        if not worst:
            return []
        of_target = f" for {target}" if len(self.targets) > 1 else ""
        rows = [
            (str(each.row), _word(each.truth), _word(each.prediction), _word_inputs(each.inputs))
            for each in worst
        ]
        header = ("record", "truth", "prediction", "inputs")
        return ["", f"The worst mistakes{of_target}", *_align([header, *rows], right=0)]


def write_score(value: Number) -> str:
    """Write a score for people: four digits behind the point where that says something."""
    if value is None:
        return "–"
    return f"{value:.4f}" if abs(value) < 100 else f"{value:,.1f}"


def write_interval(interval: Interval | None) -> str:
    """Write an interval for people; nothing, where there is none."""
    return "" if interval is None else f"{write_score(interval[0])} to {write_score(interval[1])}"


def _word_moments(inputs: Mapping[str, Any], forms: Mapping[str, str]) -> dict[str, Any]:
    return {name: read_moment(value, forms.get(name, "value")) or value for name, value in inputs.items()}


def _mean_over_targets(found: Mapping[str, Mapping[str, Number]]) -> dict[str, Number]:
    names = dict.fromkeys(name for each in found.values() for name in each)
    means: dict[str, Number] = {}
    for name in names:
        numbers = [value for each in found.values() if (value := each.get(name)) is not None]
        means[name] = sum(numbers) / len(numbers) if numbers else None
    return means


def _align(rows: Sequence[Sequence[str]], *, right: int) -> list[str]:
    """Return the rows of a table, indented; one column is aligned on the right."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(
            cell.rjust(width) if at == right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _word(value: Any) -> str:
    if isinstance(value, float):
        return write_score(value)
    if isinstance(value, list):
        return ", ".join(map(_word, value)) or "none"
    text = str(value)
    return text if text.isprintable() else repr(text)[1:-1]


def _word_inputs(inputs: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_word_input(value)}" for name, value in inputs.items())


def _word_input(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_word_input, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else _word(value)


def _shorten(line: str) -> str:
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…"
