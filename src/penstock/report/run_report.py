"""The run half of a report: settings, curves of training, where the time went, scores and mistakes.

In: an opened run, and the split to evaluate it on; or the folder of a cross-validation, whose models are not
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
from penstock.jobs.evaluate.evaluate import run_evaluation
from penstock.report.data_report import OnProgress, describe_records, find_dates, start_pictures
from penstock.schema.schema import Schema
from penstock.score.evaluation import Evaluation
from penstock.score.split_evaluation import BY_LENGTH
from penstock.settings.prediction import EvaluateCall, ReportCall
from penstock.training.history import find_best, list_column, list_metrics, read_history
from penstock.training.left_out import LeftOutPart, find_left_out
from penstock.training.run import Run
from penstock.training.run_config import RunConfig
from penstock.training.run_files import CONFIG_NAME, read_config

MOST_SLICED: Final = 30
"""Maximum number of fields whose values are sliced by."""

_MOST_SLICES: Final = 15
_LEAST_SHARE: Final = 0.01
_LEAST_RECORDS: Final = 10
_SLICED: Final = ("category", "number", "date", "text", "sequence")
_SLICE_SCORES: Final = {"regression": ("mae", False)}
_USUAL_SCORE: Final = ("accuracy", True)


def describe_training(run: Run) -> dict[str, Any]:
    """Return settings, curves and times of a run, or of each member of an ensemble."""
    config, tables = run.config, run.config.to_json()
    histories = {each.folder.name: each.history for each in run.members} or {"": run.history}
    return {
        "folder": str(run.folder),
        "tasks": {name: task.describe() for name, task in run.tasks.items()},
        "members": [each.folder.name for each in run.members],
        "settings": {name: list_settings(tables.get(name)) for name in ("train", "model", "facts")},
        "histories": {name: describe_history(rows, config, run.tasks) for name, rows in histories.items()},
        "choices": {name: each.to_json() for name, each in run.choices.items()},
        "left_out": _list_left_out(run.left_out),
        "seconds": _sum_seconds(run, histories.values()),
    }


def _list_left_out(parts: Iterable[LeftOutPart]) -> list[dict[str, Any]]:
    return [{"part": part.name, "fields": list(part.fields), "reason": part.reason} for part in parts]


def _sum_seconds(run: Run, histories: Iterable[Sequence[Mapping[str, float]]]) -> dict[str, float | None]:
    """Return the seconds of the short trials, and of the training.

    `run`: the run, or an ensemble, whose members share the trials and are trained one by one. `histories`:
    histories of the run or of its members, for runs that do not store how long they took.
    """
    found = [each.config.facts.seconds for each in run.members or (run,)]
    known = [each for each in [run.config.facts.seconds, *found] if each is not None]
    epochs = sum(float(rows[-1].get("seconds", 0.0)) for rows in histories if rows)
    trained = [each.training or 0.0 for each in found if each is not None]
    return {
        "trials": max((each.trials for each in known), default=None),
        "training": epochs if None in found else sum(trained),
    }


def list_settings(table: object) -> dict[str, Any]:
    """Return settings of `run.yaml` with one value each; names from inner tables contain a dot."""
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
    rows: Sequence[Mapping[str, float]], config: RunConfig, targets: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the metrics of all epochs as columns, the best epoch, and the time of each epoch.

    `rows`: rows of `history.csv`. `config`: content of `run.yaml`.
    """
    monitor = config.train.monitor if "monitor" in config.train.given else None
    best = find_best(rows, monitor, targets)
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
    run: Any, split: Split, slices: Sequence[str], options: ReportCall, on_progress: OnProgress | None = None
) -> dict[str, Any]:
    """Evaluate a run on a split; return the JSON form of the evaluation with the worst slices and mistakes.

    `on_progress`: called with the current task, its finished part, and the whole of it.
    """
    chosen = EvaluateCall(
        slices=slices,
        mistakes=options.mistakes,
        importance=options.importance,
        importance_records=options.importance_records,
        seed=options.seed,
        allow_missing_columns=options.allow_missing_columns,
    )
    found = run_evaluation(run, split, chosen, on_progress)
    form = found.to_json()
    pictures = start_pictures()
    describe = partial(
        _describe_mistakes,
        split=split,
        forms=find_dates(split.manifest, split.schema),
        targets=found.tasks,
        unread=found.unread,
        pictures=pictures,
    )
    return {
        **form,
        "baseline_notes": {target: found.describe_baseline(target) for target in found.tasks},
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
    unread: Container[str],
    pictures: Thumbnails,
) -> list[dict[str, Any]]:
    """Return mistakes with the values of their records, pictures included, in place of shortened inputs."""
    records = describe_records(split, [each["row"] for each in mistakes], pictures, forms, targets)
    return [
        {
            **{key: value for key, value in each.items() if key not in ("inputs", "file")},
            "file": Path(each["file"]).name,
            "values": [{**value, "is_read": value["name"] not in unread} for value in record["values"]],
        }
        for each, record in zip(mistakes, records, strict=True)
    ]


def find_worst_slices(found: Evaluation, target: str) -> dict[str, Any]:
    """Return the slices with the worst scores, among slices that have enough records.

    The result has `score`, the name of the score; `overall`, the score of all records; `least`, the number of
    records below which slices are left out; and `slices`, the worst first.
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


def read_folds(folder: Path) -> RunConfig | None:
    """Return the settings of a cross-validation; None for a single run or an ensemble."""
    config = read_config(folder / CONFIG_NAME)
    return None if config.folds is None else config


def describe_folds(folder: Path, config: RunConfig) -> dict[str, Any]:
    """Return the scores of a cross-validation by target, and the history of each fold.

    `config`: content of its `run.yaml`.
    """
    facts, tables = config.facts, config.to_json()
    if not facts.scores:
        raise StateError(
            "cross-validation",
            path=folder,
            expected="a finished one",
            got="an unfinished one",
            advice=f"Continue it: `ps.train(None, out={str(folder)!r}, resume=True)`.",
        )
    names = [name for name in facts.scores if Path(name).name == name]  # inside the folder
    runs = {name: folder / name / CONFIG_NAME for name in names}
    return {
        "folder": str(folder),
        "records": facts.records,
        "scores": facts.scores,
        "mean": facts.mean,
        "deviation": facts.deviation,
        "settings": {name: list_settings(tables.get(name)) for name in ("train", "model")},
        "histories": {
            name: describe_history(read_history(folder / name), config, facts.mean) for name in names
        },
        "left_out": {
            name: _list_left_out(find_left_out(read_config(path)))
            for name, path in runs.items()
            if path.is_file()
        },
    }
