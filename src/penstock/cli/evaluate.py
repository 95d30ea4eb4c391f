"""`penstock evaluate`: score a trained model, and print the evaluation as tables."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from penstock.cli.arguments import one_or_all, read_with_model, repeat_model
from penstock.cli.next_command import is_installed, name_output, repeat_words, suggest_next
from penstock.cli.terminal import ProgressBar, format_count, print_notes, print_options, print_table
from penstock.foundation.terminal import escape, supports_unicode
from penstock.jobs.evaluate.evaluate import run_evaluation
from penstock.model.task import Task
from penstock.score.evaluation import NOT_READ, Evaluation
from penstock.score.score_text import MEANINGS, format_answer, format_score, list_names, name_score
from penstock.score.scores import Number
from penstock.settings.advice import to_flags
from penstock.settings.command_line import Call
from penstock.settings.commands import EVALUATE, PREDICT
from penstock.settings.prediction import EvaluateCall
from penstock.training.left_out import describe_left_out

_BAR_CHARS: Final = 24
_MAX_BARS: Final = 30
_MAX_CLASSES: Final = 20
_MAX_CONFUSION: Final = 10
_ERROR_COLUMNS: Final = {"regression": "error", "multilabel": "log loss"}
_SLICE_SCORES: Final = ("accuracy", "auc", "f1", "log_loss", "rmse", "mae", "r2")
_OWN_FLAGS: Final = EVALUATE.list_flags().keys() - PREDICT.list_flags().keys()


def run(call: Call) -> int:
    """Evaluate, print, and return the exit status."""
    options = read_with_model(call, EvaluateCall)
    print_options(options.to_json())
    folder, *paths = call.arguments
    with ProgressBar("evaluate") as bar:
        found = run_evaluation(folder, one_or_all(paths) if paths else None, options, bar.show_stage)
    if call.common.json:
        print(json.dumps(found.to_json(), allow_nan=False))
    else:
        print_evaluation(found)
    _suggest(call, options.split)
    return 0


def _suggest(call: Call, split: str | None) -> None:
    """Suggest predictions for the data that was given; of a run on its own data, a report or an export."""
    folder, *paths = call.arguments
    if paths:
        out = name_output(paths[0], "-predicted.csv")
        suggest_next(call, "predict", *repeat_words(call, _OWN_FLAGS, ["--out", out]))
    elif is_installed("jinja2", "matplotlib"):
        words = [] if split is None else ["--split", split]
        out = name_output(folder, ".html")
        suggest_next(call, "report", folder, "--out", out, *words, *repeat_model(call))
    else:
        suggest_next(call, "export", folder, name_output(folder, "-exported"), *repeat_model(call))


def print_evaluation(found: Evaluation) -> None:
    """Print scores, classes, importance of inputs, slices and mistakes."""
    print(f"{escape(found.name)}: {format_count(found.records, 'record')}")
    for line in describe_left_out(found.left_out):
        print(escape(to_flags(line)))
    for target, task in found.tasks.items():
        _print_scores(found, target, task)
        if task.labels:
            _print_classes(found, target)
            _print_confusion(found, target)
    if found.importance_by_target:
        _print_importance(found)
    for target in found.tasks:
        _print_parts(found, target)
    for name in found.slices:
        _print_slices(found, name)
    for target in found.mistakes:
        _print_mistakes(found, target)
    print_notes(found.notes, found.cautions)


def _print_scores(found: Evaluation, target: str, task: Task) -> None:
    print(f"\n{escape(target)}: {task.describe()}")
    header, *rows = found.list_scores(target)
    meanings = [MEANINGS[name] for name in found.targets[target]]
    rows = [[*row, meaning] for row, meaning in zip(rows, meanings, strict=True)]
    print_table([*header, "meaning"], rows, right=["value", "baseline"])
    for line in found.describe_scores(target):
        print(escape(line))
    if found.members:
        header, *members = found.list_members(target)
        print()
        print_table(header, members, right=header[1:])


def _print_classes(found: Evaluation, target: str) -> None:
    classes = found.classes[target]
    rows = [
        [
            escape(str(each["label"])),
            f"{each['support']:,}",
            *(format_score(each[name]) for name in ("precision", "recall", "f1", "auc")),
        ]
        for each in classes[:_MAX_CLASSES]
    ]
    if rows:
        print()
        header = ["class", "records", "precision", "recall", *list_names(["f1", "auc"])]
        print_table(header, rows, right=header[1:])
    if len(classes) > len(rows):
        print(f"… and {len(classes) - len(rows)} more: use --json to see all.")


def _print_confusion(found: Evaluation, target: str) -> None:
    confusion = found.confusion[target]
    matrix, labels = confusion["matrix"], [escape(str(label)) for label in confusion["labels"]]
    if matrix is None or found.tasks[target].kind == "multilabel" or len(labels) > _MAX_CONFUSION:
        return
    print()
    header = ["true class", *(f"predicted {label}" if len(labels) < 4 else f"→ {label}" for label in labels)]
    rows = [[label, *(f"{each:,}" for each in row)] for label, row in zip(labels, matrix, strict=True)]
    print_table(header, rows, right=header[1:])


def _print_importance(found: Evaluation) -> None:
    records = format_count(found.importance_records, "record")
    for target, drops in found.importance_by_target.items():
        score = name_score(found.main_scores[target])
        of_target = f" for {escape(target)}" if len(found.tasks) > 1 else ""
        print(f"\nImportance of the inputs{of_target}: drop of {score} when the values of a field")
        print(f"are shuffled among the records ({records}):")
        _print_bars("field", f"drop of {score}", drops)
        if len(found.ablation_by_target[target]) < len(drops):  # otherwise each kind has one field
            print("\nAll fields of one kind together:")
            _print_bars("kind of input", f"drop of {score}", found.ablation_by_target[target])


def _print_parts(found: Evaluation, target: str) -> None:
    rows = found.list_parts(target)
    if not rows:
        return
    score = name_score(found.main_scores[target])
    of_target = f" for {escape(target)}" if len(found.tasks) > 1 else ""
    had_trials = any(row[2] for row in rows)
    print(
        f"\nParts of the inputs{of_target}: drop of {score} when all fields of a part are shuffled together"
        + ("," if had_trials else ":")
    )
    header = ["part", f"drop of {score}"]
    if had_trials:
        print(f"and {score} on validation in the short trials, each with the parts named:")
        header.append(f"{score} in trials")
    print_table(header, [list(row[: len(header)]) for row in rows], right=header[1:])


def _print_bars(first: str, second: str, drops: dict[str, Number]) -> None:
    most = max((abs(drop) for drop in drops.values() if drop is not None), default=0.0)
    sign = "█" if supports_unicode(sys.stdout) else "#"
    ordered = sorted(drops.items(), key=lambda item: -(item[1] if item[1] is not None else -1e300))
    rows = []
    for name, drop in ordered[:_MAX_BARS]:
        length = round(_BAR_CHARS * max(drop or 0.0, 0.0) / most) if most else 0
        rows.append([escape(name), format_score(drop), sign * length])
    print_table([first, second, ""], rows, right=[second])
    if len(ordered) > len(rows):
        print(f"… and {len(ordered) - len(rows)} less important ones: use --json to see all.")


def _print_slices(found: Evaluation, name: str) -> None:
    for target in found.tasks:
        shown = [score for score in _SLICE_SCORES if score in found.targets[target]]
        of_target = f", for {escape(target)}" if len(found.tasks) > 1 else ""
        print(f"\nBy {escape(name)}{of_target}:")
        header = [name if name.isprintable() else escape(name), "records", *list_names(shown)]
        rows = [
            [
                escape(each.name),
                f"{each.records:,}",
                *(format_score(each.targets[target][key]) for key in shown),
            ]
            for each in found.slices[name]
        ]
        print_table(header, rows, right=header[1:])


def _print_mistakes(found: Evaluation, target: str) -> None:
    mistakes = found.mistakes[target]
    if not mistakes:
        return
    of_target = f" for {escape(target)}" if len(found.tasks) > 1 else ""
    print(f"\nWorst mistakes{of_target}:")
    measure = _ERROR_COLUMNS.get(found.tasks[target].kind, "probability")
    header = ["record", "truth", "prediction", measure, "inputs"]
    rows = [
        [
            str(each.row),
            escape(format_answer(each.truth, each.prediction)),
            escape(format_answer(each.prediction, each.truth)),
            format_score(each.probability if measure == "probability" else each.loss),
            ", ".join(
                f"{escape(key)}={_format_input(value)}{NOT_READ if key in found.unread else ''}"
                for key, value in each.inputs.items()
            ),
        ]
        for each in mistakes
    ]
    print_table(header, rows, right=["record", measure])


def _format_input(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_format_input, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else escape(str(value))
