"""One of several workers or devices that train a model together, with Keras' own data parallelism on JAX.

In: the rank of this process. Out: a `Worker`, which places the variables of models on all devices, makes the
feeds, and lets all workers use the numbers of the first one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import keras

from penstock.batch.loader import Loader
from penstock.bridge.keras import KerasFeed
from penstock.dataset import Dataset
from penstock.errors import OptionError
from penstock.training.progress import Watcher

if TYPE_CHECKING:
    from penstock.bridge.jax_workers import ShareFeed

JAX: Final = "jax"


class WorkerLauncher(Protocol):
    """Object that starts workers, such as `penstock.distributed.workers.Launcher`."""

    def launch(self, folder: Path, data: Dataset, batch_size: int, watcher: Watcher) -> None:
        """Train in other processes, from the checkpoint in a folder to the end of the run.

        Args:
            folder: Folder of the run.
            data: The data set, which workers open again.
            batch_size: Number of records of a batch, which the workers share.
            watcher: Object that is notified of progress.

        Raises:
            WorkerError: Workers were lost several times without progress, or one failed.
        """


@dataclass(frozen=True)
class Worker:
    """One of the processes that train a model together; one process may have several devices.

    Attributes:
        rank: Number of this worker, from 0; rank 0 writes the files of the run.
        num_workers: Number of workers.
        num_devices: Number of devices of each worker; None takes all.
    """

    rank: int = 0
    num_workers: int = 1
    num_devices: int | None = None

    @property
    def shard(self) -> tuple[int, int]:
        """The part of each batch that this worker loads, as the option `shard` of a loader."""
        return self.rank, self.num_workers

    @property
    def is_first(self) -> bool:
        """Whether this worker writes files and reports progress."""
        return self.rank == 0

    @contextmanager
    def distributing(self) -> Iterator[None]:
        """Place the variables of models that are built inside on the devices of all workers."""
        # JAX is loaded only where several workers or devices are used.
        from keras.src.backend.jax import distribution_lib  # noqa: PLC0415

        from penstock.bridge.jax_workers import list_workers_devices  # noqa: PLC0415

        devices = list_workers_devices(self.num_devices)
        parallel = keras.distribution.DataParallel(devices=devices, auto_shard_dataset=False)
        place = distribution_lib.distribute_data_input

        def keep_placed(batch: Any, layout: Any, batch_dim_name: str) -> Any:
            # A `ShareFeed` places its batches itself: Keras would cut one that has to be copied.
            return batch if hasattr(batch, "sharding") else place(batch, layout, batch_dim_name)

        before = keras.distribution.distribution()
        keras.distribution.set_distribution(parallel)
        distribution_lib.distribute_data_input = keep_placed
        try:
            yield
        finally:
            distribution_lib.distribute_data_input = place
            keras.distribution.set_distribution(before)

    def make_feed(self, share: Loader, whole: Loader) -> ShareFeed:
        """Return the batches of a loader for Keras, inside `distributing`."""
        from penstock.bridge.jax_workers import ShareFeed  # noqa: PLC0415 - as above

        return ShareFeed(share, whole, keras.distribution.distribution().device_mesh.backend_mesh)


class SharedLogs(keras.callbacks.Callback):  # type: ignore[misc]
    """Gives all workers the metrics of the first one, so that all choose the same epoch and stop together.

    The metrics are computed from the same sums on all workers, but not always by the same processors. Must
    come before callbacks that decide by the logs.
    """

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:  # noqa: ARG002
        """Replace the metrics of an epoch."""
        from penstock.bridge.jax_workers import take_first  # noqa: PLC0415 - as above

        if logs:
            logs.update(zip(logs, take_first([float(each) for each in logs.values()]), strict=True))


def check_backend(option: str) -> None:
    """Refuse several workers or devices with another backend than JAX."""
    backend = keras.backend.backend()
    if backend != JAX:
        raise OptionError(
            option,
            field=option,
            expected="the backend jax, the only one of Keras that trains over several processes",
            got=f"the backend {backend}",
            advice="Set KERAS_BACKEND=jax before Keras is imported.",
        )


def make_feed(loader: Loader, whole: Loader | None, worker: Worker | None) -> KerasFeed:
    """Return the batches of a loader for Keras, in one process or as one of several workers."""
    return KerasFeed(loader) if worker is None or whole is None else worker.make_feed(loader, whole)
