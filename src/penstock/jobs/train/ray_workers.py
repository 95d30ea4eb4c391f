"""Workers on a Ray cluster: one actor per worker in a placement group, each with a process of its own.

In: tasks. Out: the events of the workers. An actor only starts, watches and ends its process, so that it
answers while the process waits for another worker that is gone; a process ends when its actor does.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import ray
from ray.exceptions import AuthenticationError, GetTimeoutError, RayActorError, RayError
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from penstock.errors import OptionError, WorkerError
from penstock.jobs.train.worker_messages import Event, WorkerTask
from penstock.jobs.train.worker_process import WorkerProcess, find_port

_PLACE_SECONDS: Final = 120  # a cluster that grows on demand needs some time
_ANSWER_SECONDS: Final = 30  # of an actor, which does nothing else


@contextmanager
def connected(
    address: str | None, num_workers: int, num_devices: int | None
) -> Iterator[Callable[[], RayWorkers]]:
    """Connect to a Ray cluster, unless this process is connected to one.

    Args:
        address: Address of the cluster; None for that in `RAY_ADDRESS`, or a new one on this machine.
        num_workers: Number of workers.
        num_devices: Number of GPUs of each worker, if the cluster has any; one by default.

    Yields:
        A function that reserves a place for each worker.

    Raises:
        OptionError: There is no such cluster, or it does not accept the token.
    """
    is_ours = not ray.is_initialized()
    if is_ours:
        # Workers report by themselves.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            ray.init(
                # Ray itself would join any cluster that happens to run on this machine.
                address=address or os.environ.get("RAY_ADDRESS") or "local",
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        except AuthenticationError as error:
            raise _refuse_address(address, f"no access ({_first_line(error)})") from error
        except (ConnectionError, RuntimeError, ValueError, RayError) as error:
            raise _refuse_address(address, _first_line(error)) from error
    try:
        yield partial(RayWorkers, num_workers, num_devices)
    finally:
        if is_ours:
            ray.shutdown()


def _refuse_address(address: str | None, got: str) -> OptionError:
    return OptionError(
        "address",
        field="address",
        expected="a running Ray cluster" if address is None else f"a running Ray cluster at {address}",
        got=got,
        advice="Start one with 'ray start --head'. A cluster with tokens needs RAY_AUTH_MODE=token, and its "
        "token in RAY_AUTH_TOKEN or ~/.ray/auth_token, on every machine (docs/workers.md).",
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


class WorkerHost:
    """The actor of one worker: starts its process, and passes on its events."""

    def __init__(self) -> None:
        self._process: WorkerProcess | None = None

    def find_address(self) -> str:
        """Return an address of this machine at which a worker can listen."""
        return f"{ray.util.get_node_ip_address()}:{find_port('')}"

    def start(self, task: dict[str, Any]) -> int:
        """Start the process, and return its id."""
        self._process = WorkerProcess(WorkerTask(**task))
        return self._process.pid

    def take_events(self) -> list[Event]:
        """Return the events since the last call."""
        return [] if self._process is None else self._process.take_events()

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.stop()


class RayWorkers:
    """Workers of a Ray cluster, each with a CPU, and with GPUs if the cluster has enough for all.

    Args:
        num_workers: Number of workers.
        num_devices: Number of GPUs of each worker; one by default.

    Attributes:
        pids: Process ids of the workers, by rank.
    """

    def __init__(self, num_workers: int, num_devices: int | None) -> None:
        """Reserve a place for each worker.

        Raises:
            WorkerError: The cluster has no room for all of them.
        """
        self.pids: list[int] = []
        self._actors: list[Any] = []
        num_gpus = num_devices or 1
        has_gpus = ray.cluster_resources().get("GPU", 0) >= num_gpus * num_workers
        place = {"CPU": 1, **({"GPU": num_gpus} if has_gpus else {})}
        self._group = placement_group([place] * num_workers, strategy="PACK")
        if not self._group.wait(_PLACE_SECONDS):
            free = ray.available_resources()
            remove_placement_group(self._group)
            raise WorkerError(
                "Ray cluster",
                expected=f"{num_workers} times {', '.join(f'{n} {name}' for name, n in place.items())}",
                got=", ".join(f"{free.get(name, 0):g} {name}" for name in place) + " free",
                advice="Use fewer workers, or a larger cluster.",
            )
        host = ray.remote(WorkerHost)
        for rank in range(num_workers):
            strategy = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=rank)
            self._actors.append(
                host.options(
                    num_cpus=place["CPU"],
                    num_gpus=place.get("GPU", 0),
                    scheduling_strategy=strategy,
                    max_restarts=0,
                ).remote()
            )

    def find_address(self) -> str:
        """Return an address at which the first worker can listen."""
        return str(ray.get(self._actors[0].find_address.remote()))

    def start(self, tasks: list[WorkerTask]) -> None:
        """Start one process per task."""
        started = [
            actor.start.remote(task.to_json()) for actor, task in zip(self._actors, tasks, strict=True)
        ]
        self.pids = ray.get(started)

    def take_events(self) -> list[tuple[int, Event]]:
        """Return the events since the last call, with the rank of each."""
        asked = [actor.take_events.remote() for actor in self._actors]
        found: list[tuple[int, Event]] = []
        for rank, answer in enumerate(asked):
            try:
                found += [(rank, event) for event in ray.get(answer, timeout=_ANSWER_SECONDS)]
            except (RayActorError, GetTimeoutError) as error:
                found.append((rank, {"kind": "lost", "text": _first_line(error)}))
        return found

    def stop(self) -> None:
        """End all processes, and free their places."""
        stopping = [actor.stop.remote() for actor in self._actors]
        for answer, actor in zip(stopping, self._actors, strict=True):
            # An actor that is gone has ended its process.
            with contextlib.suppress(RayError):
                ray.get(answer, timeout=_ANSWER_SECONDS)
            ray.kill(actor)
        remove_placement_group(self._group)
