"""Converts the same source in this process and on a Ray cluster, and prints in JSON what came of it.

`python ray_driver.py REQUEST`: a JSON object with `address`, `folder`, `out`, the names of `cases`, and
optionally `sources`, by case, instead of the default ones, and `kill`: which processes to end, when, while
the conversion runs.
"""

import hashlib
import json
import os
import signal
import sys
from pathlib import Path
from threading import Event, Lock, Thread

import numpy as np
from PIL import Image

import penstock as ps
from penstock.distributed import ray_engine
from penstock.errors import PenstockError
from penstock.jobs.convert.convert import run_conversion
from penstock.plan.planner import PlanOverrides
from penstock.settings.conversion import ConvertOptions
from penstock.shards.conversion import ConversionProgress
from penstock.storage.store_path import AnyPath, StorePath, as_path
from ray_nodes import find_workers

NUM_ROWS = 100_000


def fingerprint(folder: AnyPath) -> dict[str, str]:
    """Return the SHA-256 of every file; in an object store, of those that a data set on a disk has too."""
    if isinstance(folder, StorePath):
        return fingerprint_objects(folder)
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def fingerprint_objects(folder: StorePath) -> dict[str, str]:
    from penstock.storage.object_store import fetch, list_objects  # noqa: PLC0415 - not always installed

    shards = folder / ps.open(folder).paths[0].parent.name
    found = {each.path.relative_to(shards): each.path for each in list_objects(shards)}
    for name in ("request.json", "rows.json", "index/all.idx"):
        del found[name]
    return {name: hashlib.sha256(fetch(path).data).hexdigest() for name, path in found.items()}


def write_csv(folder: Path, num_rows: int = NUM_ROWS) -> Path:
    path = folder / ("rows.csv" if num_rows == NUM_ROWS else f"rows-{num_rows}.csv")
    if not path.exists():
        numbers = np.random.default_rng(3)
        words, kinds = numbers.integers(0, 10**6, num_rows), numbers.integers(0, 5, num_rows)
        lines = (f"{i},{i * 0.37:.3f},word {words[i]},{kinds[i]}\n" for i in range(num_rows))
        path.write_text("id,height,word,kind\n" + "".join(lines))
    return path


def write_faulty(folder: Path) -> Path:
    path = folder / "faulty.csv"
    lines = [f"{i},{'x' if i % 9_000 == 8_999 else i}\n" for i in range(40_000)]
    path.write_text("id,count\n" + "".join(lines))
    return path


def write_images(folder: Path) -> Path:
    root = folder / "images"
    for number in range(60):
        path = root / ("cats" if number % 3 else "dogs") / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8 + number, 20), (number, 2 * number, 7)).save(path)
    return root


def make_blobs() -> dict[str, object]:
    blobs = [bytes([number % 251]) * (5_000 + number) for number in range(300)]
    return {"blob": blobs, "word": [f"w{number}" for number in range(300)], "label": [0, 1, 2] * 100}


def write_stored(folder: Path) -> Path:
    out = folder / "stored"
    if not out.exists():
        ps.convert({"a": np.arange(5_000), "b": np.arange(10_000.0).reshape(5_000, 2)}, out, num_shards=3)
    return out


CASES = {
    "csv": (write_csv, {"id": "id", "target": "kind"}, {"shard_bytes": 400_000}),
    # More tasks than wait at the same time, so that some begin after the first reports.
    "tasks": (lambda folder: write_csv(folder, 4 * NUM_ROWS), {"id": "id"}, {"shard_bytes": 1_600_000}),
    "ordered": (write_csv, {"target": "kind"}, {"shard_bytes": 400_000, "shuffle": False}),
    "gzip": (write_csv, {"target": "kind"}, {"num_shards": 3, "stratify": True, "compression": "gzip"}),
    "time": (write_csv, {}, {"time": "height", "num_shards": 2}),
    "faulty": (
        write_faulty,
        {"fields": {"count": ps.fields.Number("int64")}},
        {"on_error": "collect", "num_shards": 2},
    ),
    "raises": (write_faulty, {"fields": {"count": ps.fields.Number("int64")}}, {}),
    "images": (write_images, {}, {"num_shards": 4}),
    "resized": (write_images, {}, {"resize": 10}),
    "blobs": (
        lambda _: make_blobs(),
        {"fields": {"blob": ps.fields.Bytes()}, "target": "label"},
        {"num_shards": 3},
    ),
    "samples": (
        lambda _: [{"x": number, "words": ["a"] * (number % 4)} for number in range(3_000)],
        {},
        {"num_shards": 2},
    ),
    "stored": (write_stored, {}, {"num_shards": 5}),
}


