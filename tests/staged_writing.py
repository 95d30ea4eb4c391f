"""Small data sets written through `Staging`: in this process, or as a program that can be killed.

`python staged_writing.py write OUT …` writes one, `crash OUT …` dies at every call to the system in turn,
resumes, and says what was there in between.
"""

import argparse
import hashlib
import itertools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import penstock as ps
from penstock.errors import PenstockError
from penstock.format.entry import ShardEntry, SplitEntry
from penstock.format.manifest import MANIFEST_NAME, Manifest, dump
from penstock.shards.staging.staging import Staging
from record_files import numbered
from wire.frame import write_record

SCHEMA = ps.Schema({"row": ps.fields.Number("int64"), "text": ps.fields.Text()})
NUM_SHARDS = 2
CHANGES = ("open", "write", "pwrite", "ftruncate", "fsync", "rename", "replace", "mkdir", "unlink", "rmdir")


def shard_names(num_shards: int = NUM_SHARDS) -> list[str]:
    return [f"train-{i:05}-of-{num_shards:05}.tfrecord" for i in range(num_shards)]


def frames_of(shard: int, num_records: int = 4) -> tuple[bytes, np.ndarray]:
    """Return the frames of a shard and their sizes."""
    frames = [write_record(numbered(10 * shard + i)) for i in range(num_records)]
    return b"".join(frames), np.array([len(frame) for frame in frames])


def write_shards(staging: Staging, compression: str, num_shards: int = NUM_SHARDS) -> list[ShardEntry]:
    """Write all shards that are not there yet."""
    entries = []
    for i, name in enumerate(shard_names(num_shards)):
        if name in staging.journal.shards:
            entries.append(staging.journal.shards[name])
            continue
        frames, sizes = frames_of(i)
        with staging.shard(name, compression) as shard:
            shard.write(frames[: sizes[0]], sizes[:1])
            shard.write(frames[sizes[0] :], sizes[1:])
            entries.append(staging.finish(shard))
    return entries


def write_manifest(staging: Staging, entries: list[ShardEntry], compression: str) -> None:
    manifest = Manifest(
        schema=SCHEMA,
        payload="example",
        compression=compression,
        splits={"train": SplitEntry(tuple(entries))},
        version="0",
        folder=staging.publication.shards_folder,
    )
    staging.write(MANIFEST_NAME, dump(manifest))


def write_staged(
    out: Path,
    *,
    overwrite: bool = False,
    resume: bool = False,
    compression: str = "none",
    wait: Callable[[], None] | None = None,
) -> None:
    """Write a data set that depends on `compression` alone; `wait` is called when its shards are complete."""
    with Staging(out, overwrite=overwrite, resume=resume) as staging:
        staging.begin({"compression": compression})
        staging.journal.add_rows(12, "ab")
        (staging.scratch / "spilled").write_bytes(b"rows")
        entries = write_shards(staging, compression)
        if wait is not None:
            wait()
        write_manifest(staging, entries, compression)
        staging.commit()


def fingerprint(folder: Path) -> dict[str, str] | None:
    """Return the hash of every file below a folder, or None if it does not exist."""
    if not folder.exists():
        return None
    files = (path for path in sorted(folder.rglob("*")) if not path.is_dir())
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }


def watch_calls(before: Callable[[str, tuple], None]) -> None:
    """Have something called before each call of this process that changes a disk, with what it is given."""

    def arm(name: str) -> None:
        original = getattr(os, name)

        def watched(*given, **named):
            before(name, given)
            return original(*given, **named)

        setattr(os, name, watched)

    for name in CHANGES:
        arm(name)


