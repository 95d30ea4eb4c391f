"""The process that converts one source several times, and measures the CPU seconds of each stage.

In: the source, the number of threads and the output folder as JSON on the command line, then one line on
stdin for each conversion. Out: one line of JSON for each. The package is the one that PYTHONPATH names first.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

TREE = Path(__file__).resolve().parents[1]
SEED = 5
BLOB_BYTES = 40_000
NUM_SHARDS = 32
NUM_CLASSES = 10


class Stage(NamedTuple):
    """A stage, and the functions that do it: `module:name` in the package.

    Some are of older trees: functions that a tree lacks are ignored, but this tree has one at least of each
    stage. `is_divided`: whether any number of threads share the stage.
    `is_iterator`: whether the functions return iterators.
    """

    name: str
    functions: tuple[str, ...]
    is_divided: bool = False
    is_iterator: bool = False


STAGES = (
    Stage("open, list", ("jobs.convert.convert:open_source", "jobs.convert.convert:is_dataset")),
    Stage("read the head", ("source.block:_take_head",)),
    Stage("survey, plan", ("jobs.convert.raw_source:make_plan",)),
    Stage("read the source", ("source.block:PeekedSource.blocks",), is_iterator=True),
    Stage("take a block: merge statistics", ("shards.conversion:Conversion._merge_held",)),
    Stage("take a block: content digest", ("shards.content:ContentDigest.add",)),
    Stage("take a block: keep rows", ("shards.sort.row_store:RowStore.append",)),
    Stage("take a block: rest", ("shards.conversion:Conversion._append",)),
    Stage("content digest, end", ("shards.content:ContentDigest.finish",)),
    Stage(
        "SHA-256 of the source",
        ("source.files:FilesSource._digest", "source.files:_hash_file", "source.file_digests:_hash_file"),
    ),
    Stage("assign splits", ("shards.conversion:assign",)),
    Stage("sort rows", ("shards.sort.row_store:RowStore.finish",)),
    Stage(
        "sort, gather, write a run",
        (
            *("shards.sort.spill:Spill.add_run", "shards.sort.spill:Spill.make_run"),
            "shards.sort.row_store:RowStore._write_run",
        ),
    ),
    Stage("describe statistics", ("shards.conversion:Conversion._measure",)),
    Stage("manifest", ("shards.conversion:Conversion._write_metadata",)),
    Stage("commit", ("shards.staging.staging:Staging.commit",)),
    Stage("open the data set", ("jobs.convert.convert:open_dataset",)),
    Stage("encode: cells to columns", ("encode.raw_rows:RawRows.encode",)),
    Stage(
        "encode: files, in one thread",
        (
            "encode.image:_ImageEncoder.encode_files",
            *("encode.bytes:_defer_files", "encode.strings:_defer_files"),
        ),
    ),
    Stage("encode: files, divided", ("encode.file_check:_check_part",), is_divided=True),
    Stage("encode: bodies", ("encode.records:EncodableRows.encode",)),
    Stage(
        "encode: hash and digest rows",
        ("encode.records:EncodableRows.hash_rows", "encode.records:EncodableRows.digest_rows"),
    ),
    Stage("encode: statistics", ("shards.row_work:measure_block",)),
    Stage("encode: references", ("shards.row_work:make_references",)),
    Stage("encode: rest", ("shards.row_work:RowWork._work",)),
    Stage(
        "content SHA-256", ("shards.content:digest_pieces", "shards.content:digest_parts"), is_divided=True
    ),
    Stage("shards: load rows", ("shards.sort.row_store:RowStore.chunks",), is_iterator=True),
    Stage("shards: cut pieces", ("shards.shard_work:ShardWork._cut",), is_iterator=True),
    Stage("shards: compose frames", ("shards.shard_work:ShardWork._compose",)),
    Stage(
        "shards: write()",
        ("storage.atomic:AtomicFile.write", "storage.atomic:AtomicFile.write_all"),
    ),
    Stage("shards: SHA-256", ("shards.shard_file:update_all",)),
    Stage("shards: sync, index", ("storage.atomic:AtomicFile.commit", "shards.shard_file:ShardFile.commit")),
    Stage("shards: rest", ("shards.shard_work:ShardWork.__call__",)),
)
TASK = "shards.row_work:RowWork.__call__"


class Clock:
    """CPU seconds by stage; a stage that is called by another one does not count for that one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._local = threading.local()
        self.clear()

    def clear(self) -> None:
        """Begin a conversion."""
        self.stages: dict[str, float] = {}
        self.longest = 0.0

    def enter(self) -> None:
        """Begin a stage on this thread."""
        self._frames().append([time.thread_time(), 0.0, 0.0])

    def leave(self, stage: Stage | None) -> None:
        """End the stage that began last; None for a task, of which the longest counts."""
        frames = self._frames()
        start, inner, divided = frames.pop()
        seconds = time.thread_time() - start
        if stage is not None and stage.is_divided:
            divided = seconds
        if frames:
            frames[-1][1] += seconds if stage is not None else inner
            frames[-1][2] += divided
        with self._lock:
            if stage is None:
                self.longest = max(self.longest, seconds - divided)
                return
            is_main = threading.current_thread() is threading.main_thread()
            name = f"main: {stage.name}" if is_main else stage.name
            self.stages[name] = self.stages.get(name, 0.0) + seconds - inner

    def _frames(self) -> list[list[float]]:
        if not hasattr(self._local, "frames"):
            self._local.frames = []
        frames: list[list[float]] = self._local.frames
        return frames


