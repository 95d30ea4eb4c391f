"""The summary of a run that `penstock train` prints: scores and choices, and the next command.

In: a finished run. Out: tables on stdout, or JSON.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.cli.arguments import repeat_model
from penstock.cli.next_command import suggest_next
from penstock.cli.terminal import print_note, print_table
from penstock.dataset import open as open_dataset
from penstock.foundation.terminal import escape
from penstock.jobs.evaluate.evaluate import USUAL_SPLIT
from penstock.score.score_text import format_score, list_names, name_score
from penstock.settings.advice import to_flags
from penstock.settings.command_line import Call
from penstock.training.history import DATA_LOSS, TIMES, VALIDATION_LOSS, find_best
from penstock.training.run import Run

if TYPE_CHECKING:
    from penstock.jobs.train.cross_validation.folds import CrossValidation  # reads and writes tables


def print_run(run: Run, call: Call, warnings: list[str]) -> None:
    """Print the scores of a run as a table; or as JSON, with warnings."""
    if call.common.json:
        print(json.dumps({**_describe(run), "warnings": [*map(to_flags, warnings)]}))
        return
    if run.members:
        _print_members(run)
    else:
        _print_best(run)
    for target, choice in run.choices.items():
        for line in choice.describe():
            print(f"{escape(target)}: {line}")
    _finish(run, call)


def _describe(run: Run) -> dict[str, Any]:
    """Return the JSON form of a run."""
    result = {"run": str(run.folder), "data": str(run.data)}
    choices = {name: each.to_json() for name, each in run.choices.items()}
    if run.members:
        scores = run.config.facts.scores
        return {
            **result,
            "members": [_describe(each) for each in run.members],
            "scores": scores,
            "choices": choices,
            "parameters": int(run.model.count_params()),
            "seconds": sum(each.history[-1]["seconds"] for each in run.members),
            **_list_trial_seconds(run),
        }
    best = _find_best(run)
    return {
        **result,
        "epochs": len(run.history),
        "steps": run.history[-1]["step"],
        "best_epoch": best["epoch"],
        "best": {name: best[name] if math.isfinite(best[name]) else None for name in _list_metrics(best)},
        "choices": choices,
        "parameters": int(run.model.count_params()),
        "seconds": run.history[-1]["seconds"],
        **_list_trial_seconds(run),
    }


def _list_trial_seconds(run: Run) -> dict[str, float]:
    """Return how long the short trials took; nothing for runs that did not store it."""
    seconds = run.config.facts.seconds
    return {} if seconds is None else {"trial_seconds": seconds.trials}


def _find_best(run: Run) -> Mapping[str, float]:
    """Return the row of the best epoch, by validation if there is one."""
    return find_best(run.history, run.config.train.monitor, run.tasks) or run.history[-1]


def print_folds(done: CrossValidation, call: Call, warnings: list[str]) -> None:
    """Print the scores of a cross-validation as a table; or as JSON, with warnings."""
    if call.common.json:
        result = {
            "run": str(done.folder),
            "folds": [str(each) for each in done.runs],
            "records": done.records,
            "predictions": str(done.predictions),
            "scores": done.scores,
            "mean": done.means,
            "deviation": done.deviations,
            "warnings": [*map(to_flags, warnings)],
        }
        print(json.dumps(result))
        return
    for target, means in done.means.items():
        header = [f"out of fold, {target}" if len(done.means) > 1 else "out of fold", "mean", "deviation"]
        rows = [
            [
                name_score(name),
                format_score(mean),
                format_score(done.deviations[target][name]),
                *(format_score(each[target][name]) for each in done.scores.values()),
            ]
            for name, mean in means.items()
        ]
        print_table([*header, *done.scores], rows, right=[*header[1:], *done.scores])
    path = escape(str(done.predictions))
    print(f"\n{done.records:,} records, each predicted by the model of its fold: {path}")
    print(f"The runs of the folds are in {escape(str(done.folder))}.")
    print_note("to predict new data, train a model on all records: the same command without --folds")
    suggest_next(call, "evaluate", done.folder / done.runs[0].name, *repeat_model(call))


def _print_members(run: Run) -> None:
    """Print the scores of the members of an ensemble and of their average on validation."""
    scores = run.config.facts.scores
    if not scores:
        rows = [[each.folder.name, format_score(_find_best(each)["loss"])] for each in run.members]
        print_table(["training", "loss"], rows, right=["loss"])
        return
    for target in run.tasks:
        names = list(next(iter(scores.values()))[target])
        header = [f"validation, {target}" if len(run.tasks) > 1 else "validation", *list_names(names)]
        rows = [
            [name, *(format_score(found[target][each]) for each in names)] for name, found in scores.items()
        ]
        print_table(header, rows, right=header[1:])


def _print_best(run: Run) -> None:
    """Print the metrics of the best epoch."""
    best = _find_best(run)
    metrics = [name for name in best if name.startswith("val_")]
    shown = metrics or [name for name in _list_metrics(best) if name != "learning_rate"]
    if best.get(DATA_LOSS) == best.get(VALIDATION_LOSS):
        shown = [name for name in shown if name != DATA_LOSS]
    rows = [[_name_metric(run, name.removeprefix("val_")), format_score(best[name])] for name in shown]
    header = ["validation" if metrics else "training", f"epoch {best['epoch']:.0f}"]
    print_table(header, rows, right=header[1:])


def _name_metric(run: Run, key: str) -> str:
    """Return the name of a metric, whose key begins with the target if there are several."""
    for target in run.tasks if len(run.tasks) > 1 else ():
        if key.startswith(f"{target}_"):
            return f"{target}: {name_score(key.removeprefix(f'{target}_'))}"
    return name_score(key)


def _finish(run: Run, call: Call) -> None:
    """Print where the run is and what it was not tested on, and suggest to evaluate it."""
    dataset, own = open_dataset(run.data), repeat_model(call)
    splits = [name for name in dataset.splits if len(dataset[name])]
    unseen = next((split for split in (USUAL_SPLIT, "validation") if split in splits), None)
    print(f"\nThe run is in {escape(str(run.folder))}.")
    seconds = run.config.facts.seconds
    if seconds is not None and seconds.trials:
        print_note(f"short trials took {seconds.trials:.1f} s, training {seconds.training or 0:.1f} s")
    # New data must have the columns that the records were converted from.
    has_columns = run.config.convert is not None or (dataset.manifest and dataset.manifest.plan is not None)
    kind = "csv" if has_columns else "tfrecord"
    named = " ".join([shlex.quote(str(run.folder)), f"NEW.{kind}", *map(shlex.quote, own)])
    print_note(f"to predict new data: penstock predict {named}")
    if unseen is None:
        print_note(
            "there is no test split: an evaluation on the records that the model was trained on is not fair. "
            "Use other labelled data."
        )
        suggest_next(call, "evaluate", run.folder, "--split", splits[0], *own)
    else:
        words = [] if unseen == USUAL_SPLIT else ["--split", unseen]
        suggest_next(call, "evaluate", run.folder, *words, *own)


def _list_metrics(row: Mapping[str, float]) -> list[str]:
    return [name for name in row if name not in ("epoch", "step", *TIMES)]
