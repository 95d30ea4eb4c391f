"""Where a loader is, as a few facts, and whether a state from elsewhere is one of this loader's.

In: epoch and step, and what decides the order. Out: a small object for JSON, or a `StateError` that names the
difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from penstock.errors import StateError
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
    """What a state is the state of.

    Attributes:
        data: Fingerprint of the data.
        pipeline: Fingerprint of the pipeline.
        order: What decides the order of records.
        batches: What decides which of them make a batch.
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
    """Return (epoch, step) of a state.

    Raises:
        StateError: It is no state, or one of something else; the message names the difference.
    """
    if not isinstance(state, Mapping):
        raise _refuse("state", "an object that state_dict() made", show(state))
    missing = [key for key in _KEYS if key not in state]
    if missing:
        raise _refuse("state", f"the key {missing[0]!r}", "none", "It is cut off, or no state of a loader.")
    if state["version"] != VERSION:
        advice = "Another version of Penstock made it: go on with that one, or begin anew."
        raise _refuse("version of the state", str(VERSION), show(state["version"]), advice)
    for key, most in (("epoch", _LAST_EPOCH), ("step", 2**63 - 1)):
        value = state[key]
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            raise _refuse(f"{key} of the state", f"a whole number from 0 to {most}", show(value))
    for key, meaning in _MEANINGS.items():
        _compare(f"{meaning} of the state", getattr(identity, key), state[key])
    return state["epoch"], state["step"]


def _compare(what: str, expected: object, got: object) -> None:
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        for key in dict.fromkeys((*expected, *got)):
            _compare(f"{what}, {key!r}", expected.get(key), got.get(key))
    elif expected != got and not (_is_sequence(expected) and _is_sequence(got) and _same(expected, got)):
        advice = "A state goes on only where it was made: load it into a loader with the same choices."
        raise _refuse(what, show(expected), show(got), advice)


def _is_sequence(value: object) -> bool:
    return isinstance(value, list | tuple)  # JSON has but lists


def _same(expected: Any, got: Any) -> bool:
    return list(expected) == list(got)


def _refuse(what: str, expected: str, got: str, advice: str = "") -> StateError:
    return StateError(what, expected=expected, got=got, advice=advice)
