"""The result of an evaluation: scores, intervals, slices, importance and mistakes, as text and as JSON.

In: the parts, from the other modules of this folder. Out: `Evaluation`, which is printed or written.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final, NamedTuple

from penstock.foundation.html import Html, display_safely, make_block, make_line, make_table
from penstock.foundation.wording import count
from penstock.model.task import Task
from penstock.score.intervals import CalibratedError, Interval
from penstock.score.mistakes import Mistake
from penstock.score.score_text import (
    format_answer,
    format_interval,
    format_score,
    format_signed,
    list_names,
    name_score,
)
from penstock.score.scores import MAIN_SCORES, Number, Scores
from penstock.training.left_out import LeftOutPart, describe_left_out

_EPOCH: Final = datetime.datetime(1970, 1, 1)

MOST_CLASSES: Final = 200
"""Maximum number of classes of a confusion matrix; with more classes it is omitted."""

NOT_READ: Final = " (not read)"
"""Mark of a value that the model was not given."""

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
        intervals: 95 % confidence intervals of these scores; None for `ece`.
        calibrated: For each target of classes, `ece` of models whose probabilities are right, on as many
            records: `mean`, and `most`, below which 95 % of them stay.
        baselines: The same scores of one prediction for all records: the most frequent class, with the shares
            of the classes as probabilities, or the mean.
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
        left_out: Parts of the inputs that the model does not read, with their fields and the reason.
        unread: Inputs of the data, and fields without a role, that the model does not read.
        importance_records: Number of records that importance was measured on.
        mistakes: The worst mistakes, by target.
        members: For an ensemble, the scores of each member by target, by name of the member.
        missing_columns: Inputs that the data does not have: they count as missing in all records.
        notes: Remarks on the numbers.
        cautions: Those of them about data that may change the numbers, such as a column that does not exist.
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
    calibrated: dict[str, CalibratedError] = field(default_factory=dict)
    thresholds: dict[str, Scores] = field(default_factory=dict)
    curves: dict[str, dict[str, Any]] = field(default_factory=dict)
    baselines: dict[str, Scores] = field(default_factory=dict)
    slices: dict[str, list[SliceScores]] = field(default_factory=dict)
    importance_by_target: dict[str, dict[str, Number]] = field(default_factory=dict)
    ablation_by_target: dict[str, dict[str, Number]] = field(default_factory=dict)
    parts_by_target: dict[str, dict[str, Number]] = field(default_factory=dict)
    part_trials: dict[str, dict[str, Number]] = field(default_factory=dict)
    left_out: tuple[LeftOutPart, ...] = ()
    unread: tuple[str, ...] = ()
    importance_records: int = 0
    mistakes: dict[str, list[Mistake]] = field(default_factory=dict)
    missing_columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    slice_notes: tuple[str, ...] = ()
    data: str | None = None
    members: dict[str, dict[str, Scores]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The split or the raw data, as text."""
        return f"split {self.split!r}" if self.data is None else self.data

    @property
    def left_out_parts(self) -> dict[str, list[str]]:
        """Fields of the parts of the inputs that the model does not read, by part."""
        return {part.name: list(part.fields) for part in self.left_out}

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
            "calibrated": {target: each._asdict() for target, each in self.calibrated.items()},
            "baselines": self.baselines,
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
            "left_out_reasons": {part.name: part.reason for part in self.left_out},
            "unread": list(self.unread),
            "mistakes": {name: [each.to_json() for each in found] for name, found in self.mistakes.items()},
            **({"members": self.members} if self.members else {}),
            "missing_columns": list(self.missing_columns),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        scores = [
            f"{target}: {name_score(name)} {format_score(self.targets[target].get(name))}"
            for target, name in islice(self.main_scores.items(), _MOST_TARGETS)
            if target in self.targets
        ]
        more = [f"… {len(self.targets) - len(scores)} more"] if len(self.targets) > len(scores) else []
        return f"Evaluation({', '.join([self.name, count(self.records, 'record'), *scores, *more])})"

    def _repr_html_(self) -> str:
        return display_safely(repr(self), self._draw)

    def _draw(self) -> Html:
        """Return what `print` shows, as tables; of many targets, the first ones."""
        parts = [make_line(line) for line in describe_left_out(self.left_out)]
        for target in islice(self.targets, _MOST_TARGETS):
            header, *rows = self.list_scores(target)
            parts.append(make_line(f"{target} ({self.tasks[target].describe()})"))
            parts.append(make_table(header, rows, right=(1, 3)))
            parts += [make_line(line) for line in self.describe_scores(target)]
            if self.members:
                header, *members = self.list_members(target)
                parts.append(make_table(header, members, right=range(1, len(header))))
            for title, cells, align in self._list_details(target):
                parts += [make_line(title), make_table(cells[0], cells[1:], right=(align,))]
        if len(self.targets) > _MOST_TARGETS:
            parts.append(make_line(f"… {len(self.targets) - _MOST_TARGETS} more targets", is_faint=True))
        notes = sorted(self.notes, key=lambda note: note not in self.cautions)
        parts += [make_line(self._name_note(note), is_faint=True) for note in notes[:_MOST_SHOWN]]
        return make_block(f"{self.name}, {count(self.records, 'record')}", *parts)

    def _list_details(self, target: str) -> list[_Details]:
        """Return the tables of importance, parts and mistakes, those that are known."""
        found = (self._list_importance(target), self._list_parts(target), self._list_mistakes(target))
        return [each for each in found if each is not None]

    def __str__(self) -> str:
        lines = [f"{self.name}, {count(self.records, 'record')}", *describe_left_out(self.left_out)]
        for target in self.targets:
            lines += ["", f"{target} ({self.tasks[target].describe()})"]
            lines += _align(self.list_scores(target), right=1)
            lines += [f"  {line}" for line in self.describe_scores(target)]
            if self.members:
                lines += ["", *_align(self.list_members(target), right=1)]
        for target in self.targets:
            for title, cells, right in self._list_details(target):
                lines += ["", title, *_align(cells, right=right)]
        lines += ["", *map(self._name_note, self.notes)] if self.notes else []
        return "\n".join(_shorten(line.rstrip()) for line in lines)

    def _name_note(self, note: str) -> str:
        return f"{'warning' if note in self.cautions else 'note'}: {note}"

    def list_scores(self, target: str) -> list[list[str]]:
        """Return a table of the scores of a target, with a header: name, value, interval and baseline."""
        baselines, intervals = self.baselines.get(target, {}), self.intervals.get(target, {})
        rows = [["score", "value", "95 % interval", "baseline"]]
        for name, value in self.targets[target].items():
            baseline = baselines.get(name)
            shown = "" if baseline is None else format_score(baseline)
            rows.append([name_score(name), format_score(value), format_interval(intervals.get(name)), shown])
        return rows if baselines else [row[:-1] for row in rows]

    def describe_baseline(self, target: str) -> str:
        """Return a sentence on the predictions of the baseline of a target; empty if there is none."""
        if not self.baselines.get(target):
            return ""
        task = self.tasks[target]
        if task.kind == "regression":
            days = " RMSE and MAE are in days." if task.unit is not None else ""
            return f"Baseline: the mean of the true values for every record.{days}"
        if task.kind == "multilabel":
            return "Baseline: the share of each label for every record."
        frequent = max(self.classes.get(target, []), key=lambda each: each["support"], default=None)
        named = "the most frequent class" + ("" if frequent is None else f", {frequent['label']},")
        return f"Baseline: {named} for every record, with the shares of the classes as probabilities."

    def list_members(self, target: str) -> list[list[str]]:
        """Return a table of the scores of the members of an ensemble and of their average, with a header."""
        names = list(self.targets[target])
        rows = {
            **{name: found[target] for name, found in self.members.items()},
            "average": self.targets[target],
        }
        cells = [[name, *(format_score(found[each]) for each in names)] for name, found in rows.items()]
        return [["run", *list_names(names)], *cells]

    def describe_scores(self, target: str) -> list[str]:
        """Return lines on the scores: baseline, error by chance, and scores for a threshold of validation."""
        found, baseline = self.thresholds.get(target), self.describe_baseline(target)
        lines = [baseline] if baseline else []
        if (drawn := self.calibrated.get(target)) is not None:
            lines.append(describe_calibrated(drawn))
        if found is None or found.get("balanced_accuracy") is None:
            return lines
        return [
            *lines,
            f"With a threshold of {found['threshold']:.3g}, the best on validation: "
            f"balanced accuracy {format_score(found['balanced_accuracy'])}, "
            f"accuracy {format_score(found['accuracy'])}, F1 {format_score(found['f1'])}",
        ]

    def _list_importance(self, target: str) -> _Details | None:
        drops = self.importance_by_target.get(target, {})
        known = sorted(((drop, name) for name, drop in drops.items() if drop is not None), reverse=True)
        if not known:
            return None
        of_target = f" for {target}" if len(self.targets) > 1 else ""
        rows = [(name, format_signed(drop)) for drop, name in known[:_MOST_SHOWN]]
        more = f", the {len(rows)} most important of {len(known)}" if len(known) > len(rows) else ""
        header = ("input", f"drop of {name_score(self.main_scores[target])} without it")
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
        score = name_score(self.main_scores[target])
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
                _print_answer(each.truth, each.prediction),
                _print_answer(each.prediction, each.truth),
                _format_inputs(each.inputs, self.unread),
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


def describe_calibrated(drawn: CalibratedError) -> str:
    """Return a sentence on the calibration error that is due to chance."""
    return (
        f"If all probabilities were right, the calibration error would be {format_score(drawn.mean)} on "
        f"average on these records, and at most {format_score(drawn.most)} in 95 % of the cases"
    )


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


def _print_answer(value: Any, other: Any = None) -> str:
    text = format_answer(value, other)
    return text if text.isprintable() else repr(text)[1:-1]


def _format_inputs(inputs: Mapping[str, Any], unread: Container[str]) -> str:
    return ", ".join(
        f"{name}={_format_input(value)}{NOT_READ if name in unread else ''}" for name, value in inputs.items()
    )


def _format_input(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_format_input, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else _print_answer(value)


def _shorten(line: str) -> str:
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…"
