"""Write the folder of a run, each file atomically, and the checkpoints from which an interrupted run resumes.

In: results of a run, an ensemble or a cross-validation so far. Out: `run.yaml`, `pipeline.json`,
`fields.json`, history and weights; files `checkpoints/step-N.safetensors`, of which the last two are kept,
`state.json` with their names and SHA-256, and the newest valid checkpoint again.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from penstock.dataset import Dataset
from penstock.errors import PenstockError, StateError
from penstock.foundation.wording import is_finite
from penstock.storage.atomic import AtomicFile
from penstock.training.history import Row, write_history
from penstock.training.recorded_data import save_fields
from penstock.training.run_config import RunConfig
from penstock.training.run_files import CONFIG_NAME, PIPELINE_NAME, write_config
from penstock.training.run_model import save_weights
from penstock.training.run_state import STATE_NAME, SUFFIX, RunState, StoredCheckpoint, read_state
from penstock.training.snapshot import Snapshot
from penstock.training.tensor_file import read_tensors, write_tensors
from penstock.transform.pipeline import Pipeline

FOLDER_NAME: Final = "checkpoints"
_NUM_KEPT: Final = 2

_log = logging.getLogger("penstock")


class Checkpoint(NamedTuple):
    """The state of a run after a step: model and callbacks, and in `memory` loader, history, and so on."""

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
    identity: Mapping[str, object]
    status: str = "running"

    def __post_init__(self) -> None:
        self._kept: tuple[StoredCheckpoint, ...] = ()
        self.identity = json.loads(json.dumps(_with_texts(self.identity)))  # as it is after reading

    def save(self, moment: Checkpoint) -> None:
        """Write a checkpoint; of the earlier ones, the last is kept."""
        name = f"step-{moment.step:010}{SUFFIX}"
        if name in (each.file for each in self._kept):  # state.json still has its SHA-256
            name = f"step-{moment.step:010}-again{SUFFIX}"
        texts = {
            "memory": json.dumps(dict(moment.memory)),
            "callbacks": json.dumps(list(moment.snapshot.callbacks)),
            "paths": json.dumps(dict(moment.snapshot.paths)),
        }
        digest = write_tensors(self.folder / FOLDER_NAME / name, moment.snapshot.arrays, texts)
        others = [each for each in self._kept if each.step != moment.step]
        kept = (StoredCheckpoint(name, digest, moment.step), *others)[:_NUM_KEPT]
        self._write_state(kept, moment)
        self._kept = kept
        self._remove_others()

    def finish(self, status: str, weights: str | None = None) -> None:
        """Store how the run ended, and the SHA-256 of its weights."""
        self.status = status
        state = read_state(self.folder)
        if state is not None:
            self._write(replace(state, status=status, weights=weights))

    def begin(self) -> None:
        """Store the identity of a run that has no checkpoints itself, such as an ensemble."""
        self._write_state((), Checkpoint(0, Snapshot({}), {}))

    def confirm(self) -> None:
        """Compare the identity with the stored one, and take over the status of the run."""
        state = read_state(self.folder)
        if state is not None:
            self._check_identity(state)
            self.status = state.status

    def load(self) -> Checkpoint | None:
        """Return the newest valid checkpoint; None if there is none yet, or the run is finished."""
        state = read_state(self.folder)
        if state is None:
            return None
        self._check_identity(state)
        faults = []
        if state.status == "finished":
            self.status = "finished"
            return None
        self._remove_temporary_files()
        for entry in state.checkpoints:
            try:
                moment = self._read_moment(entry)
            except PenstockError as error:
                _log.warning("skipping a damaged checkpoint: %s", error)
                faults.append(error)
                continue
            self._kept = tuple(each for each in state.checkpoints if each.step <= entry.step)
            return moment
        raise StateError(
            "checkpoints",
            path=self.folder,
            expected="at least one valid checkpoint",
            got=f"{len(faults)} damaged",
            advice="Start a new run.",
        ) from (faults[0] if faults else None)

    def _check_identity(self, state: RunState) -> None:
        if "averaging" in self.identity and "averaging" not in state.identity:
            raise StateError(
                "run",
                path=self.folder / STATE_NAME,
                expected="a run that was started by this version, to resume it",
                got="one of an earlier version, which trained in another way",
                advice="Use the run as it is, or start a new one.",
            )
        for name in {**state.identity, **self.identity}:
            expected, got = state.identity.get(name), self.identity.get(name)
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

    def _read_moment(self, entry: StoredCheckpoint) -> Checkpoint:
        path = self.folder / FOLDER_NAME / entry.file
        arrays, texts = read_tensors(path, entry.sha256)
        try:
            paths, callbacks, memory = (json.loads(texts[key]) for key in ("paths", "callbacks", "memory"))
        except (KeyError, ValueError, RecursionError) as error:
            raise StateError("checkpoint", path=path, expected="the state of a run", got=str(error)) from None
        _check_moment(paths, callbacks, memory, path)
        return Checkpoint(entry.step, Snapshot(arrays, paths, callbacks), memory)

    def _write_state(self, kept: tuple[StoredCheckpoint, ...], moment: Checkpoint) -> None:
        shown = {"step": moment.step, **{name: moment.memory.get(name) for name in ("epoch", "loader")}}
        self._write(RunState(status=self.status, identity=self.identity, checkpoints=kept, shown=shown))

    def _write(self, state: RunState) -> None:
        with AtomicFile(self.folder / STATE_NAME, overwrite=True) as file:
            file.write(json.dumps(state.to_json(), indent=2).encode() + b"\n")

    def _remove_temporary_files(self) -> None:
        """Remove the temporary files of interrupted writers; only one process writes here."""
        for folder in (self.folder, self.folder / FOLDER_NAME):
            for path in folder.glob(".tmp-*"):
                with contextlib.suppress(OSError):
                    path.unlink()

    def _remove_others(self) -> None:
        names = {each.file for each in self._kept}
        for path in (self.folder / FOLDER_NAME).glob(f"step-*{SUFFIX}"):
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


class RunWriter:
    """Writes the files of one run.

    Attributes:
        folder: Folder of the run.
        checkpoints: Checkpoints of the run, with its identity: what a resumed run must share with it.
    """

    def __init__(self, folder: Path, identity: Mapping[str, object]) -> None:
        self.folder = folder
        self.checkpoints = Checkpoints(folder, identity)

    @property
    def has_config(self) -> bool:
        """Whether `run.yaml` is written."""
        return (self.folder / CONFIG_NAME).is_file()

    def write_inputs(self, data: Dataset, pipeline: Pipeline) -> None:
        """Write the pipeline, and schema and conversion plan of the data."""
        pipeline.save(self.folder / PIPELINE_NAME)
        save_fields(self.folder, data.schema, None if data.manifest is None else data.manifest.plan)

    def write_config(self, config: RunConfig) -> None:
        """Write `run.yaml`."""
        write_config(self.folder, config)

    def write_history(self, rows: Sequence[Row]) -> None:
        """Write the metrics of all epochs."""
        write_history(self.folder, rows)

    def save(self, moment: Checkpoint) -> None:
        """Write a checkpoint."""
        self.checkpoints.save(moment)

    def finish(self, model: Any, pipeline: Pipeline, status: str = "finished") -> None:
        """Write the weights, and how the run ended."""
        self.checkpoints.finish(status, save_weights(self.folder, model, pipeline))

    def finish_runs(self, digest: str) -> None:
        """Mark an ensemble or a cross-validation as finished.

        `digest`: SHA-256 of the weights of its runs.
        """
        self.checkpoints.finish("finished", digest)
