"""The connection to a Ray cluster, through which jobs use Ray.

In: functions of Penstock and their arguments. Out: their results, computed by workers of the cluster, or the
errors that they raised. A task whose worker or machine ends is run again elsewhere, so tasks must be
repeatable.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

from penstock.errors import (
    MissingPackageError,
    NotPicklableError,
    OptionError,
    PathError,
    PenstockError,
    StoreError,
    WorkerError,
)
from penstock.storage.paths import locate
from penstock.storage.store_path import AnyPath

try:
    import ray
    from ray.exceptions import AuthenticationError, GetTimeoutError, RayError, RayTaskError
except ModuleNotFoundError as error:
    raise MissingPackageError.from_import(error, "engine='ray'", "ray") from error

MAX_RETRIES: Final = 8
"""Number of times that a task is run again because its worker or machine ended: a task that ends every worker
must not be repeated forever."""

_QUEUED: Final = 2  # tasks beyond the number of workers, so that no worker waits for the driver
_COUNT_SECONDS: Final = 5.0  # after which workers are counted again: clusters grow and shrink
_FETCH_SECONDS: Final = 60.0  # after which workers are counted although a result is on its way
_NO_CPU_SECONDS: Final = 600.0  # that work waits for a machine with CPUs; docs/ray.md has it too
_LISTEN_SECONDS: Final = 10.0
_MARKER_NAME: Final = "marker"
_NOT_IMPORTED: Final = "failed to import on the worker"  # how Ray describes that it cannot load a function
_NOT_ACCEPTED: Final = (
    "something listens there, but does not accept this process: the token differs, or it is not the head of "
    "a Ray cluster"
)

_log = logging.getLogger("penstock")
_LOADED: Final[dict[str, Any]] = {}
_MADE_HERE: Final[set[str]] = set()
"""Addresses of the clusters that this process has started, on this machine alone."""


@dataclass(frozen=True)
class Shared:
    """A value that each worker process loads once, and the folder that it must see, if any.

    Attributes:
        token: Random name of the value, which is the content of the marker file too.
        holder: Reference of the value; in a list, because Ray loads references that are arguments.
        folder: Folder that all machines must share, or None.
        version: Version of Penstock that all machines must have.
    """

    token: str
    holder: list[Any]
    folder: AnyPath | None
    version: str

    def load(self) -> Any:
        """Return the value."""
        if self.token not in _LOADED:
            self._check()
            _LOADED.clear()  # of earlier jobs
            _LOADED[self.token] = ray.get(self.holder[0])
        return _LOADED[self.token]

    def _check(self) -> None:
        here = os.uname().nodename
        if self.version != version("penstock"):
            raise OptionError(
                f"version of Penstock on the machine {here}",
                field="engine",
                expected=self.version,
                got=version("penstock"),
                advice="Install the same version on all machines of the cluster.",
            )
        if self.folder is None:
            return
        try:
            found = _read_marker(self.folder / f"{_MARKER_NAME}-{self.token}")
        except StoreError as error:
            raise PathError(
                f"the machine {here} of the cluster has no access ({error.what})",
                path=self.folder,
                advice="Workers use the credentials and settings in the environment of their own machine, "
                "with which 'ray start' was called.",
            ) from error
        if found != self.token:
            raise PathError(
                f"the machine {here} of the cluster does not see this folder",
                path=self.folder,
                expected="a folder that all machines share, under the same path",
                got="another folder, or none",
                advice="Write to a shared file system (NFS, Lustre, a volume that all pods mount), or to an "
                "object store.",
            )


def _read_marker(path: AnyPath) -> str:
    """Return the content of a marker; "" if there is none."""
    with contextlib.suppress(PathError):
        return locate(path).read().decode()
    return ""


class Cluster:
    """A connection to Ray, which `with` ends unless it was there before."""

    def __init__(self, address: str | None = None, max_workers: int | None = None) -> None:
        """Connect.

        `address`: address of the cluster, HOST:PORT; "auto" is the one that runs on this machine. None uses
        the connection of this process, the cluster of the environment variable RAY_ADDRESS, or a new one on
        this machine, which ends with the connection. `max_workers`: number of tasks that may run at the same
        time.
        """
        self.max_workers = max_workers
        self._is_own = not ray.is_initialized()
        self._counted = (float("-inf"), 0)
        self._without_cpus: float | None = None  # since when the cluster has none
        self._running: list[Any] = []
        self._functions: dict[tuple[Any, ...], Any] = {}
        if address is not None and "://" in address:
            raise OptionError(
                "address",
                field="address",
                expected="HOST:PORT or 'auto', on a machine of the cluster",
                got=address,
                advice="A Ray client sees neither the source nor the output: run the command on a machine "
                "of the cluster, or submit it with 'ray job submit'.",
            )
        if self._is_own:
            _connect(address)
        elif address not in (None, "auto", ray.get_runtime_context().gcs_address):
            raise OptionError(
                "address",
                field="address",
                expected=f"{ray.get_runtime_context().gcs_address}, to which this process is connected",
                got=address,
                advice="Call ray.shutdown() first, or leave out the address.",
            )

    @property
    def is_local(self) -> bool:
        """Whether this process has started the cluster, which has only this machine and does not grow."""
        return ray.get_runtime_context().gcs_address in _MADE_HERE

    @property
    def num_workers(self) -> int:
        """Number of tasks that can run at the same time now; at least 1."""
        return min(self._num_cpus, self.max_workers or self._num_cpus)

    @property
    def _num_cpus(self) -> int:
        at, count = self._counted
        if time.monotonic() - at > _COUNT_SECONDS:
            count = int(ray.cluster_resources().get("CPU", 0))
            self._counted = (time.monotonic(), count)
            self._note_count(count)
        return max(1, count)

    def _note_count(self, count: int) -> None:
        """Warn when the cluster loses its last CPU, or has none at the beginning."""
        now = time.monotonic()
        if count:
            self._without_cpus = None
        elif self._without_cpus is None:
            self._without_cpus = now
            _log.warning(
                "the Ray cluster has no CPUs: the work waits up to %.0f minutes for a machine that has some",
                _NO_CPU_SECONDS / 60,
            )
        elif now - self._without_cpus > _NO_CPU_SECONDS:
            raise WorkerError(
                f"the Ray cluster has had no CPUs for {_NO_CPU_SECONDS / 60:.0f} minutes",
                field="engine",
                expected="a machine with CPUs in the cluster",
                got="none",
                advice="'ray status' shows the machines of the cluster. Add one with 'ray start --address', "
                "and continue: `resume=True`.",
            )

    @property
    def max_running(self) -> int:
        """Number of tasks that are submitted and not done, at most."""
        most = self._num_cpus + _QUEUED
        # A task in the queue would run at once where a CPU is free, or a machine joins.
        if self.max_workers is None or (self.max_workers >= self._num_cpus and self.is_local):
            return most
        return min(self.max_workers, most)

    def share(self, value: Any, folder: AnyPath | None = None) -> Shared:
        """Return a value for the arguments of tasks, which a worker process loads once.

        `folder`: a folder that all machines must see, on a disk or in an object store; a marker file is
        written to it. None if there is none.
        """
        token = secrets.token_hex(16)
        if folder is not None:
            locate(folder / f"{_MARKER_NAME}-{token}").write(token.encode())
        return Shared(token, [self.put(value)], folder, version("penstock"))

    def put(self, value: Any) -> Any:
        """Store a value in the cluster; return its reference."""
        try:
            return ray.put(value)
        except (TypeError, AttributeError) as error:
            raise NotPicklableError(
                f"a value of the source cannot be sent to the workers ({str(error).splitlines()[0]})",
                advice="Pass tables, arrays, numbers, texts or bytes; or convert with `engine='local'`.",
            ) from error

    @property
    def has_gpus(self) -> bool:
        """Whether a machine of the cluster has a GPU now."""
        return bool(ray.cluster_resources().get("GPU", 0) >= 1)

    def submit(
        self, function: Callable[..., Any], *args: Any, num_returns: int = 1, num_gpus: int = 0
    ) -> Any:
        """Begin a task when fewer than `max_running` are not done; return the reference of its result.

        With several results, there is one reference per result.
        """
        while len(self._running) >= self.max_running:
            _, self._running = self.wait(self._running)
        key = (function, num_returns, num_gpus)
        if key not in self._functions:
            self._functions[key] = ray.remote(
                num_cpus=1,
                num_gpus=num_gpus,
                max_calls=0,  # with GPUs, Ray would end a worker after each task, and with it the model
                max_retries=MAX_RETRIES,
                num_returns=num_returns,
            )(function)
        references = self._functions[key].remote(*args)
        self._running.append(references if num_returns == 1 else references[0])
        return references

    def get(self, reference: Any) -> Any:
        """Return a result."""
        self.wait([reference])
        try:
            return self._fetch(reference)
        except RayTaskError as error:
            cause = error.cause
            if isinstance(cause, PenstockError | MemoryError | KeyboardInterrupt):
                raise cause from None
            if isinstance(cause, ModuleNotFoundError) or _NOT_IMPORTED in str(cause):
                package = getattr(cause, "name", None) or "penstock"
                raise WorkerError(
                    f"the machine {error.ip} of the cluster has no package {package!r}",
                    field="engine",
                    expected="the same packages as on this machine",
                    got=f"no {package}",
                    advice="Install Penstock with the same extras on all machines of the cluster.",
                ) from error
            raise
        except RayError as error:
            raise WorkerError(
                f"the workers of a task ended {MAX_RETRIES + 1} times ({type(error).__name__}: "
                f"{first_line(error)})",
                advice="The logs of Ray name the reason: too little memory, or a fault in a worker.",
            ) from error

    def _fetch(self, reference: Any) -> Any:
        """Return the result of a task that was done; if its machine has ended since, it is run again."""
        while True:
            try:
                return ray.get(reference, timeout=_FETCH_SECONDS)
            except GetTimeoutError:
                _ = self._num_cpus

    def wait(self, references: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Wait until one task is done; return the references of those that are, and of the others."""
        while True:
            done, others = _poll(references, _COUNT_SECONDS)
            if done:
                return done, others
            _ = self._num_cpus  # warns, or ends the wait

    def is_done(self, reference: Any) -> bool:
        """Return whether a task is done."""
        return bool(_poll([reference], 0)[0])

    def cancel(self, references: Sequence[Any]) -> None:
        """End tasks whose results are not needed."""
        self._running = [each for each in self._running if each not in references]
        for reference in references:
            with contextlib.suppress(RayError, ValueError, TypeError):
                ray.cancel(reference)

    def close(self) -> None:
        """End the connection, unless it was there before."""
        if self._is_own and ray.is_initialized():
            ray.shutdown()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _poll(references: Sequence[Any], seconds: float) -> tuple[list[Any], list[Any]]:
    """Return the references of one task that is done within a time, or of none, and of the others."""
    done, others = ray.wait(list(references), num_returns=1, timeout=seconds, fetch_local=False)
    return done, others


