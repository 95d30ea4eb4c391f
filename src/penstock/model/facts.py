"""What a run's files say of what came of it, checked before it is used: they may come from anywhere.

In: the table `facts` of `run.yaml`, and `state.json`. Out: an error for what no run writes, or what is said.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_args

from penstock.errors import SchemaError
from penstock.foundation.wording import list_choices, show
from penstock.model.task import Kind
from penstock.storage.paths import PathLike

STATE_NAME: Final = "state.json"
HELD_OUT: Final = "held out of train"
"""What the facts of a run name as its validation, where a part of the train split is held out for it."""

MOST_LABELS: Final = 1_000_000
"""Of a target: more of them are no classes that a model has learned."""


def check_facts(facts: object, path: PathLike) -> None:
    """Refuse facts that no run writes; what is not used when a run is opened is not looked at.

    Args:
        facts: The table, as it was read: `targets` with kind and number of labels, `logits` with yes or no.
        path: Of the file, for errors.

    Raises:
        SchemaError: They have another form.

    Example:
        >>> check_facts({"targets": {"y": {"kind": "binary", "labels": 2}}}, "run.yaml")
    """
    table = _need_table("facts", facts, path)
    for name, target in _need_table("facts.targets", table.get("targets"), path).items():
        place = f"facts.targets.{name}"
        known = _need_table(place, target, path)
        kind, labels = known.get("kind"), known.get("labels")
        if kind not in get_args(Kind):
            raise _fault(f"{place}.kind", path, list_choices(get_args(Kind)), kind)
        least = 0 if kind == "regression" else 1
        if not isinstance(labels, int) or isinstance(labels, bool) or not least <= labels <= MOST_LABELS:
            expected = f"a whole number from {least} to {MOST_LABELS:,}"
            raise _fault(f"{place}.labels", path, expected, labels)
    for name, is_logit in _need_table("facts.logits", table.get("logits"), path).items():
        if not isinstance(is_logit, bool):
            raise _fault(f"facts.logits.{name}", path, "true or false", is_logit)


def read_trained(folder: Path) -> str | None:
    """Return the fingerprint of the split that a run was trained on; None, if nothing tells it."""
    try:
        form = json.loads((folder / STATE_NAME).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None  # a run is evaluated without it, too
    identity = form.get("identity") if isinstance(form, dict) else None
    data = identity.get("data") if isinstance(identity, dict) else None
    return data if isinstance(data, str) else None


def _need_table(place: str, value: object, path: PathLike) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _fault(place, path, "a table", value)
    for name in value:
        if not isinstance(name, str):
            raise _fault(place, path, "names that are texts", name)
    return value


def _fault(place: str, path: PathLike, expected: str, got: object) -> SchemaError:
    advice = "The file is not as the run wrote it."
    shown = "nothing" if got is None else show(got)
    return SchemaError(place, path=path, expected=expected, got=shown, advice=advice)
