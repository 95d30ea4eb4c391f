"""The run half of a report: settings, curves of training, where the time went, scores and mistakes.

In: an opened run, and the split to evaluate it on; or the folder of a cross-validation, of which no model is
opened. Out: dicts, JSON-able.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from penstock.dataset import USUAL_SPLITS, Dataset, Split
from penstock.decode.sample_view import Thumbnails
from penstock.errors import StateError
from penstock.jobs.predict.evaluate import run_evaluation
from penstock.report.data_report import OnProgress, find_dates
from penstock.report.options import ReportOptions
from penstock.report.sample_records import describe_records, start_pictures
from penstock.schema.schema import Schema
from penstock.score.evaluation import Evaluation
from penstock.score.options import EvaluateOptions
from penstock.score.split_evaluation import BY_LENGTH
from penstock.training.history import find_best, list_column, list_metrics, read_history
from penstock.training.run_files import CONFIG_NAME, read_run_config

MOST_SLICED: Final = 30
"""Maximum number of fields whose values are sliced by."""

_MOST_SLICES: Final = 15
_LEAST_SHARE: Final = 0.01
_LEAST_RECORDS: Final = 10
_SLICED: Final = ("category", "number", "text", "sequence")
_SLICE_SCORES: Final = {"regression": ("mae", False)}
_USUAL_SCORE: Final = ("accuracy", True)


def describe_training(run: Any) -> dict[str, Any]:
    """Return settings, curves and times of a run, or of each member of an ensemble.

    Args:
        run: The run, a `Run` or what has its attributes.
    """
    members = list(getattr(run, "members", ()))
    settings = getattr(run, "settings", {})
    histories = (
        {each.folder.name: each.history for each in members}
        if members
        else {"": getattr(run, "history", None) or []}
    )
    return {
        "folder": str(getattr(run, "folder", "")),
        "tasks": {name: task.describe() for name, task in run.tasks.items()},
        "members": [each.folder.name for each in members],
        "settings": {name: list_settings(settings.get(name)) for name in ("train", "model", "facts")},
        "histories": {name: describe_history(rows, settings, run.tasks) for name, rows in histories.items()},
        "choices": {name: each.to_json() for name, each in getattr(run, "choices", {}).items()},
    }


def list_settings(table: object) -> dict[str, Any]:
    """Return settings of `run.yaml` with one value each, those of inner tables with a dot in their name."""
    if not isinstance(table, Mapping):
        return {} if table is None else {"": str(table)}
    found: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{key}": each for key, each in list_settings(value).items()}
        else:
            found[str(name)] = value if isinstance(value, bool | int | str) else _plain(value)
    return found


def _plain(value: object) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return None if value is None else str(value)


def describe_history(
    rows: Sequence[Mapping[str, float]], settings: Mapping[str, Any], targets: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the metrics of all epochs as columns, the best epoch, and the time of each epoch.

    Args:
        rows: Rows of `history.csv`.
        settings: Content of `run.yaml`.
        targets: Names of the targets.
    """
    options = settings.get("train")
    monitor = options.get("monitor") if isinstance(options, Mapping) else None
    best = find_best(rows, None if monitor is None else str(monitor), targets)
    ends = [float(row.get("seconds", 0.0)) for row in rows]
    seconds = [end - begin for begin, end in zip([0.0, *ends], ends, strict=False)]
    return {
        "epochs": [int(row.get("epoch", number + 1)) for number, row in enumerate(rows)],
        "metrics": list_metrics(rows),
        "learning_rate": list_column(rows, "learning_rate"),
        "best_epoch": None if best is None else int(best.get("epoch", len(rows))),
        "seconds": ends[-1] if ends else 0.0,
        "time": {
            "epoch": [round(each, 3) for each in seconds],
            "waiting": list_column(rows, "waiting_seconds"),
            "validation": list_column(rows, "validation_seconds"),
        },
    }


def choose_split(dataset: Dataset, wanted: str | None) -> Split | None:
    """Return the split to evaluate on: the wanted one, else "test", "validation" or any with records."""
    if wanted is not None:
        return dataset[wanted]
    filled = [name for name in dataset.splits if len(dataset[name])]
    usual = [name for name in USUAL_SPLITS if name in filled]
    return dataset[(usual or filled)[0]] if filled else None


