"""An evaluation as tables for people.

In: an `Evaluation`. Out: lines on stdout: scores, classes, which input matters, slices, mistakes.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from penstock.cli.terminal import format_count, print_table
from penstock.foundation.terminal import escape
from penstock.model.task import Task
from penstock.score.evaluation import Evaluation, write_interval, write_score
from penstock.score.scores import Number

_MEANINGS: Final = {
    "accuracy": "share of the predictions that are right",
    "balanced_accuracy": "share of a class that is found, mean over the classes",
    "auc": "how often one of a class is ranked above one that is not; 0.5 is chance",
    "pr_auc": "precision over all thresholds; the share of the class is chance",
    "f1": "precision and recall in one number",
    "log_loss": "how surprised the model is by the truth; lower is better",
    "ece": "how far probabilities are from frequencies; lower is better",
    "rmse": "typical distance from the truth, large ones count more; lower is better",
    "mae": "mean distance from the truth; lower is better",
    "r2": "share of the variance that is explained; 1 is all, 0 no better than the mean",
    "mape": "mean distance as a share of the truth; lower is better",
}
_BAR_CHARS: Final = 24
_MOST_BARS: Final = 30
_MOST_SHOWN_CLASSES: Final = 20
_WIDEST_CONFUSION: Final = 10
_MEASURES: Final = {"regression": "off by", "multilabel": "log loss"}
_SLICE_SCORES: Final = ("accuracy", "auc", "f1", "log_loss", "rmse", "mae", "r2")


def print_evaluation(found: Evaluation) -> None:
    """Print all that was found."""
    print(f"{escape(found.name)}: {format_count(found.records, 'record')}")
    for target, task in found.tasks.items():
        _print_scores(found, target, task)
        if task.labels:
            _print_classes(found, target)
            _print_confusion(found, target)
    if found.importance_by_target:
        _print_importance(found)
    for name in found.slices:
        _print_slices(found, name)
    for target in found.mistakes:
        _print_mistakes(found, target)
    if found.notes:
        print()
    for note in found.notes:
        print(f"note: {escape(note)}")


def _print_scores(found: Evaluation, target: str, task: Task) -> None:
    print(f"\n{escape(target)}: {task.describe()}")
    rows = [
        [name, write_score(value), write_interval(found.intervals[target].get(name)), _MEANINGS[name]]
        for name, value in found.targets[target].items()
    ]
    print_table(["score", "value", "95 % interval", "what it says"], rows, right=["value"])


def _print_classes(found: Evaluation, target: str) -> None:
    classes = found.classes[target]
    rows = [
        [
            escape(str(each["label"])),
            f"{each['support']:,}",
            *(write_score(each[name]) for name in ("precision", "recall", "f1", "auc")),
        ]
        for each in classes[:_MOST_SHOWN_CLASSES]
    ]
    if rows:
        print()
        header = ["class", "records", "precision", "recall", "f1", "auc"]
        print_table(header, rows, right=header[1:])
    if len(classes) > len(rows):
        print(f"… and {len(classes) - len(rows)} more: --json has them.")


def _print_confusion(found: Evaluation, target: str) -> None:
    confusion = found.confusion[target]
    matrix, labels = confusion["matrix"], [escape(str(label)) for label in confusion["labels"]]
    if matrix is None or found.tasks[target].kind == "multilabel" or len(labels) > _WIDEST_CONFUSION:
        return
    print()
    header = ["true class", *(f"taken for {label}" if len(labels) < 4 else f"→ {label}" for label in labels)]
    rows = [[label, *(f"{each:,}" for each in row)] for label, row in zip(labels, matrix, strict=True)]
    print_table(header, rows, right=header[1:])


def _print_importance(found: Evaluation) -> None:
    records = format_count(found.importance_records, "record")
    for target, drops in found.importance_by_target.items():
        score = found.main_scores[target]
        of_target = f" for {escape(target)}" if len(found.tasks) > 1 else ""
        print(f"\nWhich input matters{of_target}: how much {score} drops when a field's values are shuffled")
        print(f"among the records, so that they tell nothing any more ({records}):")
        _print_bars("field", f"drop of {score}", drops)
        if len(found.ablation_by_target[target]) < len(drops):  # else each kind is one field
            print("\nAll fields of a kind together:")
            _print_bars("kind of input", f"drop of {score}", found.ablation_by_target[target])


def _print_bars(first: str, second: str, drops: dict[str, Number]) -> None:
    most = max((abs(drop) for drop in drops.values() if drop is not None), default=0.0)
    sign = "█" if (getattr(sys.stdout, "encoding", None) or "").lower().startswith("utf") else "#"
    ordered = sorted(drops.items(), key=lambda item: -(item[1] if item[1] is not None else -1e300))
    rows = []
    for name, drop in ordered[:_MOST_BARS]:
        length = round(_BAR_CHARS * max(drop or 0.0, 0.0) / most) if most else 0
        rows.append([escape(name), write_score(drop), sign * length])
    print_table([first, second, ""], rows, right=[second])
    if len(ordered) > len(rows):
        print(f"… and {len(ordered) - len(rows)} that matter less: --json has them.")


def _print_slices(found: Evaluation, name: str) -> None:
    for target in found.tasks:
        shown = [score for score in _SLICE_SCORES if score in found.targets[target]]
        of_target = f", for {escape(target)}" if len(found.tasks) > 1 else ""
        print(f"\nBy {escape(name)}{of_target}:")
        header = [name if name.isprintable() else escape(name), "records", *shown]
        rows = [
            [
                escape(each.name),
                f"{each.records:,}",
                *(write_score(each.targets[target][key]) for key in shown),
            ]
            for each in found.slices[name]
        ]
        print_table(header, rows, right=header[1:])


def _print_mistakes(found: Evaluation, target: str) -> None:
    mistakes = found.mistakes[target]
    if not mistakes:
        return
    of_target = f" for {escape(target)}" if len(found.tasks) > 1 else ""
    print(f"\nThe worst mistakes{of_target}:")
    measure = _MEASURES.get(found.tasks[target].kind, "probability")
    header = ["record", "truth", "prediction", measure, "inputs"]
    rows = [
        [
            str(each.row),
            _write_answer(each.truth),
            _write_answer(each.prediction),
            write_score(each.probability if measure == "probability" else each.loss),
            ", ".join(f"{escape(key)}={_write_input(value)}" for key, value in each.inputs.items()),
        ]
        for each in mistakes
    ]
    print_table(header, rows, right=["record", measure])


def _write_answer(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_write_answer, value)) or "none"
    return write_score(value) if isinstance(value, float) else escape(str(value))


def _write_input(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_write_input, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else escape(str(value))
