"""Part P of the fault matrix, as far as one writer's folder goes: crashes, full disks, two writers, order."""

import errno
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import staged_writing
from penstock.errors import BusyError, PathError, WriteError
from penstock.shards.staging.journal import Journal
from penstock.shards.staging.staging import Staging
from raising import containing, raises_with
from staged_writing import (
    check_order,
    fingerprint,
    limited,
    read_trace,
    shard_names,
    small_disk,
    trace_command,
    write_shards,
    write_staged,
)

PROGRAM = Path(staged_writing.__file__)
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.fspath(PROGRAM.parent)}


def run_program(*given: object, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [*before, sys.executable, PROGRAM, *given]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=240, check=False)


@contextmanager
def waiting_writer(out: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Another process whose shards are complete, and which goes no further."""
    command = [sys.executable, PROGRAM, "write", out, "--wait", *options]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(("compression", "overwrite"), [("none", False), ("gzip", True)])
def test_p01_p06_crash_at_every_call_leaves_old_or_new_and_resumes_to_the_same_bytes(
    fast_path, compression, overwrite
):
    options = ["--overwrite"] if overwrite else []
    run = run_program("crash", fast_path / "pets", "--compression", compression, *options)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["calls"] > 80
    assert (found["other"], found["unlike"], found["left"]) == ([], [], [])
    assert found["old"] > 60
    assert found["new"] > 5


def test_p01_reader_of_a_folder_that_is_overwritten_sees_the_old_one_or_the_new_one(tmp_path):
    out = tmp_path / "pets"
    for name, compression in (("other", "gzip"), ("pets", "none")):
        write_staged(tmp_path / name, compression=compression)
    whole = {(tmp_path / name / "penstock.json").read_bytes() for name in ("other", "pets")}
    is_over = threading.Event()
    seen = []

    def read() -> None:
        while not is_over.is_set():
            seen.append((out / "penstock.json").read_bytes() if out.exists() else None)

    reader = threading.Thread(target=read)
    reader.start()
    for compression in ["gzip", "none"] * 5:
        write_staged(out, overwrite=True, compression=compression)
    is_over.set()
    reader.join()
    assert set(seen) == whole


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_p02_shard_that_does_not_fit_names_the_bytes_and_the_earlier_ones_are_kept(tmp_path, compression):
    out = tmp_path / "pets"
    write_staged(out, compression=compression)
    undisturbed = fingerprint(out)
    size = (out / shard_names()[0]).stat().st_size
    shutil.rmtree(out)
    for most in (0, 1, size // 2, size - 1):
        with Staging(out) as staging:
            staging.begin({"compression": compression})
            write_shards(staging, compression, 1)  # under a name that no later run asks for
            (entry,) = staging.journal.shards.values()
            with limited(resource.RLIMIT_FSIZE, most), pytest.raises(WriteError) as caught:
                write_shards(staging, compression)
            assert caught.value.path.endswith("data/train-00000-of-00002.tfrecord")
            assert re.search(rf"{os.strerror(errno.EFBIG)}.* \d+ of \d+ bytes", caught.value.what)
        hidden = tmp_path / ".pets.partial"
        assert [path.name for path in hidden.glob("data/*.tfrecord")] == [entry.name]
        assert not list(hidden.rglob(".tmp-*"))
        write_staged(out, compression=compression, resume=True)
        shutil.rmtree(out)
    write_staged(out, compression=compression)
    assert fingerprint(out) == undisturbed


FULL = """
import shutil, subprocess, sys
from pathlib import Path
import numpy as np
from penstock.errors import WriteError
from penstock.shards.staging.staging import Staging

disk = Path(sys.argv[1])
frames = np.random.default_rng(0).integers(0, 256, 1 << 20, dtype=np.uint8)
sizes = np.full(16, 1 << 16)

def write():
    with Staging(disk / "pets", resume=True) as staging:
        staging.begin({})
        found = len(staging.journal.shards)
        for i in range(found, 4):
            with staging.shard(f"train-{i:05}-of-00004.tfrecord", planned_bytes=1 << 20) as shard:
                shard.write(frames, sizes)
                staging.finish(shard)
        staging.commit()
    return found

try:
    write()
except WriteError as error:
    print(error)
print(sorted(path.name for path in disk.glob(".pets.partial/data/*")))
subprocess.run(["mount", "-o", "remount,size=16m", disk], check=True)
print(write())
"""


def test_p02_full_disk_keeps_the_shards_before_and_is_resumed_when_there_is_room(tmp_path):
    inside = small_disk(tmp_path, "2500k")
    if inside is None:
        pytest.skip("this system lets no test mount a small disk")
    run = subprocess.run(
        [*inside, sys.executable, "-c", FULL, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    message, names, num_kept = run.stdout.splitlines()
    assert message == containing(
        "train-00002-of-00004.tfrecord: ", os.strerror(errno.ENOSPC), "1048576 bytes"
    )
    assert [name for name in re.findall(r"'(.*?)'", names) if name.endswith("tfrecord")] == [
        "train-00000-of-00004.tfrecord",
        "train-00001-of-00004.tfrecord",
    ]
    assert ".tmp-" not in names
    assert num_kept == "2"


def test_p03_second_writer_is_refused_and_the_folder_of_a_killed_one_is_taken_over(tmp_path):
    out = tmp_path / "pets"
    with waiting_writer(out) as first:
        second = run_program("write", out)
        assert second.returncode == 1
        owner = containing(f"process {first.pid}", platform.node())
        assert second.stderr == containing("BusyError: ", f"process {first.pid}")
        with raises_with(BusyError, what=owner):
            write_staged(out, resume=True)
    assert not out.exists()
    write_staged(out)
    assert (out / "penstock.json").exists()


def test_p04_missing_folder_is_made_and_one_that_cannot_be_made_is_an_error_before_any_work(tmp_path):
    write_staged(tmp_path / "a" / "pets")
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "pets"
    with raises_with(PathError, path=str(out), what=containing(os.strerror(errno.ENOTDIR))):
        Staging(out)


def test_p05_existing_data_set_is_refused_and_with_overwrite_readable_until_the_end(tmp_path):
    out = tmp_path / "pets"
    write_staged(out)
    before = fingerprint(out)
    with raises_with(PathError, path=str(out), advice=containing("overwrite")):
        write_staged(out)
    with waiting_writer(out, "--overwrite", "--compression", "gzip"):
        assert fingerprint(out) == before
    assert fingerprint(out) == before
    write_staged(out, overwrite=True, compression="gzip", resume=True)
    assert fingerprint(out) != before


@pytest.mark.parametrize("error", [ValueError("row 17 is odd"), KeyboardInterrupt()])
def test_p07_exception_leaves_no_data_set_and_the_journal_says_the_row(tmp_path, error):
    out = tmp_path / "pets"
    with pytest.raises(type(error)) as caught, Staging(out) as staging:  # noqa: PT012
        staging.begin({})
        write_shards(staging, "none")
        staging.journal.add_failure(17, error)
        raise error
    assert caught.value is error
    assert not out.exists()
    journal = Journal(tmp_path / ".pets.partial", resume=True)
    assert journal.failure is not None
    assert journal.failure.row == 17
    assert sorted(journal.shards) == shard_names()
    journal.close()


def test_p10_close_twice_is_idempotent_write_after_close_an_error_and_forgotten_close_a_warning(tmp_path):
    staging = Staging(tmp_path / "pets").__enter__()
    staging.begin({})
    shard = staging.shard("train-00000-of-00001.tfrecord")
    entry = staging.finish(shard)
    assert shard.commit() is entry
    with raises_with(WriteError, what=containing("closed")):
        shard.write(*staged_writing.frames_of(0))
    with pytest.warns(ResourceWarning, match="pets.* closed"):
        del staging
    assert not (tmp_path / "pets").exists()


@pytest.mark.parametrize("overwrite", [False, True])
def test_p11_every_file_is_synced_before_it_is_named_and_all_before_the_data_set_is(tmp_path, overwrite):
    out = tmp_path / "pets"
    strace = trace_command(tmp_path / "trace")
    if strace is None:
        pytest.skip("strace is not there, or not allowed")
    if overwrite:
        write_staged(out, compression="gzip")
    run = run_program("write", out, *(["--overwrite"] if overwrite else []), before=strace)
    assert run.returncode == 0, run.stderr
    check_order(read_trace(tmp_path / "trace"), out)


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_p12_few_open_files_are_enough(tmp_path, compression):
    few = ("sh", "-c", 'ulimit -n 32; exec "$0" "$@"')
    run = run_program("write", tmp_path / "pets", "--compression", compression, before=few)
    assert run.returncode == 0, run.stderr


def test_p12_too_few_open_files_is_a_clean_error(tmp_path):
    with Staging(tmp_path / "pets") as staging:
        staging.begin({})
        lowest_free = os.dup(0)
        os.close(lowest_free)
        advice = containing("ulimit -n")
        with limited(resource.RLIMIT_NOFILE, lowest_free), raises_with(WriteError, advice=advice):
            staging.shard("train-00000-of-00001.tfrecord")
    assert list(tmp_path.iterdir()) == []
