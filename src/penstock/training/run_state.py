"""`state.json` of a run: its status, its identity, and its checkpoints.

In: the folder of a run. Out: the content of the file, or single values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from penstock.errors import StateError

STATE_NAME: Final = "state.json"
SUFFIX: Final = ".safetensors"
"""Suffix of the files of checkpoints."""
FORMAT: Final = 1
"""Version of the file and of checkpoints."""


@dataclass(frozen=True)
class StoredCheckpoint:
    """A checkpoint that `state.json` names: its file, the SHA-256, and the number of steps before it."""

    file: str
    sha256: str
    step: int


@dataclass(frozen=True, kw_only=True)
class RunState:
    """The content of `state.json`.

    Attributes:
        status: "running", "finished" or "failed".
        identity: Data, pipeline, model and options of the run.
        checkpoints: Checkpoints of the run, the newest first.
        weights: SHA-256 of the weights; None before the end of the run.
        shown: Entries for people alone, such as the current epoch.
    """

    status: str
    identity: Mapping[str, object]
    checkpoints: tuple[StoredCheckpoint, ...] = ()
    weights: str | None = None
    shown: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return the content of the file."""
        return {
            "format": FORMAT,
            "status": self.status,
            "identity": dict(self.identity),
            **self.shown,
            "checkpoints": [asdict(each) for each in self.checkpoints],
            **({} if self.status == "running" else {"weights": self.weights}),
        }


def read_state(folder: Path) -> RunState | None:
    """Return the content of `state.json`; None if there is none."""
    path = folder / STATE_NAME
    try:
        state = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise StateError("state of the run", path=path, expected="JSON", got=str(error)) from None
    keys = {"format": int, "status": str, "identity": dict, "checkpoints": list}
    is_state = isinstance(state, dict) and all(isinstance(state.get(key), kind) for key, kind in keys.items())
    if not is_state or state["format"] != FORMAT or not all(map(_is_entry, state["checkpoints"])):
        raise StateError("state of the run", path=path, expected="the state of a run", got="other content")
    digest = state.get("weights")
    return RunState(
        status=state["status"],
        identity=state["identity"],
        checkpoints=tuple(
            StoredCheckpoint(each["file"], each["sha256"], each["step"]) for each in state["checkpoints"]
        ),
        weights=digest if isinstance(digest, str) else None,
        shown={name: each for name, each in state.items() if name not in (*keys, "weights")},
    )


def read_result(folder: Path) -> tuple[str | None, str | None]:
    """Return the status of a run and the SHA-256 of its weights, each None if it is not stored."""
    state = read_state(folder)
    return (None, None) if state is None else (state.status, state.weights)


def read_step(folder: Path) -> int:
    """Return the number of steps of the newest checkpoint of a run."""
    state = read_state(folder)
    if state is None or not state.checkpoints:
        raise StateError("checkpoints", path=folder, expected="at least one", got="none")
    return state.checkpoints[0].step


def read_train_fingerprint(folder: Path) -> str | None:
    """Return the fingerprint of the split that a run was trained on; None if it is not stored."""
    try:
        state = json.loads((folder / STATE_NAME).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None  # an evaluation does not need it
    identity = state.get("identity") if isinstance(state, dict) else None
    data = identity.get("data") if isinstance(identity, dict) else None
    return data if isinstance(data, str) else None


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
        return False
    # A name that points outside the folder was not written by a run.
    is_name = Path(entry["file"]).name == entry["file"] and entry["file"].endswith(SUFFIX)
    step = entry.get("step")
    is_step = isinstance(step, int) and not isinstance(step, bool) and 0 <= step < 2**63
    return is_name and isinstance(entry.get("sha256"), str) and is_step
