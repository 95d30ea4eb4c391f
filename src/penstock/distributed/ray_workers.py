"""Workers on a Ray cluster: one actor per worker in a placement group, each with a separate process.

In: tasks. Out: the events of the workers. An actor only starts, watches and ends its process, so that it
answers while the process waits for another worker that is gone; a process ends when its actor does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import ray
from ray.exceptions import RayError
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from penstock.distributed.ray_cluster import Cluster, first_line
from penstock.distributed.worker_process import Event, LostWorkerError, RankProcesses, WorkerTask, find_port
from penstock.errors import WorkerError

_PLACE_SECONDS: Final = 120  # a cluster that grows on demand needs some time
_START_SECONDS: Final = 120  # of an actor, which imports its packages first
_ANSWER_SECONDS: Final = 30  # of an actor, which does nothing else
_STOP_SECONDS: Final = 5  # an actor that does not answer is left: its process ends when it does


@contextmanager
def connected(
    address: str | None, num_workers: int, num_devices: int | None
) -> Iterator[Callable[[], RayWorkers]]:
    """Connect to a Ray cluster, unless this process is connected to one; yield what makes workers of a run.

    `address`: address of the cluster; None for the one in `RAY_ADDRESS`, or a new one on this machine.
    `num_devices`: number of GPUs of each worker, if the cluster has any; one by default.
    """
    with Cluster(address) as cluster:
        yield lambda: RayWorkers(num_workers, num_devices, is_fixed=cluster.is_local)


class WorkerHost:
    """The actor of one worker: starts its process, and passes on its events."""

    def __init__(self) -> None:
        self._processes = RankProcesses()

    def find_address(self) -> str:
        """Return an address of this machine at which a worker can listen."""
        return f"{ray.util.get_node_ip_address()}:{find_port('')}"

    def start(self, task: dict[str, Any]) -> int:
        """Start the process, and return its id."""
        return self._processes.start(WorkerTask(**task))

    def start_spare(self) -> None:
        """Start a process that waits to replace the process of the worker."""
        self._processes.start_spare()

    def take_events(self) -> list[Event]:
        """Return the events since the last call."""
        return self._processes.take_events()

    def stop(self) -> None:
        """End the process; the one that waits is kept."""
        self._processes.stop()

    def close(self) -> None:
        """End both processes."""
        self._processes.close()


class RayWorkers:
    """Workers of a Ray cluster, each with a CPU, and with GPUs if the cluster has enough for all.

    A restart reserves the same resources as the start. `is_fixed` is whether the cluster cannot grow.
    """

    def __init__(self, num_workers: int, num_devices: int | None, *, is_fixed: bool = False) -> None:
        self._num_workers = num_workers
        self._num_gpus = num_devices or 1
        self._is_fixed = is_fixed
        self._actors: list[Any] = []
        self._group: Any = None
        self._bundle: dict[str, int] = {}
        self._events: list[tuple[int, Event]] = []

    def find_address(self) -> str:
        """Return an address at which the first worker can listen."""
        if not self._actors:
            self._reserve()
        return str(_get_started([self._actors[0].find_address.remote()])[0])

    def _reserve(self) -> None:
        """Reserve a CPU, and GPUs if there are enough, for an actor per worker."""
        num_workers = self._num_workers
        total = ray.cluster_resources()
        if not self._bundle:
            self._bundle = self._choose_bundle(total.get("GPU", 0))
        bundle = self._bundle
        if self._is_fixed and total.get("CPU", 0) < num_workers:
            raise self._refuse(bundle, f"{total.get('CPU', 0):g} CPU")
        self._group = placement_group([bundle] * num_workers, strategy="PACK")
        if not self._group.wait(_PLACE_SECONDS):
            free = ray.available_resources()
            self._release()
            raise self._refuse(
                bundle, ", ".join(f"{free.get(name, 0):g} {name}" for name in bundle) + " free"
            )
        host = ray.remote(WorkerHost)
        for rank in range(num_workers):
            strategy = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=rank)
            self._actors.append(
                host.options(
                    num_cpus=bundle["CPU"],
                    num_gpus=bundle.get("GPU", 0),
                    scheduling_strategy=strategy,
                    max_restarts=0,
                ).remote()
            )

    def _choose_bundle(self, num_gpus: float) -> dict[str, int]:
        """Return the resources of each worker; a note says so if there are GPUs, but too few."""
        needed = self._num_gpus * self._num_workers
        if num_gpus >= needed:
            return {"CPU": 1, "GPU": self._num_gpus}
        if num_gpus:
            text = (
                f"The Ray cluster has {num_gpus:g} GPU, and {self._num_workers} workers need {needed}: they "
                "train on CPUs. Use fewer workers or devices to train on GPUs."
            )
            self._events.append((0, {"kind": "note", "text": text}))
        return {"CPU": 1}

    def _refuse(self, bundle: Mapping[str, int], got: str) -> WorkerError:
        return WorkerError(
            "Ray cluster",
            field="num_workers",
            expected=f"{self._num_workers} times {', '.join(f'{n} {name}' for name, n in bundle.items())}",
            got=got,
            advice="Use fewer workers, or a larger cluster.",
        )

    def start(self, tasks: list[WorkerTask]) -> None:
        """Start one process per task."""
        pairs = zip(self._actors, tasks, strict=True)
        _get_started([actor.start.remote(task.to_json()) for actor, task in pairs])

    def start_spares(self) -> None:
        """Start one process per worker that waits to replace it."""
        for actor in self._actors:
            actor.start_spare.remote()

    def take_events(self) -> list[tuple[int, Event]]:
        """Return the events since the last call, with the rank of each."""
        asked = [actor.take_events.remote() for actor in self._actors]
        deadline = time.monotonic() + _ANSWER_SECONDS
        found, self._events = self._events, []
        for rank, answer in enumerate(asked):
            try:
                left = max(0.0, deadline - time.monotonic())
                found += [(rank, event) for event in ray.get(answer, timeout=left)]
            except RayError as error:
                found.append((rank, {"kind": "lost", "text": first_line(error)}))
        return found

    def stop(self) -> None:
        """End the processes; those that wait are kept, unless an actor or its machine is gone."""
        if not self._call_all("stop"):
            self._release()

    def close(self) -> None:
        """End all processes, and free their resources."""
        self._call_all("close")
        self._release()

    def _call_all(self, method: str) -> bool:
        """Call a method of all actors; return whether all have answered."""
        asked = [getattr(actor, method).remote() for actor in self._actors]
        # An actor that is gone has ended its process.
        deadline = time.monotonic() + _STOP_SECONDS
        is_answered = True
        for answer in asked:
            try:
                ray.get(answer, timeout=max(0.0, deadline - time.monotonic()))
            except RayError:
                is_answered = False
        return is_answered

    def _release(self) -> None:
        for actor in self._actors:
            ray.kill(actor)
        self._actors = []
        if self._group is not None:
            remove_placement_group(self._group)
            self._group = None


def _get_started(answers: list[Any]) -> list[Any]:
    """Return the answers of actors, the first of each."""
    deadline = time.monotonic() + _START_SECONDS
    found = []
    for rank, answer in enumerate(answers):
        try:
            found.append(ray.get(answer, timeout=max(0.0, deadline - time.monotonic())))
        except RayError as error:
            raise LostWorkerError(f"Worker {rank} did not start ({first_line(error)})") from error
    return found
