"""The model of a prediction or an evaluation on a Ray cluster: workers predict groups of batches, in order.

In: batches of a model in order. Out: the same batches with their predictions, each once and in order. The
predictions of each group are also saved beside the output until that is complete, by a digest of model and
inputs, so that a resumed run predicts only missing groups. The caller removes them after that.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.distributed.ray_cluster import Cluster, Shared
from penstock.errors import NoSuchPathError, OptionError, PathError, PenstockError
from penstock.export.manifest import MANIFEST_NAME, is_export
from penstock.foundation.keras_backend import VARIABLE
from penstock.jobs.predict.new_rows import ModelBatch
from penstock.jobs.predict.trained import Trained, open_trained
from penstock.storage.paths import locate
from penstock.storage.store_path import AnyPath, as_path, resolve_path

Predicted: TypeAlias = Mapping[str, "np.ndarray[Any, Any]"]

_GROUP_BYTES: Final = 8 << 20
_GROUP_BATCHES: Final = 32
_MODEL_FILES: Final = ("run.yaml", "pipeline.json", "fields.json", "weights.safetensors")
_PIECE_BYTES: Final = 1 << 20
_GPU_SETTINGS: Final = {"TF_FORCE_GPU_ALLOW_GROWTH": "true", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
"""By default, a process takes all memory of a GPU. An idle worker may still hold the GPU of the next one."""


class ModelFolder(NamedTuple):
    """The path from which workers open a run or an export, and the local folder with its files or a copy."""

    path: AnyPath
    files: Path


def find_model_folder(trained: Trained, given: object = None) -> ModelFolder:
    """Return the folder of a run or an export from which workers open its model.

    `given`: what it was opened from: an export that was opened from a store has only the path of its copy.
    """
    path = as_path(given) if isinstance(given, str | os.PathLike) else trained.folder
    if trained.needs_model or trained.pipeline.maps or path is None:
        raise OptionError(
            "engine",
            field="engine",
            expected="'local' for a run with code of your own, which its folder does not have",
            got="'ray'",
            advice="Export the run and predict with that: `ps.export_model(RUN, OUT, format='onnx')`.",
        )
    return ModelFolder(resolve_path(path), trained.files)


def digest_model(folder: Path) -> str:
    """Return the SHA-256 of the files that the predictions of a run or an export depend on, in hex."""
    names = (MANIFEST_NAME,) if is_export(folder) else _MODEL_FILES
    paths = sorted(path for name in names for path in folder.rglob(name) if "checkpoints" not in path.parts)
    if not paths:
        raise PathError(
            f"the machine {os.uname().nodename} does not see the run",
            path=folder,
            advice="All machines of the cluster must see the folder of the run, under the same path.",
        )
    found = hashlib.sha256()
    for path in paths:
        found.update(path.relative_to(folder).as_posix().encode() + b"\0")
        with path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                found.update(piece)
    return found.hexdigest()


@dataclass
class RemoteModel:
    """A model that each worker opens once, from its folder; digest and backend of Keras are the driver's."""

    folder: AnyPath
    digest: str
    backend: str | None
    _ask: Callable[[Mapping[str, NDArray[Any]]], Predicted] | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_ask": None}

    def ask(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the predictions of a batch."""
        if self._ask is None:
            self._ask = self._open().predictor()
        return {name: np.asarray(values) for name, values in self._ask(inputs).items()}

    def _open(self) -> Trained:
        if self.backend is not None:
            os.environ[VARIABLE] = self.backend
        for name, value in _GPU_SETTINGS.items():
            os.environ.setdefault(name, value)
        if locate(self.folder).has_folders:  # all machines see it
            self._check(Path(self.folder))  # before Keras is imported
            return open_trained(self.folder, None, None)
        trained = open_trained(self.folder, None, None)
        self._check(find_model_folder(trained, self.folder).files)
        return trained

    def _check(self, files: Path) -> None:
        if digest_model(files) != self.digest:
            raise PathError(
                f"the run on the machine {os.uname().nodename} has other files",
                path=self.folder,
                advice="All machines of the cluster must see the same folder of the run.",
            )


def predict_batches(shared: Shared, batches: Sequence[Mapping[str, NDArray[Any]]]) -> list[Predicted]:
    """Predict batches on a worker."""
    model: RemoteModel = shared.load()
    return [model.ask(inputs) for inputs in batches]


class SavedPredictions:
    """Predictions of groups of batches, in a hidden folder beside the output."""

    def __init__(self, out: AnyPath, *, resume: bool) -> None:
        """Open the folder.

        `out`: the output, on a disk or in an object store.
        """
        self._folder = locate(out.with_name(f".{out.name}.partial"))
        if not resume:
            self.remove()

    def find(self, digest: str) -> list[Predicted] | None:
        """Return saved predictions, or None; a file that is damaged does not count."""
        data = self._read(digest)
        with contextlib.suppress(OSError, ValueError, KeyError, EOFError):
            if hashlib.sha256(data[32:]).digest() == data[:32]:
                with np.load(io.BytesIO(data[32:])) as arrays:
                    found: list[dict[str, NDArray[Any]]] = [{} for _ in range(int(arrays["batches"]))]
                    for key in arrays.files:
                        number, _, name = key.partition(" ")
                        if name:
                            found[int(number)][name] = arrays[key]
                    return list(found)
        return None

    def save(self, digest: str, predicted: Sequence[Predicted]) -> None:
        """Save predictions."""
        arrays = {f"{i} {name}": each for i, batch in enumerate(predicted) for name, each in batch.items()}
        content = io.BytesIO()
        np.savez(content, batches=np.int64(len(predicted)), **arrays)  # type: ignore[arg-type]
        data = content.getvalue()
        whole = hashlib.sha256(data).digest() + data
        (self._folder / digest).write(whole, syncs_folder=False)

    def _read(self, digest: str) -> bytes:
        """Return a file of the folder; b"" if there is none."""
        with contextlib.suppress(NoSuchPathError):
            return (self._folder / digest).read()
        return b""

    def remove(self) -> None:
        """Remove the folder."""
        self._folder.remove_folder()


@dataclass
class _Group:
    """Batches that one task predicts: the reference of its result, or the result itself."""

    batches: list[ModelBatch]
    digest: str
    reference: Any = None
    predicted: list[Predicted] | None = None


class RayModel:
    """Predicts batches on a cluster; leaving the context cancels unfinished tasks."""

    def __init__(
        self,
        cluster: Cluster,
        folder: ModelFolder,
        saved: SavedPredictions | None = None,
        max_batches: int | None = None,
    ) -> None:
        """Share the model.

        `saved`: where predictions are saved; None saves none. `max_batches`: maximum number of batches of a
        task; 32 by default.
        """
        self._max_batches = max_batches or _GROUP_BATCHES
        self._cluster = cluster
        self._digest = digest_model(folder.files)
        self._shared = cluster.share(RemoteModel(folder.path, self._digest, os.environ.get(VARIABLE)))
        self._num_gpus = 1 if cluster.has_gpus else 0
        self._saved = saved
        self._pending: deque[_Group] = deque()

    def answer(self, batches: Iterator[ModelBatch]) -> Iterator[tuple[ModelBatch, Predicted | None]]:
        """Yield the batches in order, each with its predictions, or None if no row is left in it."""
        group: list[ModelBatch] = []
        size = 0
        failure: PenstockError | None = None
        try:
            for batch in batches:
                group.append(batch)
                size += sum(np.asarray(each).nbytes for each in (batch.inputs or {}).values())
                if size >= _GROUP_BYTES or len(group) >= self._max_batches:
                    self._begin(group)
                    group, size = [], 0
                    yield from self._take(2 * self._cluster.num_workers)
        except PenstockError as error:
            failure = error
        if group:
            self._begin(group)
        yield from self._take(0)
        if failure is not None:
            raise failure

    def predict_each(self, batches: Iterable[Mapping[str, NDArray[Any]]]) -> Iterator[Predicted]:
        """Yield the predictions of batches of inputs, in order."""
        nothing = pa.record_batch({})
        # Copies, because a loader reuses the memory of a batch before the task of its group begins.
        copied = ({name: np.array(values) for name, values in each.items()} for each in batches)
        for _, predicted in self.answer(ModelBatch(each, 0, nothing, (), 0) for each in copied):
            if predicted is not None:
                yield predicted

    def _begin(self, batches: list[ModelBatch]) -> None:
        inputs = [batch.inputs for batch in batches if batch.inputs is not None]
        group = _Group(batches, _digest_inputs(self._digest, inputs))
        if not inputs:
            group.predicted = []
        elif self._saved is not None:
            group.predicted = self._saved.find(group.digest)
        if group.predicted is None:
            packed = self._cluster.put(inputs)
            group.reference = self._cluster.submit(
                predict_batches, self._shared, packed, num_gpus=self._num_gpus
            )
        self._pending.append(group)

    def _take(self, most: int) -> Iterator[tuple[ModelBatch, Predicted | None]]:
        while len(self._pending) > most:
            group = self._pending[0]
            predicted = group.predicted
            if predicted is None:
                predicted = self._cluster.get(group.reference)
                if self._saved is not None:
                    self._saved.save(group.digest, predicted)
            self._pending.popleft()
            each = iter(predicted)
            for batch in group.batches:
                yield batch, None if batch.inputs is None else next(each)

    def __enter__(self) -> RayModel:
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.cancel([each.reference for each in self._pending if each.reference is not None])
        self._pending.clear()


def _digest_inputs(model: str, batches: Sequence[Mapping[str, NDArray[Any]]]) -> str:
    """Return the SHA-256 of all that predictions depend on, in hex."""
    found = hashlib.sha256(model.encode())
    for inputs in batches:
        for name in sorted(inputs):
            array = np.ascontiguousarray(inputs[name])
            found.update(f"{name}\0{array.dtype.str}{array.shape}\0".encode())
            if array.dtype.hasobject:
                for value in array.reshape(-1).tolist():
                    data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
                    found.update(f"{len(data)}\0".encode() + data)
            else:
                found.update(array.reshape(-1).view(np.uint8).data)
    return found.hexdigest()
