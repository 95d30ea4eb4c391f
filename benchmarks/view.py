"""Measures how long pages of the viewer take on many records, and how much memory its server needs.

In: the number of records (data is made when missing). Out: one line per request, and the memory of the
server.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

from datasets import STORE

REQUESTS = (
    ("first page", {}),
    ("the same page again", {}),
    ("filter on a number", {"filter": "price > 300"}),
    ("the same filter again", {"filter": "price > 300", "page": 5}),
    ("filter on two fields", {"filter": 'age < 30 and kind == "cat"'}),
    ("search in texts", {"search": "stone cloud happy"}),
    ("sort by a number", {"sort": "field:price"}),
    ("sort by a text", {"sort": "field:note"}),
    ("page in the middle", {"page": 20_000}),
    ("damaged records (reads everything)", {"show": "damaged"}),
)
WORDS = np.array(
    ["red", "green", "blue", "cat", "dog", "house", "tree", "river", "stone", "cloud", "happy", "small"]
)


def make_data(folder: Path, num_records: int) -> None:
    """Convert a table of numbers, categories and texts to a data set of one split."""
    import penstock as ps  # noqa: PLC0415 - only if the data is missing

    random = np.random.default_rng(0)
    table = {
        "price": random.gamma(2, 50, num_records).astype(np.float32),
        "age": random.integers(0, 90, num_records),
        "kind": WORDS[random.integers(0, 5, num_records)],
        "note": np.array([" ".join(row) for row in WORDS[random.integers(0, len(WORDS), (num_records, 6))]]),
        "label": random.integers(0, 2, num_records),
    }
    ps.convert(table, folder, target="label", split={"train": 1.0})


def measure(address: str, path: str, query: dict[str, object]) -> float:
    """Return the seconds until a page without a progress bar has come."""
    start = time.perf_counter()
    while True:
        with urllib.request.urlopen(f"{address}{path}?{urlencode(query)}", timeout=300) as answer:  # noqa: S310
            if b"<progress" not in answer.read():
                return time.perf_counter() - start


def read_memory(pid: int, name: str) -> float:
    """Return a figure of the memory of a process in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1000
    return 0.0


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--quick", action="store_true", help="only 20,000 records")
    args = parser.parse_args()
    num_records = 20_000 if args.quick else args.records
    folder = STORE / "data" / f"view-{num_records}"
    if not folder.exists():
        make_data(folder, num_records)
    code = "from penstock.cli.main import main; raise SystemExit(main())"
    command = [sys.executable, "-c", code, "view", str(folder), "--port", "0", "--json"]
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        said = json.loads(server.stdout.readline())  # type: ignore[union-attr]
        address = said["address"].rstrip("/")
        print(f"{'start of the command':36}{time.perf_counter() - start:8.3f} s")
        for name, query in REQUESTS:
            seconds = measure(address, "/", query)
            print(f"{name:36}{seconds:8.3f} s  {read_memory(server.pid, 'VmRSS'):6.0f} MB")
        print(f"{'statistics':36}{measure(address, '/statistics', {}):8.3f} s")
        most = read_memory(server.pid, "VmHWM")
        print(f"most memory of the server: {most:.0f} MB, {said['records']:,} records")
        server.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main()
