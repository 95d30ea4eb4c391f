"""The state of a loader: make it, and check that a given state or position belongs to this loader.

In: epoch and step, and the identity of the loader. Out: a small dict for JSON, or a `StateError` that names
the difference.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, SupportsIndex

from penstock.errors import OptionError, StateError
from penstock.foundation.wording import show

VERSION: Final = 1
_LAST_EPOCH = 2**32 - 1  # random draws are keyed by 32 bits of it
_KEYS = ("version", "epoch", "step", "data", "pipeline", "order", "batches")
_MEANINGS = {
    "data": "the data set",
    "pipeline": "the pipeline",
    "order": "the order of records",
    "batches": "the batches",
}


class Identity(NamedTuple):
    """Everything that a loader must share with the one that made its state.

    Fingerprints of data and pipeline, options of the order of the records, and options that decide which
    records form a batch.
    """

    data: str
    pipeline: str
    order: Mapping[str, Any]
    batches: Mapping[str, Any]


def make_state(identity: Identity, epoch: int, step: int) -> dict[str, Any]:
    """Return the state after `step` batches of an epoch were taken."""
    return {
        "version": VERSION,
        "epoch": epoch,
        "step": step,
        "data": identity.data,
        "pipeline": identity.pipeline,
        "order": dict(identity.order),
        "batches": dict(identity.batches),
    }


def read_state(state: object, identity: Identity) -> tuple[int, int]:
    """Return (epoch, step) of a state."""
    if not isinstance(state, Mapping):
        raise _refuse("loader state", "a dict made by state_dict()", show(state))
    missing = [key for key in _KEYS if key not in state]
    if missing:
        advice = "It is incomplete, or not the state of a loader."
        raise _refuse("loader state", f"the key {missing[0]!r}", "none", advice)
    if state["version"] != VERSION:
        advice = "Another version of Penstock made it: continue with that version, or start again."
        raise _refuse("version of the loader state", str(VERSION), show(state["version"]), advice)
    for key, most in (("epoch", _LAST_EPOCH), ("step", 2**63 - 1)):
        value = state[key]
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            raise _refuse(f"{key} of the loader state", f"a whole number from 0 to {most}", show(value))
    for key, meaning in _MEANINGS.items():
        _compare(f"{meaning} of the loader state", getattr(identity, key), state[key])
    return state["epoch"], state["step"]


def check_whole(name: str, value: object) -> int:
    """Return an argument as an integer of at least 0."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or operator.index(value) < 0:
        raise OptionError(name, expected="a whole number of at least 0", got=show(value))
    return operator.index(value)


def _compare(what: str, expected: object, got: object) -> None:
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        for key in dict.fromkeys((*expected, *got)):
            _compare(f"{what}, {key!r}", expected.get(key), got.get(key))
    elif expected != got:
        if isinstance(expected, list | tuple) and isinstance(got, list | tuple) and [*expected] == [*got]:
            return  # JSON has only lists
        advice = (
            "Load the state into a loader with the same data, pipeline and options as the one that made it."
        )
        raise _refuse(what, show(expected), show(got), advice)


def _refuse(what: str, expected: str, got: str, advice: str = "") -> StateError:
    return StateError(what, expected=expected, got=got, advice=advice)