def choose_slices(schema: Schema, inputs: Sequence[str], data: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the inputs to slice by: categories, then fields with missing values, then others."""
    found = {each["name"]: each for each in data["fields"]} if data else {}

    def rank(name: str) -> int:
        if schema[name].type_name == "category":
            return 0
        splits = found[name]["splits"].values() if name in found else ()
        return 1 if any(each["missing"] for each in splits) else 2

    names = [name for name in inputs if name in schema and schema[name].type_name in _SLICED]
    return tuple(sorted(names, key=rank)[:MOST_SLICED])


def describe_evaluation(
    run: Any,
    split: Split,
    slices: Sequence[str],
    options: ReportOptions,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Evaluate a run on a split; return the JSON form of the evaluation with the worst slices and mistakes.

    Args:
        run: The run.
        split: The split.
        slices: Names of the fields to slice by.
        options: Options of the report.
        on_progress: Called with the current task, its finished part, and the whole of it.
    """
    chosen = EvaluateOptions(
        slices=tuple(slices),
        mistakes=options.mistakes,
        importance=options.importance,
        importance_records=options.importance_records,
        seed=options.seed,
    )
    found = run_evaluation(run, split, None, chosen, on_progress=on_progress)
    form = found.to_json()
    pictures = start_pictures()
    describe = partial(
        _describe_mistakes,
        split=split,
        forms=find_dates(split.manifest),
        targets=found.tasks,
        pictures=pictures,
    )
    return {
        **form,
        "notes": [note for note in form["notes"] if note not in found.slice_notes],
        "slice_notes": list(found.slice_notes),
        "main_scores": found.main_scores,
        "parts": {target: [list(row) for row in found.list_parts(target)] for target in found.tasks},
        "worst_slices": {target: find_worst_slices(found, target) for target in found.tasks},
        "mistakes": {target: describe(each) for target, each in form["mistakes"].items()},
        "picture_notes": pictures.notes,
    }


def _describe_mistakes(
    mistakes: Sequence[Mapping[str, Any]],
    split: Split,
    forms: Mapping[str, str],
    targets: Container[str],
    pictures: Thumbnails,
) -> list[dict[str, Any]]:
    """Return mistakes with the values of their records, pictures included, in place of shortened inputs."""
    records = describe_records(split, [each["row"] for each in mistakes], pictures, forms, targets)
    return [
        {
            **{key: value for key, value in each.items() if key not in ("inputs", "file")},
            "file": Path(each["file"]).name,
            "values": record["values"],
        }
        for each, record in zip(mistakes, records, strict=True)
    ]


def find_worst_slices(found: Evaluation, target: str) -> dict[str, Any]:
    """Return the slices with the worst scores, among those that have enough records.

    Args:
        found: The evaluation, with slices.
        target: Name of the target.

    Returns:
        `score`, the name of the score; `overall`, that of all records; `least`, the number of records below
        which slices are left out; and `slices`, the worst first, with field, value, records and score.
    """
    score, is_higher_better = _SLICE_SCORES.get(found.tasks[target].kind, _USUAL_SCORE)
    overall = found.targets[target].get(score)
    least = max(_LEAST_RECORDS, math.ceil(_LEAST_SHARE * found.records))
    units = dict(note.split(BY_LENGTH, 1) for note in found.slice_notes if BY_LENGTH in note)
    listed: list[dict[str, Any]] = [
        {
            "field": name,
            "value": each.name if each.is_missing else f"{each.name} {units.get(name, '')}".rstrip(),
            "records": each.records,
            "score": value,
        }
        for name, slices in found.slices.items()
        for each in slices
        if each.records >= least and (value := each.targets[target].get(score)) is not None
    ]
    if overall is not None:
        sign = 1 if is_higher_better else -1
        listed = [each for each in listed if sign * (each["score"] - overall) < 0]
        listed.sort(key=lambda each: sign * each["score"])
    return {"score": score, "overall": overall, "least": least, "slices": listed[:_MOST_SLICES]}


def read_folds(folder: Path) -> dict[str, Any] | None:
    """Return the settings of a cross-validation; None for a single run or an ensemble."""
    settings = read_run_config(folder / CONFIG_NAME)
    return settings if "folds" in settings else None


def describe_folds(folder: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scores of a cross-validation by target, and the history of each fold.

    Args:
        folder: Folder of the cross-validation.
        settings: Content of its `run.yaml`.

    Raises:
        StateError: The cross-validation is not finished.
    """
    facts = settings.get("facts")
    if not isinstance(facts, Mapping) or not isinstance(facts.get("scores"), Mapping):
        raise StateError(
            "cross-validation",
            path=folder,
            expected="a finished one",
            got="an unfinished one",
            advice=f"Continue it: penstock train --resume --out {folder}.",
        )
    targets = list(facts.get("mean") or {})
    return {
        "folder": str(folder),
        "records": facts.get("records"),
        "scores": facts["scores"],
        "mean": facts.get("mean") or {},
        "deviation": facts.get("deviation") or {},
        "settings": {name: list_settings(settings.get(name)) for name in ("train", "model")},
        "histories": {
            str(name): describe_history(read_history(folder / str(name)), settings, targets)
            for name in facts["scores"]
            if Path(str(name)).name == name  # nothing outside of the folder is read
        },
    }