def die_at(call: int) -> None:
    """Have this process end at its n-th call that changes a disk; a write is torn by it."""
    numbers = itertools.count(1)
    write = os.write

    def die(name: str, given: tuple) -> None:
        if next(numbers) == call:
            if name == "write":
                write(given[0], bytes(given[1])[: len(given[1]) // 2])
            os.kill(os.getpid(), signal.SIGKILL)

    watch_calls(die)


def count_calls() -> Callable[[], int]:
    """Count the calls of this process that change a disk from now on; returns what tells the number."""
    seen = []
    watch_calls(lambda name, given: seen.append(name))
    return lambda: len(seen)


@contextmanager
def limited(kind: int, most: int) -> Iterator[None]:
    """Let this process have no more of something than that."""
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)


def read_trace(trace: Path) -> list[tuple[str, ...]]:
    """Return what `strace -f -y` saw, by when it ended: ("write" or "sync", path), ("rename", old, new)."""
    calls: list[tuple[str, ...]] = []
    begun: dict[str, str] = {}
    for line in trace.read_text().splitlines():
        thread, _, rest = line.partition(" ")
        rest = rest.strip()
        if rest.endswith("<unfinished ...>"):
            begun[thread] = rest.removesuffix("<unfinished ...>").rstrip()
            continue
        if rest.startswith("<... "):
            rest = begun.pop(thread) + rest.partition("resumed>")[2]
        match = re.match(r"(?P<name>\w+)\((?P<given>.*)\) += \d+", rest)
        if match is None:
            continue
        if match["name"].startswith("rename"):
            calls.append(("rename", *re.findall(r'"([^"]*)"', match["given"])))
        elif opened := re.match(r"\d+<(?P<path>[^>]*)>", match["given"]):
            calls.append(("sync" if match["name"] == "fsync" else "write", opened["path"]))
    return calls


def check_order(calls: list[tuple[str, ...]], out: Path) -> None:
    """Check that each file was synced before it was named, and all of that before the data set was."""
    data = out.with_name(f".{out.name}.partial") / "data"
    swapped = calls.index(("rename", os.fspath(data), os.fspath(out)))
    assert ("sync", os.fspath(out.parent)) in calls[swapped:]
    names = {call[2]: call for call in calls[:swapped] if call[0] == "rename"}
    assert set(names) == {os.fspath(data / name) for name in fingerprint(out)}
    for name, call in names.items():
        named = calls.index(call)
        written = [i for i, each in enumerate(calls) if each == ("write", call[1])]
        assert written
        synced = calls.index(("sync", call[1]), written[-1])
        assert synced < named
        assert ("sync", os.fspath(Path(name).parent)) in calls[named:swapped]


def trace_command(trace: Path) -> tuple[str, ...] | None:
    """Return the prefix of a command that records its system calls; None where that is not allowed."""
    traced = "trace=write,pwrite64,fsync,rename,renameat,renameat2"
    command = ("strace", "-f", "-y", "-qq", "-s", "0", "-e", traced, "-o", os.fspath(trace))
    if shutil.which("strace") is None:
        return None
    done = subprocess.run([*command, "true"], capture_output=True, check=False)
    return None if done.returncode else command


def small_disk(folder: Path, size: str) -> tuple[str, ...] | None:
    """Return the prefix of a command for which a folder is a small disk; None where that is not allowed."""
    mount = f'mount -t tmpfs -o size={size} tmpfs "$0" && exec "$@"'
    command = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, os.fspath(folder))
    if shutil.which("unshare") is None:
        return None
    done = subprocess.run([*command, "true"], capture_output=True, check=False)
    return None if done.returncode else command


def run_child(action: Callable[[], None]) -> int:
    """Run something in a fork of this process, and return how it ended: 0, or less than 0 for a signal."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
        except PenstockError as error:
            print(error, file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def crash_everywhere(out: Path, compression: str, *, overwrite: bool) -> dict:
    """Die at every call in turn, resume each time, and tell how often what was found."""
    write_staged(out, compression=compression)
    new = fingerprint(out)
    old = None
    shutil.rmtree(out)
    if overwrite:
        write_staged(out, compression="gzip" if compression == "none" else "none")
        old = fingerprint(out)
    kept = out.with_name("kept")
    if overwrite:
        out.rename(kept)
    found = {"old": 0, "new": 0, "other": [], "unlike": [], "left": [], "calls": 0}
    while True:
        if overwrite:
            shutil.copytree(kept, out)
        found["calls"] += 1

        def die(call: int = found["calls"]) -> None:
            die_at(call)
            write_staged(out, compression=compression, overwrite=overwrite)

        status = run_child(die)
        state = fingerprint(out)
        if state in (old, new):
            found["old" if state == old else "new"] += 1
        else:
            found["other"].append(found["calls"])
        # A crash may come when the new one is in its place, and only the old one was to be removed.
        write_staged(out, compression=compression, overwrite=overwrite or state == new, resume=True)
        if fingerprint(out) != new:
            found["unlike"].append(found["calls"])
        if [path.name for path in out.parent.iterdir() if path.name not in (out.name, "kept")]:
            found["left"].append(found["calls"])
        shutil.rmtree(out)
        if status == 0:
            return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=("write", "crash"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--compression", default="none")
    parser.add_argument("--overwrite", action="store_true")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--wait", action="store_true", help="say 'ready' when the shards are there, and stay")
    given = parser.parse_args()
    if given.action == "crash":
        print(json.dumps(crash_everywhere(given.out, given.compression, overwrite=given.overwrite)))
        return

    def wait() -> None:
        print("ready", flush=True)
        time.sleep(600)

    write_staged(
        given.out,
        overwrite=given.overwrite,
        resume=given.resume,
        compression=given.compression,
        wait=wait if given.wait else None,
    )


if __name__ == "__main__":
    main()
