"""Checkpoints, from which an interrupted run resumes: the last two are kept, each written atomically.

In: snapshots and the rest of a run's state. Out: files `checkpoints/step-N.safetensors`, `state.json` with
their names and SHA-256, and the newest valid checkpoint again.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from penstock.errors import PenstockError, StateError
from penstock.foundation.wording import is_finite
from penstock.storage.atomic import AtomicFile
from penstock.training.snapshot import Snapshot
from penstock.training.tensor_file import read_tensors, write_tensors

STATE_NAME: Final = "state.json"
FOLDER_NAME: Final = "checkpoints"
_FORMAT: Final = 1
_NUM_KEPT: Final = 2
_SUFFIX: Final = ".safetensors"

_log = logging.getLogger("penstock")


class Checkpoint(NamedTuple):
    """The whole state of a run after a step.

    Attributes:
        step: Number of steps so far.
        snapshot: State of the model and its callbacks.
        memory: State of the loader, history, and so on.
    """

    step: int
    snapshot: Snapshot
    memory: Mapping[str, Any]


@dataclass
class Checkpoints:
    """The checkpoints of one run.

    Attributes:
        folder: Folder of the run.
        identity: Data, pipeline, model and options of the run; checkpoints with other values are refused.
        status: "running", "finished" or "failed".
    """

    folder: Path
    identity: Mapping[str, Any]
    status: str = "running"

    def __post_init__(self) -> None:
        self._kept: list[dict[str, Any]] = []
        self.identity = json.loads(json.dumps(_with_texts(self.identity)))  # as it is after reading

    def save(self, moment: Checkpoint) -> None:
        """Write a checkpoint; of the earlier ones, the last is kept.

        Raises:
            WriteError: The disk is full, or fails; earlier checkpoints are unchanged.
        """
        name = f"step-{moment.step:010}{_SUFFIX}"
        if name in (each["file"] for each in self._kept):  # state.json still has its SHA-256
            name = f"step-{moment.step:010}-again{_SUFFIX}"
        texts = {
            "memory": json.dumps(dict(moment.memory)),
            "callbacks": json.dumps(list(moment.snapshot.callbacks)),
            "paths": json.dumps(dict(moment.snapshot.paths)),
        }
        digest = write_tensors(self.folder / FOLDER_NAME / name, moment.snapshot.arrays, texts)
        others = [each for each in self._kept if each["step"] != moment.step]
        kept = [{"file": name, "sha256": digest, "step": moment.step}, *others][:_NUM_KEPT]
        self._write_state(kept, moment)
        self._kept = kept
        self._remove_others()

    def finish(self, status: str, weights: str | None = None) -> None:
        """Store how the run ended, and the SHA-256 of its weights."""
        self.status = status
        state = self._read_state()
        if state is not None:
            self._write({**state, "status": status, "weights": weights})

    def begin(self) -> None:
        """Store the identity of a run that has no checkpoints of its own, such as an ensemble.

        Raises:
            WriteError: The disk is full, or fails.
        """
        self._write_state([], Checkpoint(0, Snapshot({}), {}))

    def confirm(self) -> None:
        """Compare the identity with the stored one, and take over the status of the run.

        Raises:
            StateError: The folder holds another run.
        """
        state = self._read_state()
        if state is not None:
            self._check_identity(state)
            self.status = state["status"]

    def load(self) -> Checkpoint | None:
        """Return the newest valid checkpoint; None if there is none yet, or the run is finished.

        Raises:
            StateError: No checkpoint is valid, or they belong to another run.
        """
        state = self._read_state()
        if state is None:
            return None
        self._check_identity(state)
        faults = []
        if state["status"] == "finished":
            self.status = "finished"
            return None
        self._remove_temporary_files()
        for entry in state["checkpoints"]:
            try:
                moment = self._read_moment(entry)
            except PenstockError as error:
                _log.warning("skipping a damaged checkpoint: %s", error)
                faults.append(error)
                continue
            self._kept = [each for each in state["checkpoints"] if each["step"] <= entry["step"]]
            return moment
        raise StateError(
            "checkpoints",
            path=self.folder,
            expected="at least one valid checkpoint",
            got=f"{len(faults)} damaged",
            advice="Start a new run.",
        ) from (faults[0] if faults else None)

    def _check_identity(self, state: Mapping[str, Any]) -> None:
        if "averaging" in self.identity and "averaging" not in state["identity"]:
            raise StateError(
                "run",
                path=self.folder / STATE_NAME,
                expected="a run that was started by this version, to resume it",
                got="one of an earlier version, which trained in another way",
                advice="Use the run as it is, or start a new one.",
            )
        for name in {**state["identity"], **self.identity}:
            expected, got = state["identity"].get(name), self.identity.get(name)
            if expected != got:
                advice = "Resume with the value that the run was started with, or start a new run."
                path = self.folder / STATE_NAME
                raise StateError(
                    f"{name} of the run",
                    path=path,
                    expected="none" if expected is None else expected,
                    got="none" if got is None else got,
                    advice=advice,
                )

    def _read_moment(self, entry: Mapping[str, Any]) -> Checkpoint:
        path = self.folder / FOLDER_NAME / str(entry["file"])
        arrays, texts = read_tensors(path, str(entry["sha256"]))
        try:
            paths, callbacks, memory = (json.loads(texts[key]) for key in ("paths", "callbacks", "memory"))
        except (KeyError, ValueError, RecursionError) as error:
            raise StateError("checkpoint", path=path, expected="the state of a run", got=str(error)) from None
        _check_moment(paths, callbacks, memory, path)
        return Checkpoint(int(entry["step"]), Snapshot(arrays, paths, callbacks), memory)

    def _write_state(self, kept: list[dict[str, Any]], moment: Checkpoint) -> None:
        shown = {name: moment.memory.get(name) for name in ("epoch", "loader")}
        self._write(
            {
                "format": _FORMAT,
                "status": self.status,
                "identity": dict(self.identity),
                "step": moment.step,
                **shown,
                "checkpoints": kept,
            }
        )

    def _write(self, state: Mapping[str, Any]) -> None:
        with AtomicFile(self.folder / STATE_NAME, overwrite=True) as file:
            file.write(json.dumps(state, indent=2).encode() + b"\n")

    def _read_state(self) -> dict[str, Any] | None:
        path = self.folder / STATE_NAME
        try:
            state = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise StateError("state of the run", path=path, expected="JSON", got=str(error)) from None
        keys = {"format": int, "status": str, "identity": dict, "checkpoints": list}
        is_state = isinstance(state, dict) and all(
            isinstance(state.get(key), kind) for key, kind in keys.items()
        )
        if not is_state or state["format"] != _FORMAT or not all(map(_is_entry, state["checkpoints"])):
            raise StateError(
                "state of the run", path=path, expected="the state of a run", got="other content"
            )
        return state  # type: ignore[no-any-return]

    def _remove_temporary_files(self) -> None:
        """Remove the temporary files of interrupted writers; only one process writes here."""
        for folder in (self.folder, self.folder / FOLDER_NAME):
            for path in folder.glob(".tmp-*"):
                with contextlib.suppress(OSError):
                    path.unlink()

    def _remove_others(self) -> None:
        names = {each["file"] for each in self._kept}
        for path in (self.folder / FOLDER_NAME).glob(f"step-*{_SUFFIX}"):
            if path.name not in names:
                with contextlib.suppress(OSError):  # a file that stays only takes space
                    path.unlink()


def _with_texts(value: Any) -> Any:
    """Return a value whose keys are valid in JSON."""
    if isinstance(value, Mapping):
        return {str(key) if isinstance(key, bytes) else key: _with_texts(each) for key, each in value.items()}
    return value


def _check_moment(paths: Any, callbacks: Any, memory: Any, path: Path) -> None:
    """Raise an error for values of wrong types; arrays are checked against the model later."""
    known = memory if isinstance(memory, dict) else {}
    history, epoch = known.get("history"), known.get("epoch")
    checks = {
        "$.paths": isinstance(paths, dict) and all(isinstance(each, str) for each in paths.values()),
        "$.callbacks": isinstance(callbacks, list) and all(map(_is_callback, callbacks)),
        "$.memory": isinstance(memory, dict),
        "$.memory.loader": isinstance(known.get("loader"), dict),
        "$.memory.history": isinstance(history, list) and all(isinstance(row, dict) for row in history),
        "$.memory.epoch": isinstance(epoch, int) and 0 <= epoch < 2**63,
        "$.memory.seconds": is_finite(known.get("seconds")),
    }
    for location, is_valid in checks.items():
        if not is_valid:
            raise StateError(
                f"checkpoint at {location}",
                path=path,
                field=location,
                expected="a value that a run writes",
                got="another value",
            )


def _is_callback(state: Any) -> bool:
    return isinstance(state, dict) and all(isinstance(state.get(key), dict) for key in ("values", "arrays"))


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
        return False
    # A name that points outside the folder was not written by a run.
    is_name = Path(entry["file"]).name == entry["file"] and entry["file"].endswith(_SUFFIX)
    step = entry.get("step")
    is_step = isinstance(step, int) and not isinstance(step, bool) and 0 <= step < 2**63
    return is_name and isinstance(entry.get("sha256"), str) and is_step


def read_result(folder: Path) -> tuple[str | None, str | None]:
    """Return the status of a run and the SHA-256 of its weights, each None if it is not stored."""
    state = Checkpoints(folder, {})._read_state() or {}
    digest = state.get("weights")
    return state.get("status"), digest if isinstance(digest, str) else None


def read_step(folder: Path) -> int:
    """Return the number of steps of the newest checkpoint of a run.

    Raises:
        StateError: There is none.
    """
    state = Checkpoints(folder, {})._read_state()
    if state is None or not state["checkpoints"]:
        raise StateError("checkpoints", path=folder, expected="at least one", got="none")
    return int(state["checkpoints"][0]["step"])
