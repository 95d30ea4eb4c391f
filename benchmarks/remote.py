"""Reading from an object store: a loader against raw ranges of `obstore`, on the same server on loopback.

`python benchmarks/remote.py` serves 256 MB of records from a plain server with ranges and ETags, adds a
latency, and prints MiB per second of raw requests and of loaders, and their ratio, each the best of three
runs that alternate.
"""

from __future__ import annotations

import argparse
import json
import os
import socketserver
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

RANGE_BYTES = 8 << 20


class _Handler(socketserver.StreamRequestHandler):
    """Answers GET and HEAD of files below a folder, by sendfile."""

    disable_nagle_algorithm = True
    folder = Path()
    latency = 0.0

    def handle(self) -> None:
        while True:
            line = self.rfile.readline()
            if not line:
                return
            method, target, _ = line.decode().split(" ", 2)
            first, last, is_part = 0, None, False
            while (header := self.rfile.readline().strip()) != b"":
                name, _, value = header.decode().partition(":")
                if name.lower() == "range":
                    begin, _, end = value.strip().removeprefix("bytes=").partition("-")
                    first, last, is_part = int(begin), int(end) if end else None, True
            time.sleep(self.latency)
            path = self.folder / target.partition("?")[0].lstrip("/")
            if not path.is_file():
                self.wfile.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                continue
            size = path.stat().st_size
            stop = size if last is None else min(last + 1, size)
            status = b"206 Partial Content" if is_part else b"200 OK"
            extra = f"Content-Range: bytes {first}-{stop - 1}/{size}\r\n" if is_part else ""
            head = (
                f'Content-Length: {stop - first}\r\nETag: "{size:x}"\r\n{extra}Accept-Ranges: bytes\r\n'
                "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n\r\n"
            )
            self.wfile.write(b"HTTP/1.1 " + status + b"\r\n" + head.encode())
            if method == "GET":
                with path.open("rb") as file:
                    at = first
                    while at < stop:
                        at += os.sendfile(self.connection.fileno(), file.fileno(), at, stop - at)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128
    allow_reuse_address = True


def serve(folder: str, latency: float) -> None:
    """Serve until the process is killed; the port is printed."""
    _Handler.folder, _Handler.latency = Path(folder), latency
    with _Server(("127.0.0.1", 0), _Handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


def read_raw(url: str, paths: list[str], size: dict[str, int]) -> int:
    """Read all objects by parallel ranges; return the number of bytes."""
    import obstore  # noqa: PLC0415
    from obstore.store import HTTPStore  # noqa: PLC0415

    store = HTTPStore.from_url(url, client_options={"allow_http": True})

    def read(path: str) -> int:
        starts = list(range(0, size[path], RANGE_BYTES))
        ends = [min(start + RANGE_BYTES, size[path]) for start in starts]
        return sum(len(each) for each in obstore.get_ranges(store, path, starts=starts, ends=ends))

    with ThreadPoolExecutor(4) as pool:
        return sum(pool.map(read, paths))


def read_loader(url: str, shuffle: bool | str) -> int:
    """Read all batches; return the number of bytes of the values."""
    import penstock as ps  # noqa: PLC0415

    split = ps.open(f"{url}/blobs")["train"]
    total = 0
    for inputs, _ in split.loader(batch_size=64, shuffle=shuffle, seed=1):
        total += sum(array.nbytes for array in inputs["blob"].arrays())
    return total


def measure(latency: float, folder: Path, runs: int) -> dict[str, float]:
    """Return MiB per second of each way."""
    command = [sys.executable, __file__, "--serve", str(folder), "--latency", str(latency)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert server.stdout is not None
    try:
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        shards = sorted((folder / "blobs").glob("train-*.tfrecord"))
        sizes = {f"blobs/{shard.name}": shard.stat().st_size for shard in shards}
        total = sum(sizes.values())
        ways = {
            "raw": lambda: read_raw(url, list(sizes), sizes),
            "in order": lambda: read_loader(url, False),
            "block": lambda: read_loader(url, "block"),
        }
        best = dict.fromkeys(ways, float("inf"))
        for _ in range(runs):
            for name, way in ways.items():
                begin = time.perf_counter()
                assert way() > total // 2
                best[name] = min(best[name], time.perf_counter() - begin)
        speed = {name: total / seconds / 2**20 for name, seconds in best.items()}
        return {
            **speed,
            "in order / raw": speed["in order"] / speed["raw"],
            "block / raw": speed["block"] / speed["raw"],
        }
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def main() -> None:
    """Measure, and print one line of JSON per latency."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--latency", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--record-bytes", type=int, default=40_000)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    if args.serve:
        serve(args.serve, args.latency)
        return
    import penstock as ps  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as scratch:
        count = args.megabytes * 10**6 // args.record_bytes
        rng = np.random.default_rng(0)
        block = rng.bytes(args.record_bytes + count)
        blobs = [block[i : i + args.record_bytes] for i in range(count)]
        rows = ({"blob": blob, "label": i % 2} for i, blob in enumerate(blobs))
        fields = {"blob": ps.fields.Bytes()}
        ps.convert(
            lambda: rows,
            Path(scratch) / "blobs",
            fields=fields,
            target="label",
            split={"train": 1.0},
            shard_bytes=32_000_000,
        )
        for latency in (0.0, 0.02):
            print(
                json.dumps(
                    {
                        "latency_ms": latency * 1000,
                        **measure(latency, Path(scratch), args.runs),
                    }
                )
            )


if __name__ == "__main__":
    main()