def _connect(address: str | None) -> None:
    # Without an address, Ray itself would join any cluster that happens to run on this machine.
    where = address or os.environ.get("RAY_ADDRESS") or "local"
    if where == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    elif where != "auto":
        _check_listening(where)  # Ray itself tries for minutes
    try:
        ray.init(
            address=where,
            logging_level=logging.WARNING,
            log_to_driver=False,
            **({"include_dashboard": False} if where == "local" else {}),
        )
    except (AuthenticationError, ConnectionError, RuntimeError, ValueError) as error:
        first_sentence = str(error).strip().splitlines()[0].partition(". ")[0]
        # If the port answers, Ray gives no reason: it tries for 20 seconds, and prints the answers.
        is_refused = isinstance(error, ConnectionError) and where not in ("auto", "local")
        raise _refuse_address(where, _NOT_ACCEPTED if is_refused else first_sentence) from error
    except Exception as error:
        if type(error) is not Exception:  # Ray has no class for a node that does not start in time
            raise
        raise WorkerError(
            f"Ray did not start ({str(error).strip().splitlines()[0]})",
            advice="Try again when the machine is less busy, or let Ray wait longer: "
            "RAY_raylet_start_wait_time_s=120.",
        ) from error
    if where == "local":
        _MADE_HERE.add(ray.get_runtime_context().gcs_address)


def first_line(error: Exception) -> str:
    """Return the first line of the message of an error; its class without one."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _check_listening(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise _refuse_address(address, "which is not HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _LISTEN_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _refuse_address(address, str(error)) from error


def _refuse_address(address: str | None, why: str) -> OptionError:
    return OptionError(
        "address",
        field="address",
        expected="HOST:PORT of a Ray cluster that accepts the token of this process",
        got=f"{address} ({why})",
        advice="'ray status' on a machine of the cluster shows whether it runs. With RAY_AUTH_MODE=token, "
        "its token must be in RAY_AUTH_TOKEN, or in the file RAY_AUTH_TOKEN_PATH or ~/.ray/auth_token.",
    )
