"""History of a run: `history.csv`, the curves in it, and its best epoch.

In: metrics by epoch. Out: the file, written atomically, and its content again; curves for charts, which
notebooks and reports draw from here.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from penstock.errors import StateError
from penstock.storage.atomic import AtomicFile

HISTORY_NAME: Final = "history.csv"
_LOWER_IS_BETTER: Final = {  # words in names of metrics
    *("loss", "mae", "mse", "mape", "msle", "rmse", "error", "crossentropy", "entropy", "hinge"),
    *("divergence", "poisson", "cosh", "false"),
}

VALIDATION_LOSS: Final = "val_loss"
"""The validation loss as Keras computes it, with the penalties on the model's weights."""

DATA_LOSS: Final = "val_data_loss"
"""The validation loss without those penalties."""

TIMES: Final = ("waiting_seconds", "validation_seconds", "seconds")
"""Columns of `history.csv` with times: waiting for data in the epoch, its validation, and the run until the
end of the epoch."""

NOT_METRICS: Final = ("epoch", "step", "learning_rate", *TIMES)
"""Columns of `history.csv` that are not metrics."""

VALIDATION: Final = "validation"
"""Label of the curves of validation records."""

Row: TypeAlias = Mapping[str, float]
Numbers: TypeAlias = list[float | None]


def write_history(folder: Path, rows: Sequence[Row]) -> None:
    """Write the metrics of all epochs, replacing the file."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with AtomicFile(folder / HISTORY_NAME, overwrite=True) as file:
        file.write(text.getvalue().encode())


def read_history(folder: Path) -> list[dict[str, float]]:
    """Return the metrics of all epochs; an empty list if there is no file."""
    path = folder / HISTORY_NAME
    if not path.is_file():
        return []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [
                {name: _as_number(cell) for name, cell in row.items() if cell} for row in csv.DictReader(file)
            ]
    except (ValueError, AttributeError, csv.Error) as error:
        raise StateError("history", path=path, expected="numbers by name", got=str(error)) from None


def _as_number(cell: str) -> float:
    return int(cell) if cell.lstrip("-").isdigit() else float(cell)


def list_metrics(rows: Sequence[Row]) -> dict[str, Numbers]:
    """Return the metrics of all epochs as columns; None for numbers that are absent or not finite.

    Example:
        >>> list_metrics([{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": float("nan")}])
        {'loss': [0.5, None]}
    """
    names = dict.fromkeys(name for row in rows for name in row if name not in NOT_METRICS)
    return {name: [_keep_finite(row.get(name)) for row in rows] for name in names}


def list_column(rows: Sequence[Row], name: str) -> Numbers:
    """Return one column of all epochs; None for numbers that are absent or not finite."""
    return [_keep_finite(row.get(name)) for row in rows]


def pair_curves(metrics: Mapping[str, Numbers]) -> dict[str, dict[str, Numbers]]:
    """Return the curves of each metric by the records they were measured on, the loss first.

    Metrics without a finite number are left out, and the loss without penalties if it equals the loss.

    `metrics`: metrics as columns, as `list_metrics` returns them.

    Example:
        >>> pair_curves({"auc": [0.5], "loss": [0.7], "val_loss": [0.8]})
        {'loss': {'training': [0.7], 'validation': [0.8]}, 'auc': {'training': [0.5]}}
    """
    found: dict[str, dict[str, Numbers]] = {}
    for name, values in metrics.items():
        if all(value is None for value in values):
            continue
        base, label = name.removeprefix("val_"), VALIDATION if name.startswith("val_") else "training"
        if name == DATA_LOSS:
            if values == metrics.get(VALIDATION_LOSS):
                continue
            base, label = "loss", f"{VALIDATION}, without penalties"
        found.setdefault(base, {})[label] = values
    return dict(sorted(found.items(), key=lambda item: item[0] != "loss"))


def pair_runs(runs: Mapping[str, Mapping[str, Numbers]]) -> dict[str, dict[str, Numbers]]:
    """Return the curves of each metric of several runs, with the name of the run in their labels.

    Of several runs, only curves of validation are kept if there are any, so that they fit into one chart.

    `runs`: metrics of each run as columns, by its name; "" for the only one.
    """
    pairs = {run: pair_curves(metrics) for run, metrics in runs.items()}
    has_validation = any(VALIDATION in curves for each in pairs.values() for curves in each.values())
    found: dict[str, dict[str, Numbers]] = {}
    for run, metrics in pairs.items():
        for name, curves in metrics.items():
            for label, values in curves.items():
                if len(runs) == 1 or not has_validation or label == VALIDATION:
                    found.setdefault(name, {})[f"{run}, {label}" if run else label] = values
    return found


def find_best(rows: Sequence[Row], monitor: str | None, targets: Iterable[str] = ()) -> Row | None:
    """Return the row of the epoch whose weights a run has: the best on validation, or the last.

    `targets`: names of the targets, which names of metrics may begin with.
    """
    if not rows or monitor is None or not any(name.startswith("val_") for name in rows[-1]):
        return rows[-1] if rows else None
    known = [row for row in rows if _keep_finite(row.get(monitor)) is not None]
    choose = min if is_lower_better(monitor, targets) else max
    return choose(known, key=lambda row: row[monitor], default=rows[-1])


def _keep_finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def is_lower_better(metric: str, targets: Iterable[str] = ()) -> bool:
    """Whether a metric is better when it is lower; a target's name in front of it is ignored.

    Example:
        >>> is_lower_better("val_data_loss"), is_lower_better("val_auc")
        (True, False)
    """
    name = metric.removeprefix("val_")
    for target in sorted(targets, key=len, reverse=True):
        if name.startswith(f"{target}_"):
            name = name.removeprefix(f"{target}_")
            break
    return not _LOWER_IS_BETTER.isdisjoint(name.split("_"))
