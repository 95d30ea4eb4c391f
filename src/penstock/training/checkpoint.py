"""Where a killed run goes on: the two last states of it, each whole, whatever happens while one is written.

In: snapshots with what else a run remembers. Out: files `checkpoints/step-N.safetensors`, `state.json` that
names them with their SHA-256, and the newest one that is sound.
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
from penstock.training.tensorfile import read_tensors, write_tensors

STATE_NAME: Final = "state.json"
FOLDER_NAME: Final = "checkpoints"
_FORMAT: Final = 1
_NUM_KEPT: Final = 2
_SUFFIX: Final = ".safetensors"

_log = logging.getLogger("penstock")


class Moment(NamedTuple):
    """A run at a step.

    Attributes:
        step: How many batches the model took.
        snapshot: What it and its callbacks held.
        memory: What else the run remembers: loader, history, ….
    """

    step: int
    snapshot: Snapshot
    memory: Mapping[str, Any]


@dataclass
class Checkpoints:
    """The states of one run.

    Attributes:
        folder: Of the run.
        identity: What the run is a run of: a state of another one is refused.
        status: "running", "finished" or "failed".
    """

    folder: Path
    identity: Mapping[str, Any]
    status: str = "running"

    def __post_init__(self) -> None:
        self._kept: list[dict[str, Any]] = []
        self.identity = json.loads(json.dumps(_with_texts(self.identity)))  # as it will be read again

    def save(self, moment: Moment) -> None:
        """Write a state; of those before it, the last is kept.

        Raises:
            WriteError: The disk is full, or fails; the states before it are as they were.
        """
        name = f"step-{moment.step:010}{_SUFFIX}"
        if name in (each["file"] for each in self._kept):  # which its SHA-256 in state.json still stands for
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
        """Say how the run ended, and the SHA-256 of the weights that it has left."""
        self.status = status
        form = self._read_state()
        if form is not None:
            self._write({**form, "status": status, "weights": weights})

    def load(self) -> Moment | None:
        """Return the newest state that is sound; None, if there was none yet, or none is needed any more.

        Raises:
            StateError: There are states, and none is sound; or they are those of another run.
        """
        form = self._read_state()
        if form is None:
            return None
        for name in {**form["identity"], **self.identity}:
            expected, got = form["identity"].get(name), self.identity.get(name)
            if expected != got:
                advice = "The run was begun with another one: take that, or begin a new run."
                path = self.folder / STATE_NAME
                raise StateError(
                    f"{name} of the run",
                    path=path,
                    expected="none" if expected is None else expected,
                    got="none" if got is None else got,
                    advice=advice,
                )
        faults = []
        if form["status"] == "finished":
            self.status = "finished"
            return None
        self._remove_rests()
        for entry in form["checkpoints"]:
            try:
                moment = self._read_moment(entry)
            except PenstockError as error:
                _log.warning("checkpoint passed over: %s", error)
                faults.append(error)
                continue
            self._kept = [each for each in form["checkpoints"] if each["step"] <= entry["step"]]
            return moment
        raise StateError(
            "checkpoints",
            path=self.folder,
            expected="one that is sound",
            got=f"{len(faults)} that are damaged",
            advice="Begin a new run.",
        ) from (faults[0] if faults else None)

    def _read_moment(self, entry: Mapping[str, Any]) -> Moment:
        path = self.folder / FOLDER_NAME / str(entry["file"])
        arrays, texts = read_tensors(path, str(entry["sha256"]))
        try:
            paths, callbacks, memory = (json.loads(texts[key]) for key in ("paths", "callbacks", "memory"))
        except (KeyError, ValueError, RecursionError) as error:
            raise StateError("checkpoint", path=path, expected="a state of a run", got=str(error)) from None
        _check_moment(paths, callbacks, memory, path)
        return Moment(int(entry["step"]), Snapshot(arrays, paths, callbacks), memory)

    def _write_state(self, kept: list[dict[str, Any]], moment: Moment) -> None:
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

    def _write(self, form: Mapping[str, Any]) -> None:
        with AtomicFile(self.folder / STATE_NAME, overwrite=True) as file:
            file.write(json.dumps(form, indent=2).encode() + b"\n")

    def _read_state(self) -> dict[str, Any] | None:
        path = self.folder / STATE_NAME
        try:
            form = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise StateError("state of the run", path=path, expected="JSON", got=str(error)) from None
        keys = {"format": int, "status": str, "identity": dict, "checkpoints": list}
        is_state = isinstance(form, dict) and all(
            isinstance(form.get(key), kind) for key, kind in keys.items()
        )
        if not is_state or form["format"] != _FORMAT or not all(map(_is_entry, form["checkpoints"])):
            raise StateError(
                "state of the run", path=path, expected="what a run writes", got="something else"
            )
        return form  # type: ignore[no-any-return]

    def _remove_rests(self) -> None:
        """Remove what writers that were killed have left; nobody else writes here."""
        for folder in (self.folder, self.folder / FOLDER_NAME):
            for path in folder.glob(".tmp-*"):
                with contextlib.suppress(OSError):
                    path.unlink()

    def _remove_others(self) -> None:
        names = {each["file"] for each in self._kept}
        for path in (self.folder / FOLDER_NAME).glob(f"step-*{_SUFFIX}"):
            if path.name not in names:
                with contextlib.suppress(OSError):  # what is left of it costs room alone
                    path.unlink()


def _with_texts(value: Any) -> Any:
    """Return a value whose keys JSON takes."""
    if isinstance(value, Mapping):
        return {str(key) if isinstance(key, bytes) else key: _with_texts(each) for key, each in value.items()}
    return value


def _check_moment(paths: Any, callbacks: Any, memory: Any, path: Path) -> None:
    """Refuse a state of other types than a run writes; arrays are checked against the model later."""
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
    for place, is_sound in checks.items():
        if not is_sound:
            raise StateError(
                f"checkpoint at {place}",
                path=path,
                field=place,
                expected="what a run writes",
                got="another value",
            )


def _is_callback(state: Any) -> bool:
    return isinstance(state, dict) and all(isinstance(state.get(key), dict) for key in ("values", "arrays"))


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
        return False
    # A name that leaves the folder is none that was written here.
    is_name = Path(entry["file"]).name == entry["file"] and entry["file"].endswith(_SUFFIX)
    step = entry.get("step")
    is_step = isinstance(step, int) and not isinstance(step, bool) and 0 <= step < 2**63
    return is_name and isinstance(entry.get("sha256"), str) and is_step


def read_ending(folder: Path) -> tuple[str | None, str | None]:
    """Return how a run ended, and the SHA-256 of the weights that it has left, as far as its state tells."""
    form = Checkpoints(folder, {})._read_state() or {}
    digest = form.get("weights")
    return form.get("status"), digest if isinstance(digest, str) else None
