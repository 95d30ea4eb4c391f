"""A Ray cluster of several nodes on this machine, in a separate process.

As a program it holds the cluster: each line of its input is a request, each line of its output an answer in
JSON. `RayNodes` starts it, and `run_driver` converts on the cluster in another process, like a user.
"""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

STORE_BYTES = 80 << 20


class RayNodes:
    """A cluster of nodes with one CPU each; the head has none.

    Attributes:
        address: Address of the cluster.
        environment: Environment of processes that connect to it.
        raylets: Process of each node, in the order in which the nodes were added.
    """

    def __init__(self, num_nodes: int, environment: dict[str, str] | None = None) -> None:
        # Short, because sockets are in it; and not Ray's own, where every new driver looks for a cluster.
        self._folder = tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp")
        self.environment = {
            **os.environ,
            "RAY_TMPDIR": self._folder.name,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0",
            # A busy machine is slow, and other tests would keep the workers waiting.
            "RAY_gcs_server_request_timeout_seconds": "120",
            "RAY_worker_niceness": "0",
            **(environment or {}),
        }
        for name in ("RAY_ADDRESS", "RAY_AUTH_TOKEN_PATH"):
            self.environment.pop(name, None)
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.raylets: list[int] = []
        try:
            self.address = self._ask("head")
            for _ in range(num_nodes):
                self.add()
        except BaseException:
            self.close()
            raise

    def add(self) -> int:
        """Add a node; return the process of its raylet."""
        self.raylets.append(self._ask("add"))
        return self.raylets[-1]

    def _ask(self, request: str):
        self._process.stdin.write(request + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(self._process.stderr.read())
        return json.loads(line)

    def close(self) -> None:
        """End all nodes."""
        try:
            self._process.communicate("end\n", timeout=60)
        finally:
            self._process.kill()
            self._process.wait()
            self._folder.cleanup()


def start_driver(nodes: RayNodes, request: dict[str, object], **environment: str) -> subprocess.Popen:
    """Start a process that converts on the cluster; see `ray_driver.py`."""
    return subprocess.Popen(
        [sys.executable, Path(__file__).with_name("ray_driver.py"), json.dumps(request)],
        env={**nodes.environment, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_driver(nodes: RayNodes, request: dict[str, object], **environment: str) -> dict[str, object]:
    """Convert on the cluster in another process; return what it prints."""
    driver = start_driver(nodes, request, **environment)
    out, err = driver.communicate()
    assert driver.returncode == 0, err[-4000:]
    # Ray writes other lines to the same stream, also after the last one of the program.
    return json.loads(next(line for line in reversed(out.splitlines()) if line.startswith("{")))


def find_workers(raylets: list[int], task: str) -> list[int]:
    """Return the worker processes of nodes that run a task now."""
    found = []
    for raylet in raylets:
        with contextlib.suppress(OSError):  # of processes that end meanwhile
            for child in Path(f"/proc/{raylet}/task/{raylet}/children").read_text().split():
                if Path(f"/proc/{child}/cmdline").read_bytes().startswith(f"ray::{task}".encode()):
                    found.append(int(child))
    return found


def _hold_cluster() -> None:
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - in this process alone

    cluster = Cluster()
    options = {"object_store_memory": STORE_BYTES, "include_dashboard": False}
    # A killed driver must not leave the cluster behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        for line in sys.stdin:
            match line.strip():
                case "head":
                    cluster.add_node(num_cpus=0, **options)
                    answer: object = cluster.address
                case "add":
                    node = cluster.add_node(num_cpus=1, **options)
                    (raylet,) = node.all_processes["raylet"]
                    answer = raylet.process.pid
                case _:
                    break
            print(json.dumps(answer), flush=True)
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    _hold_cluster()
