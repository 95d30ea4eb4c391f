"""A small server on loopback with as much of S3 as reading needs: GET with ranges, HEAD, ETags, a latency.

`python range_server.py FOLDER --latency 0.02` prints its port; the folders below FOLDER are buckets. Several
processes accept connections, a thread answers each, and the kernel copies the bytes (sendfile), so that the
readers are measured, and not the server. `--link` limits the rate of all answers together, as a network does.
`GET /.counts` returns how many requests were answered.
"""

from __future__ import annotations

import argparse
import json
import mmap
import multiprocessing
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

COUNTS_PATH = "/.counts"
# Of each process: requests of shards, bytes of shards, other requests, bytes of their answers.
NUM_COUNTS = 4
NUM_PROCESSES = 4
SHARD_ENDING = ".tfrecord"
LINK_PIECE = 256 << 10  # bytes that are sent at a time where the rate is limited


@dataclass(frozen=True)
class Counts:
    """Requests that a server has answered, and bytes that it has sent; manifests and indexes are `other`."""

    shard_requests: int
    shard_bytes: int
    other_requests: int
    other_bytes: int

    def __sub__(self, before: Counts) -> Counts:
        return Counts(*(mine - theirs for mine, theirs in zip(_values(self), _values(before), strict=True)))


def _values(counts: Counts) -> tuple[int, ...]:
    return counts.shard_requests, counts.shard_bytes, counts.other_requests, counts.other_bytes


class Link:
    """A limit of bytes per second for all connections of all processes together."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._free_at: Any = multiprocessing.get_context("fork").Value("d", 0.0)

    def wait(self, num_bytes: int) -> None:
        """Wait until so many bytes may be sent: each piece takes its time after those before it."""
        with self._free_at.get_lock():
            begin = max(time.monotonic(), self._free_at.value)
            self._free_at.value = begin + num_bytes / self._rate
        time.sleep(max(0.0, begin - time.monotonic()))


class Handler(socketserver.StreamRequestHandler):
    """Answers the requests of one connection."""

    disable_nagle_algorithm = True
    folder = Path()
    latency = 0.0
    link: Link | None = None
    table = np.zeros((1, NUM_COUNTS), np.int64)
    slot = 0
    lock = threading.Lock()

    def handle(self) -> None:
        """Answer until the client closes the connection."""
        with suppress(ConnectionError):
            while line := self.rfile.readline():
                method, target, _ = line.decode().split(" ", 2)
                span = None
                while header := self.rfile.readline().strip():
                    name, _, value = header.partition(b":")
                    if name.lower() == b"range":
                        span = value.strip().decode()
                self._answer(method, urllib.parse.unquote(target.partition("?")[0]), span)

    def _answer(self, method: str, path: str, span: str | None) -> None:
        if path == COUNTS_PATH:
            self._send(b"200 OK", json.dumps(self.table.sum(axis=0).tolist()).encode())
            return
        time.sleep(self.latency)
        try:
            file = (self.folder / path.lstrip("/")).open("rb")
        except OSError:
            self._count(path, 0)
            self._send(
                b"404 Not Found", b"" if method == "HEAD" else b"<Error><Code>NoSuchKey</Code></Error>"
            )
            return
        with file:
            size = os.fstat(file.fileno()).st_size
            start, stop = _parse_range(span, size)
            status = b"200 OK" if span is None else b"206 Partial Content"
            extra = "" if span is None else f"Content-Range: bytes {start}-{stop - 1}/{size}\r\n"
            head = (
                f'Content-Length: {stop - start}\r\nETag: "{size:x}"\r\n{extra}Accept-Ranges: bytes\r\n'
                "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n\r\n"
            )
            self.wfile.write(b"HTTP/1.1 " + status + b"\r\n" + head.encode())
            if method == "GET":
                self._count(path, stop - start)
                while start < stop:
                    num_bytes = stop - start
                    if self.link is not None:
                        num_bytes = min(num_bytes, LINK_PIECE)
                        self.link.wait(num_bytes)
                    start += os.sendfile(self.connection.fileno(), file.fileno(), start, num_bytes)
            else:
                self._count(path, 0)

    def _send(self, status: bytes, body: bytes) -> None:
        length = f"Content-Length: {len(body)}\r\n\r\n".encode()
        self.wfile.write(b"HTTP/1.1 " + status + b"\r\n" + length + body)

    def _count(self, path: str, num_bytes: int) -> None:
        first = 0 if path.endswith(SHARD_ENDING) else 2
        with self.lock:
            self.table[self.slot, first : first + 2] += (1, num_bytes)


def _parse_range(span: str | None, size: int) -> tuple[int, int]:
    if span is None:
        return 0, size
    first, _, last = span.removeprefix("bytes=").partition("-")
    if not first:
        return max(0, size - int(last)), size
    return int(first), min(int(last) + 1, size) if last else size


class Server(socketserver.ThreadingTCPServer):
    """A thread per connection."""

    daemon_threads = True
    request_queue_size = 128
    allow_reuse_address = True


def serve(folder: Path, latency: float, rate: float, num_processes: int) -> None:
    """Serve until standard input ends; the port is printed."""
    shared = mmap.mmap(-1, num_processes * NUM_COUNTS * 8)
    Handler.folder, Handler.latency = folder, latency
    Handler.link = Link(rate) if rate else None
    Handler.table = np.frombuffer(shared, np.int64).reshape(num_processes, NUM_COUNTS)
    server = Server(("127.0.0.1", 0), Handler)
    children = []
    for slot in range(num_processes):
        child = os.fork()
        if not child:
            Handler.slot = slot
            server.socket.setblocking(False)  # several processes are woken by one connection
            with suppress(KeyboardInterrupt):
                server.serve_forever()
            os._exit(0)
        children.append(child)
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@contextmanager
def running(folder: Path, latency: float, rate: float = 0.0) -> Iterator[tuple[int, int]]:
    """Run a server in a separate process; yield its port and the process."""
    command = [sys.executable, __file__, str(folder), "--latency", str(latency), "--link", str(rate)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        if process.stdout is None:
            raise RuntimeError("the server has no output")
        yield int(process.stdout.readline()), process.pid
    finally:
        process.communicate()


def read_counts(port: int) -> Counts:
    """Return what a server has answered so far."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"GET {COUNTS_PATH} HTTP/1.1\r\n\r\n".encode())
        file = connection.makefile("rb")
        length = 0
        while header := file.readline().strip():
            if header.lower().startswith(b"content-length:"):
                length = int(header.partition(b":")[2])
        return Counts(*json.loads(file.read(length)))


def make_environment(port: int) -> dict[str, str]:
    """Return the variables with which tools of S3 reach a server; it checks no credentials."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "benchmark",
        "AWS_SECRET_ACCESS_KEY": "benchmark",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--link", type=float, default=0.0, help="bytes per second, 0 for no limit")
    parser.add_argument("--processes", type=int, default=NUM_PROCESSES)
    given = parser.parse_args()
    serve(given.folder, given.latency, given.link, given.processes)
