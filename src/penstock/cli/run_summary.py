"""The summary of a run that `penstock train` prints: scores, choices, and the next commands.

In: a finished run. Out: tables on stdout, or JSON.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.cli.terminal import print_table
from penstock.dataset import open as open_dataset
from penstock.foundation.terminal import escape
from penstock.jobs.predict.evaluate import USUAL_SPLIT
from penstock.score.evaluation import format_score
from penstock.training.history import DATA_LOSS, TIMES, VALIDATION_LOSS, find_best
from penstock.training.options import make_options
from penstock.training.run import Run

if TYPE_CHECKING:
    from penstock.jobs.train.folds import CrossValidation  # reads and writes tables


def print_run(run: Run, own_model: str | None, warnings: list[str] | None) -> None:
    """Print the scores of a run as a table; or as JSON, if a list of warnings is given."""
    if warnings is not None:
        print(json.dumps({**_describe(run), "warnings": warnings}))
        return
    if run.members:
        _print_members(run)
    else:
        _print_best(run)
    for target, choice in run.choices.items():
        for line in choice.describe():
            print(f"{escape(target)}: {line}")
    _print_next(run, own_model)


def _describe(run: Run) -> dict[str, Any]:
    """Return the JSON form of a run."""
    result = {"run": str(run.folder), "data": str(run.data)}
    choices = {name: each.to_json() for name, each in run.choices.items()}
    if run.members:
        scores = run.settings["facts"].get("scores", {})
        return {
            **result,
            "members": [_describe(each) for each in run.members],
            "scores": scores,
            "choices": choices,
            "parameters": int(run.model.count_params()),
            "seconds": sum(each.history[-1]["seconds"] for each in run.members),
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
    }


def _find_best(run: Run) -> Mapping[str, float]:
    """Return the row of the best epoch, by validation if there is one."""
    monitor = make_options(**run.settings["train"]).monitor
    return find_best(run.history, monitor, run.tasks) or run.history[-1]


def print_folds(done: CrossValidation, own_model: str | None, warnings: list[str] | None) -> None:
    """Print the scores of a cross-validation as a table; or as JSON, if a list of warnings is given."""
    if warnings is not None:
        result = {
            "run": str(done.folder),
            "folds": [str(each) for each in done.runs],
            "records": done.records,
            "predictions": str(done.predictions),
            "scores": done.scores,
            "mean": done.means,
            "deviation": done.deviations,
            "warnings": warnings,
        }
        print(json.dumps(result))
        return
    for target, means in done.means.items():
        header = [f"out of fold, {target}" if len(done.means) > 1 else "out of fold", "mean", "deviation"]
        rows = [
            [
                name,
                format_score(mean),
                format_score(done.deviations[target][name]),
                *(format_score(each[target][name]) for each in done.scores.values()),
            ]
            for name, mean in means.items()
        ]
        print_table([*header, *done.scores], rows, right=[*header[1:], *done.scores])
    name = escape(shlex.quote(str(done.folder)))
    own = "" if own_model is None else f" --model {escape(shlex.quote(own_model))}"
    path = escape(str(done.predictions))
    print(f"\n{done.records:,} records, each predicted by the model of its fold: {path}")
    print(f"The runs of the folds are in {name}. Next:")
    print(f"  penstock evaluate {name}/{done.runs[0].name}{own}")
    print("To predict new data, train a model on all records: the same command without --folds.")


def _print_members(run: Run) -> None:
    """Print the scores of the members of an ensemble and of their average on validation."""
    scores = run.settings["facts"].get("scores", {})
    if not scores:
        rows = [[each.folder.name, f"{_find_best(each)['loss']:.4f}"] for each in run.members]
        print_table(["training", "loss"], rows, right=["loss"])
        return
    for target in run.tasks:
        names = list(next(iter(scores.values()))[target])
        header = [f"validation, {target}" if len(run.tasks) > 1 else "validation", *names]
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
    rows = [[name.removeprefix("val_"), f"{best[name]:.4f}"] for name in shown]
    header = ["validation" if metrics else "training", f"epoch {best['epoch']:.0f}"]
    print_table(header, rows, right=header[1:])


def _print_next(run: Run, own_model: str | None) -> None:
    """Print the commands that use the run."""
    name = escape(shlex.quote(str(run.folder)))
    own = "" if own_model is None else f" --model {escape(shlex.quote(own_model))}"
    split = _find_unseen(run)
    kind = "csv" if _knows_columns(run) else "tfrecord"
    new, labelled = f"NEW.{kind}", f"LABELLED.{kind}"
    print(f"\nThe run is in {name}. Next:")
    if split is None:
        option = f" --split {escape(shlex.quote(_list_splits(run)[0]))}"
        print(f"  penstock evaluate {name}{option}{own}\n  penstock predict {name} {new}{own}")
        print(
            "There is no test split: these scores are for records that the model was trained on. For a fair "
            f"evaluation, use other labelled data: penstock evaluate {name} {labelled}{own}"
        )
        return
    option = "" if split == USUAL_SPLIT else f" --split {split}"
    print(f"  penstock evaluate {name}{option}{own}\n  penstock predict {name} {new}{own}")


def _knows_columns(run: Run) -> bool:
    """Whether the records were converted from columns, which new data must have too."""
    manifest = open_dataset(run.data).manifest
    return "convert" in run.settings or (manifest is not None and manifest.plan is not None)


def _find_unseen(run: Run) -> str | None:
    """Return the split to evaluate on: test, else validation; None if there is neither."""
    splits = _list_splits(run)
    return next((split for split in (USUAL_SPLIT, "validation") if split in splits), None)


def _list_splits(run: Run) -> list[str]:
    dataset = open_dataset(run.data)
    return [name for name in dataset.splits if len(dataset[name])]


def _list_metrics(row: Mapping[str, float]) -> list[str]:
    return [name for name in row if name not in ("epoch", "step", *TIMES)]