def find(target: str) -> tuple[Any, str] | None:
    """Return the owner of a function of the package and its name there; None if there is no such function."""
    module, _, name = target.partition(":")
    *classes, last = name.split(".")
    try:
        owner: Any = importlib.import_module(f"penstock.{module}")
        for each in classes:
            owner = getattr(owner, each)
    except (ImportError, AttributeError):
        return None
    return (owner, last) if hasattr(owner, last) else None


def list_lost(stages: Iterable[Stage]) -> list[str]:
    """Return the names of the stages of which the package has no function."""
    return [stage.name for stage in stages if not any(map(find, stage.functions))]


def refuse_lost(package: Path) -> None:
    """Refuse to measure the tree of this script if a stage is without functions; an older tree may lack some.

    `package`: the file of the package that is measured.
    """
    lost = list_lost([*STAGES, Stage("longest task", (TASK,))])
    if lost and package.resolve().is_relative_to(TREE / "src"):
        raise SystemExit(f"no function of this tree does: {'; '.join(lost)}")


def wrap(clock: Clock, target: str, stage: Stage | None) -> None:
    """Measure a function of the package, if there is such a function."""
    found = find(target)
    if found is None:
        return
    owner, last = found
    function = getattr(owner, last)
    iterates = stage is not None and stage.is_iterator
    setattr(owner, last, _iterate(clock, function, stage) if iterates else _call(clock, function, stage))


def _call(clock: Clock, function: Callable[..., Any], stage: Stage | None) -> Callable[..., Any]:
    @functools.wraps(function)
    def measured(*args: Any, **keywords: Any) -> Any:
        clock.enter()
        try:
            return function(*args, **keywords)
        finally:
            clock.leave(stage)

    return measured


def _iterate(clock: Clock, function: Callable[..., Any], stage: Stage | None) -> Callable[..., Any]:
    @functools.wraps(function)
    def measured(*args: Any, **keywords: Any) -> Iterator[Any]:
        items = iter(function(*args, **keywords))
        while True:
            clock.enter()
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                clock.leave(stage)
            yield item

    return measured


def make_blobs(num_records: int) -> dict[str, Any]:
    """Return columns in memory."""
    import numpy as np  # noqa: PLC0415 - the package is imported first

    rng = np.random.default_rng(SEED)
    return {
        "blob": [rng.bytes(BLOB_BYTES) for _ in range(num_records)],
        "label": np.arange(num_records) % NUM_CLASSES,
    }


def digest_folder(folder: Path) -> str:
    """Return one digest of the names and the bytes of all files."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            digest.update(f"{path.relative_to(folder)} {content}\n".encode())
    return digest.hexdigest()


def main() -> None:
    """Convert once for each line of stdin."""
    job = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    import penstock as ps  # noqa: PLC0415 - nothing may be printed to the pipe of the answers

    logging.getLogger("penstock").setLevel(logging.ERROR)  # no notes about the columns
    clock = Clock()
    importlib.import_module("penstock.jobs.convert.convert")
    refuse_lost(Path(ps.__file__))
    for stage in STAGES:
        for target in stage.functions:
            wrap(clock, target, stage)
    wrap(clock, TASK, None)
    out = Path(job["out"])
    source = job["source"] or make_blobs(job["num_records"])
    target = None if job["source"] and Path(job["source"]).is_dir() else "label"
    digest = ""
    for _ in sys.stdin:
        clock.clear()
        wall, thread, process = time.perf_counter(), time.thread_time(), time.process_time()
        ps.convert(source, out, target=target, num_threads=job["num_threads"], num_shards=NUM_SHARDS)
        in_main, all_cpu = time.thread_time() - thread, time.process_time() - process
        known = {"main: ": in_main, "": all_cpu - in_main}
        for is_main, seconds in known.items():
            rest = seconds - sum(
                each for name, each in clock.stages.items() if name.startswith("main: ") == bool(is_main)
            )
            clock.stages[f"{is_main}{'rest' if is_main else 'rest, and threads of other libraries'}"] = rest
        digest = digest or digest_folder(out)
        shutil.rmtree(out)
        answer = {
            "wall": time.perf_counter() - wall,
            "main": in_main,
            "others": all_cpu - in_main,
            "longest": clock.longest,
            "stages": clock.stages,
            "digest": digest,
        }
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