_SECONDS = 5.0


class Killer:
    """Ends processes while a conversion runs.

    Args:
        plan: `node`, the raylet to end, or `driver`, once the conversion has reported a `stage` more than
            `after` times; or `workers`, the raylets whose first worker that runs `task` is ended
            after that many reports. A `node` with a `task` is ended while a worker of it runs the task, or
            after some seconds in which Ray gave it none.
    """

    def __init__(self, plan: dict[str, object]) -> None:
        self.killed: list[int] = []
        self._plan = plan
        self._left = plan.get("after", 0)
        self._is_due = Event()
        self._lock = Lock()
        self._thread = Thread(target=self._watch, daemon=True)
        if "task" in plan:
            self._thread.start()
            if not self._left:
                self._is_due.set()

    def __call__(self, progress: ConversionProgress) -> None:
        if self.killed or progress.stage != self._plan["stage"]:
            return
        self._left -= 1
        if "task" in self._plan:
            if self._left <= 0:
                self._is_due.set()
                if "node" in self._plan:
                    self._thread.join(_SECONDS)
                    self._kill(self._plan["node"])
        elif self._left < 0:
            self._kill(self._plan["node"] if "node" in self._plan else os.getpid())

    def _watch(self) -> None:
        self._is_due.wait()
        node = self._plan.get("node")
        raylets = self._plan["workers"] if node is None else [node]
        while not self.killed:
            for pid in find_workers(raylets, self._plan["task"])[:1]:
                self._kill(pid if node is None else node)

    def _kill(self, pid: int) -> None:
        with self._lock:
            if not self.killed:
                self.killed.append(pid)
                os.kill(pid, signal.SIGKILL)


def convert_case(request: dict[str, object], case: str, out: AnyPath, **choices: object) -> dict[str, object]:
    """Convert a case; return the files, or the error, and the processes that were ended."""
    make, overrides, options = CASES[case]
    killers = [Killer(plan) for plan in request.get("kill", ())]
    stages: list[str] = []

    def on_progress(progress: ConversionProgress) -> None:
        stages.append(progress.stage)
        for killer in killers:
            killer(progress)

    try:
        done = run_conversion(
            request.get("sources", {}).get(case) or make(Path(request["folder"])),
            out,
            PlanOverrides(**overrides),
            ConvertOptions(**options, **choices),
            on_progress,
        )
    except PenstockError as error:
        facts = {name: str(getattr(error, name)) for name in ("path", "field", "expected", "got")}
        return {"error": type(error).__name__, "facts": facts, "row": getattr(error, "row", None)}
    return {
        "files": fingerprint(done.out),
        "notes": list(done.notes),
        "stages": sorted(set(stages)),
        "killed": [pid for killer in killers for pid in killer.killed],
    }


def main() -> None:
    request = json.loads(sys.argv[1])
    ray_engine._MIN_TASK_BYTES = 1 << 16  # many tasks, although the sources are small
    out = as_path(request["out"])
    choices = {"engine": "ray", "address": request["address"], **request.get("choices", {})}
    found = {}
    if len(request["cases"]) > 1:
        import ray  # noqa: PLC0415 - one connection for all cases

        ray.init(address=request["address"], log_to_driver=False)
    for case in request["cases"]:
        found[case] = convert_case(request, case, out / case, **choices)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
