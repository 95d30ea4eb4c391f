"""A cross-validation in a report: scores of each fold, their mean and deviation, and the curves of all folds.

In: the folder of a cross-validation. Out: one dict, JSON-able. No model is opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.errors import StateError
from penstock.report.run_report import describe_history, list_settings
from penstock.training.run_files import CONFIG_NAME, read_history, read_run_config


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
