"""Several workers or devices with JAX: their connection, and batches as arrays that all of them share.

In: the loaders of a worker, for its part of each batch and for whole batches. Out: a `ShareFeed` for Keras,
whose batches are the same global arrays for any number of workers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding, PartitionSpec
from numpy.typing import NDArray

from penstock.batch.batch_plan import check_shares
from penstock.bridge.keras import KerasFeed
from penstock.bridge.outputs import Padding, Sizes, find_paddings, pad_to
from penstock.errors import OptionError
from penstock.transform.output import Output

if TYPE_CHECKING:
    from penstock.batch.loader import Loader
    from penstock.batch.maker import MadeBatch

_JOIN_SECONDS: Final = (
    300  # workers import their packages before they connect, which differs between machines
)
_HEARTBEAT_SECONDS: Final = 20  # a worker whose group is gone ends itself after this time
_LEAVE_SECONDS: Final = 20
_COMPILE_SECONDS: Final = 0.1  # programs that compile faster are not kept


def join_workers(address: str, rank: int, num_workers: int) -> None:
    """Connect this process with the other workers; must come before anything is computed.

    `address`: host and port at which rank 0 listens.
    """
    # On CPUs JAX has several ways to add arrays of processes; gloo needs nothing beside TCP.
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        address,
        num_workers,
        rank,
        # Anyone who reaches the port could join, and by default JAX listens on all interfaces.
        coordinator_bind_address=address,
        initialization_timeout=_JOIN_SECONDS,
        heartbeat_timeout_seconds=_HEARTBEAT_SECONDS,
        shutdown_timeout_seconds=_LEAVE_SECONDS,
    )


def count_gpus() -> int:
    """Return the number of GPUs that JAX uses in this process; 0 on CPUs."""
    return jax.local_device_count() if jax.default_backend() == "gpu" else 0


def keep_compiled(folder: Path) -> None:
    """Keep compiled functions in a folder, so that a worker that is started again need not compile them.

    Rank 0 writes them, and workers of the same machine read them. Other
    machines have separate folders, as their processors may differ.

    `folder`: the folder. `JAX_COMPILATION_CACHE_DIR` takes precedence.
    """
    if jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(folder / os.uname().nodename))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _COMPILE_SECONDS)


def leave_workers() -> None:
    """End the connection, once all workers have called this."""
    jax.distributed.shutdown()


def list_workers_devices(num_devices: int | None) -> list[Any]:
    """Return the devices of all workers, the same number of each.

    `num_devices`: number of devices of each worker; None takes all.
    """
    by_worker: dict[int, list[Any]] = {}
    for device in jax.devices():
        by_worker.setdefault(device.process_index, []).append(device)
    least = min(map(len, by_worker.values()))
    if num_devices is not None and num_devices > least:
        advice = "On CPUs, the environment variable JAX_NUM_CPU_DEVICES=N gives N devices."
        raise OptionError(
            "num_devices",
            field="num_devices",
            expected=f"at most {least}, the number of {jax.default_backend()} devices",
            got=num_devices,
            advice=advice,
        )
    number = least if num_devices is None else num_devices
    return [device for rank in sorted(by_worker) for device in by_worker[rank][:number]]


def take_first(values: Sequence[float]) -> list[float]:
    """Return the numbers of rank 0, on all workers."""
    if jax.process_count() == 1:
        return list(values)
    # Not by a sum, as values of other ranks than 0 may be NaN; as bytes, as JAX has no float64.
    sent = np.frombuffer(np.asarray(values, np.float64).tobytes(), np.uint32)
    received = multihost_utils.process_allgather(sent)[0]
    return [float(each) for each in np.frombuffer(np.asarray(received, np.uint32).tobytes(), np.float64)]


class ShareFeed(KerasFeed):
    """The batches of several workers or devices as input of Keras.

    Each worker loads its part of a batch. Together the parts are one array, with the rows of the batch
    of a single process. A batch that cannot be divided by the number of devices, the last of an epoch, is
    loaded by each worker as a whole and computed by each device. The position of the loader `share`, which
    loads the part of this worker, is the position of the worker. `mesh` has the devices of all workers on
    one axis.
    """

    def __init__(self, share: Loader, whole: Loader, mesh: jax.sharding.Mesh) -> None:
        super().__init__(share)
        self._whole = whole
        self._parts = NamedSharding(mesh, PartitionSpec(mesh.axis_names[0]))
        self._copies = NamedSharding(mesh, PartitionSpec())
        check_shares(share.options.batch_size, mesh.devices.size, "devices")
        if whole.may_skip:
            raise OptionError(
                "on_error",
                field="on_error",
                expected="'raise' with several workers or devices, as they share batches of one size",
                got="another policy, which may leave records out",
                advice="Run 'penstock repair' first.",
            )
        self._last_rows = len(whole.where(whole.num_steps(0) - 1, 0)) % mesh.devices.size  # of the last batch

    def get_jax_iterator(self) -> Iterator[Any]:
        """Return the batches as arrays of all workers."""
        outputs = self.loader.signature()[0]
        varying = {name: output for name, output in outputs.items() if None in output.shape}
        paddings = find_paddings(self.loader.pipeline)

        def read(made: MadeBatch) -> tuple[bool, tuple[Any, ...]]:
            epoch, step = made.ticket.epoch, made.ticket.step
            if not self._last_rows or step < self._whole.num_steps(epoch) - 1:
                return False, made.batch
            with self._whole.read(epoch, step, step + 1) as batches:
                return True, next(iter(batches))

        for is_copied, (inputs, *others) in self._read(read):
            shapes = self._agree_on_shapes({name: inputs[name] for name in varying}, varying, paddings)
            padded = {
                name: pad_to(inputs[name], shape, paddings.get(name, Padding()).value)
                for name, shape in shapes.items()
            }
            place = self._copy if is_copied else self._join
            targets, *weights = others
            batch = self.arrange(({**inputs, **padded}, targets, *weights))
            yield jax.tree.map(place, batch)

    def _agree_on_shapes(
        self,
        arrays: Mapping[str, NDArray[Any]],
        outputs: Mapping[str, Output],
        paddings: Mapping[str, Padding],
    ) -> dict[str, tuple[int, ...]]:
        """Return the shapes to which varying lengths are padded, as in one process with the whole batch."""
        if not arrays:
            return {}
        own = np.concatenate([np.array(array.shape[1:], np.int32) for array in arrays.values()])
        everyone = multihost_utils.process_allgather(own) if jax.process_count() > 1 else own[None]
        lengths = iter(everyone.max(axis=0).tolist())
        shapes = {}
        for name, array in arrays.items():
            shape = [len(array)]
            for axis, dim in enumerate(outputs[name].shape):
                length = next(lengths)
                most = paddings[name].most if name in paddings and axis == 0 else None
                shape.append(length if dim is not None else Sizes().find(length, most))
            shapes[name] = tuple(shape)
        return shapes

    def _join(self, array: NDArray[Any]) -> jax.Array:
        return jax.make_array_from_process_local_data(self._parts, _as_computed(array))

    def _copy(self, array: NDArray[Any]) -> jax.Array:
        return jax.make_array_from_process_local_data(self._copies, _as_computed(array), array.shape)


def _as_computed(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array in the type in which JAX has it: 32 bits instead of 64, unless configured."""
    return np.asarray(array, jax.dtypes.canonicalize_dtype(array.dtype))
