"""Part P of the fault matrix over whole conversions: kills, full disks, two at once, bad rows, workers."""

import base64
import contextlib
import errno
import gc
import json
import os
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import killed_conversions
import penstock as ps
from killed_conversions import convert_rows, rows
from local_threads import local_threads
from penstock.errors import BusyError, CellError, FieldError, PathError, WriteError
from penstock.fields import Category, Image, Number, Tensor, Text
from penstock.source import block
from raising import containing, raises_with
from staged_writing import check_order, fingerprint, limited, read_trace, small_disk, trace_command

PROGRAM = Path(killed_conversions.__file__)
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.fspath(PROGRAM.parent)}
COMMAND = (sys.executable, "-c", "from penstock.cli.main import main; raise SystemExit(main())")


def run(*command: object, **options: object) -> subprocess.CompletedProcess[str]:
    given = {"env": ENVIRONMENT, "capture_output": True, "text": True, "timeout": 240}
    return subprocess.run(command, check=False, **(given | options))


def write_csv(path: Path, num_rows: int = 2000) -> Path:
    lines = (f"{row},word {row * 7919 % 10007},{row % 3},{row / 8}\n" for row in range(num_rows))
    path.write_text("row,word,kind,height\n" + "".join(lines))
    return path


def count(dataset: ps.Dataset) -> int:
    return sum(len(dataset[name]) for name in dataset.splits)


@contextmanager
def command_at_work(out: Path, source: Path, *options: str):
    """A `penstock convert` that has written some shards."""
    command = (*COMMAND, "convert", source, out, "--id", "row", "--shard-size", "500", *options)
    partial = out.with_name(f".{out.name}.partial")
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        try:
            while process.poll() is None and len(list(partial.glob("data/*.tfrecord*"))) < 3:
                time.sleep(0.002)
            assert process.poll() is None, process.stderr.read()
            yield process
        finally:
            process.kill()


def kill_often(
    folder: Path, points: int, by: str, compression: str, *, overwrite: bool, on_disk: bool = False
) -> dict:
    options = ["--overwrite"] * overwrite + ["--on-disk"] * on_disk
    done = run(
        *(sys.executable, PROGRAM, folder / "pets", "--points", str(points)),
        *("--by", by, "--compression", compression, *options),
        timeout=None,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["other"], found["unlike"], found["left"], found["failed"]) == ([], [], [], [])
    return found


@pytest.mark.parametrize(("compression", "overwrite"), [("none", False), ("gzip", True)])
def test_p01_p06_conversion_killed_at_a_call_leaves_old_or_new_and_resumes_to_the_same_bytes(
    fast_path, compression, overwrite
):
    found = kill_often(fast_path, 16, "call", compression, overwrite=overwrite)
    assert found["calls"] > 200
    assert found["old"] > 6
    assert found["resumed"] > 4


def test_p01_p06_conversion_killed_while_threads_read_and_sort_resumes_to_the_same_bytes(fast_path):
    found = kill_often(fast_path, 6, "call", "none", overwrite=False, on_disk=True)
    assert found["calls"] > 200
    assert found["old"] > 1


@pytest.mark.parametrize(("compression", "overwrite"), [("none", True), ("gzip", False)])
def test_p01_p06_conversion_killed_at_any_time_leaves_old_or_new_and_resumes_to_the_same_bytes(
    fast_path, compression, overwrite
):
    found = kill_often(fast_path, 10, "time", compression, overwrite=overwrite)
    assert found["old"] + found["new"] == 10


@pytest.mark.long
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("by", ["call", "time"])
def test_p01_p06_conversion_killed_at_200_points_leaves_old_or_new_and_resumes_to_the_same_bytes(
    fast_path, compression, overwrite, by
):
    found = kill_often(fast_path, 200, by, compression, overwrite=overwrite)
    assert found["old"] + found["new"] == 200


def test_p01_p06_command_that_is_killed_leaves_nothing_and_is_resumed_to_the_same_bytes(fast_path):
    source, out = write_csv(fast_path / "pets.csv"), fast_path / "pets"
    ps.convert(source, out, id="row", shard_bytes=500)
    undisturbed = fingerprint(out)
    shutil.rmtree(out)
    with command_at_work(out, source) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not out.exists()
    kept = set((fast_path / ".pets.partial" / "data").glob("*.tfrecord"))
    assert kept
    stamps = {path.name: path.stat().st_mtime_ns for path in kept}
    ps.convert(source, out, id="row", shard_bytes=500, resume=True)
    assert fingerprint(out) == undisturbed
    # What was complete was not written again.
    same = [name for name, stamp in stamps.items() if (out / name).stat().st_mtime_ns == stamp]
    assert len(same) >= len(stamps) - 2  # at most two were being finished


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_p02_file_that_may_not_grow_is_an_error_with_path_and_bytes_and_can_be_resumed(tmp_path, compression):
    out = tmp_path / "pets"
    convert_rows(out, compression=compression)
    undisturbed = fingerprint(out)
    largest = max(path.stat().st_size for path in out.glob("*.tfrecord*"))
    shutil.rmtree(out)
    for most in (0, 100, largest // 2, largest - 1):
        with limited(resource.RLIMIT_FSIZE, most), pytest.raises(WriteError) as caught:
            convert_rows(out, compression=compression, resume=True)
        # Not even the lock can be written where nothing can; the journal finds that its line was cut.
        left = "" if most == 0 else r".* \d+ (of \d+ )?bytes"
        reason = f"({os.strerror(errno.EFBIG)}|{os.strerror(errno.ENOSPC)})"
        assert re.search(reason + left, caught.value.what)
        assert caught.value.path.startswith(str(tmp_path / ".pets.partial"))
        assert caught.value.advice
        assert not out.exists()
        assert not list(tmp_path.rglob(".tmp-*"))
    convert_rows(out, compression=compression, resume=True)
    assert fingerprint(out) == undisturbed
    assert list(tmp_path.iterdir()) == [out]


FULL = """
import subprocess, sys
from pathlib import Path
import numpy as np
import penstock as ps
from penstock.errors import WriteError
from penstock.shards import conversion, engine
from penstock.shards.staging.staging import Staging
from staged_writing import fingerprint

disk, elsewhere = Path(sys.argv[1]), Path(sys.argv[2])
memory = int(sys.argv[3])
engine._MAX_FINISHING = conversion._MAX_FINISHING = 1
begun = []
begin_shard = Staging.shard

def count_shard(staging, name, *arguments, **options):
    begun.append(name)
    return begin_shard(staging, name, *arguments, **options)

Staging.shard = count_shard
noise = np.random.default_rng(0).integers(0, 256, (200, 20_000), dtype=np.uint8)
rows = {"row": np.arange(200), "noise": noise}

def convert(out, **options):
    ps.convert(rows, out, id="row", num_shards=8, num_threads=1, memory_bytes=memory, **options)

try:
    convert(disk / "pets")
except WriteError as error:
    print(error)
print((disk / "pets").exists(), len(begun), len(list(disk.glob(".pets.partial/data/*.tfrecord"))))
subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
convert(disk / "pets", resume=True)
convert(elsewhere / "pets")
print(fingerprint(disk / "pets") == fingerprint(elsewhere / "pets"))
"""


@pytest.mark.parametrize("memory", [1 << 30, 1 << 20])
def test_p02_full_disk_is_an_error_with_path_and_bytes_and_resumed_when_there_is_room(tmp_path, memory):
    disk, elsewhere = tmp_path / "disk", tmp_path / "elsewhere"
    disk.mkdir()
    inside = small_disk(disk, "3m")
    if inside is None:
        pytest.skip("this system lets no test mount a small disk")
    done = run(*inside, sys.executable, "-c", FULL, disk, elsewhere, str(memory))
    assert done.returncode == 0, done.stderr
    message, left, is_same = done.stdout.splitlines()
    assert message.startswith(f"{disk}/.pets.partial/")
    assert re.search(rf"{os.strerror(errno.ENOSPC)}.* \d+ (of \d+ )?bytes", message)
    exists, begun, complete = left.split()
    assert exists == "False"
    if memory == 1 << 20:
        # Rows that do not fit into memory lie on the disk, too: it is full before the first shard.
        assert complete == "0"
    else:
        # Seven shards of 400 kB fit. When the disk is full, at most four are in progress: two that the worker
        # writes, and two that wait for the disk. All before them are complete; others may begin and fail.
        assert int(begun) >= 7
        assert 3 <= int(complete) <= 7
    assert is_same == "True"


def test_p03_second_conversion_is_refused_and_the_folder_of_a_killed_one_is_taken_over(fast_path):
    source, out = write_csv(fast_path / "pets.csv"), fast_path / "pets"
    with command_at_work(out, source, "--compression", "gzip") as first:
        process = first.pid
        first.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        partial = out.with_name(".pets.partial")
        owner = containing(f"process {process}", platform.node())
        with raises_with(BusyError, path=str(partial), what=owner):
            ps.convert(rows(), out)
        with raises_with(BusyError, path=str(partial), what=owner):
            ps.Writer(out, ps.Schema({"a": Number()}), resume=True)
        assert time.monotonic() - began < 5
        second = run(*COMMAND, "convert", source, out, "--overwrite")
        assert second.returncode == 1
        assert second.stderr == containing(partial, f"process {process}")
        assert second.stderr.count("\n") == 1
    assert not out.exists()
    ps.convert(rows(), out)
    assert out.exists()


def never_read():
    raise AssertionError("the source was read")
    yield {}


def test_p04_folder_that_cannot_be_written_is_an_error_before_anything_is_read(tmp_path):
    (tmp_path / "file").write_text("")
    out, reason = tmp_path / "file" / "pets", containing(os.strerror(errno.ENOTDIR))
    with raises_with(PathError, path=str(out), what=reason):
        ps.convert(never_read, out)
    with raises_with(PathError, path=str(out.parent), what=containing("folder")):
        ps.convert(never_read, out.parent)
    with raises_with(PathError, path="/proc/penstock"):
        ps.convert(rows(), "/proc/penstock")


def test_p04_folders_that_are_missing_are_made(tmp_path):
    ps.convert(rows(), tmp_path / "a" / "b" / "pets")
    assert len(ps.open(tmp_path / "a" / "b" / "pets")["train"]) == 320


@pytest.mark.parametrize("foreign", [False, True])
def test_p05_existing_folder_is_refused_before_anything_is_read(tmp_path, foreign):
    out = tmp_path / "pets"
    if foreign:
        out.mkdir()
        (out / "thesis.txt").write_text("mine")
    else:
        convert_rows(out)
    before = fingerprint(out)
    facts = {"what": containing("'thesis.txt'")} if foreign else {"advice": containing("overwrite")}
    with raises_with(PathError, path=str(out), **facts):
        ps.convert(never_read, out, overwrite=foreign)
    assert fingerprint(out) == before


@pytest.mark.parametrize("fails", [False, True])
def test_p05_overwrite_keeps_the_old_data_set_until_the_new_one_is_complete(tmp_path, fails):
    out = tmp_path / "pets"
    convert_rows(out)
    before = fingerprint(out)

    def samples():
        for number in range(20_000):
            if number % 5000 == 0:
                assert fingerprint(out) == before
            yield {"number": number if number < 19_999 or not fails else "many"}

    if fails:
        with raises_with(CellError, field="number", row=20_000, got="'many'"):
            ps.convert(samples, out, overwrite=True, fields={"number": Number("int64")})
        assert fingerprint(out) == before
    else:
        assert count(ps.convert(samples, out, overwrite=True)) == 20_000


@pytest.mark.parametrize("error", [RuntimeError("the sensor is gone"), KeyboardInterrupt(), MemoryError()])
def test_p07_exception_in_a_generator_comes_out_as_itself_and_the_journal_says_the_row(
    tmp_path, monkeypatch, error
):
    monkeypatch.setattr(block, "HEAD_ROWS", 1000)

    def samples():
        for number in range(40_000):
            if number == 35_000:
                raise error
            yield {"number": number}

    with pytest.raises(type(error)) as caught:
        ps.convert(samples(), tmp_path / "pets")
    assert caught.value is error
    assert not (tmp_path / "pets").exists()
    lines = (tmp_path / ".pets.partial" / "journal.jsonl").read_text().splitlines()
    failed = json.loads(lines[-1])["failed"]
    assert failed["error"] == f"{type(error).__name__}: {error}"
    assert failed["row"] == 32_768  # the blocks before it
    assert not local_threads()


def test_p07_exception_in_the_first_rows_of_a_generator_comes_out_as_itself_and_leaves_nothing(tmp_path):
    def samples():
        yield {"number": 1}
        raise ZeroDivisionError("at the second row")

    with pytest.raises(ZeroDivisionError, match="at the second row"):
        ps.convert(samples, tmp_path / "pets")
    assert list(tmp_path.iterdir()) == []


def test_p07_interrupted_command_ends_with_130_and_leaves_no_data_set(fast_path):
    source, out = write_csv(fast_path / "pets.csv"), fast_path / "pets"
    with command_at_work(out, source) as process:
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert process.wait(timeout=20) == 130
        assert time.monotonic() - began < 5
        message = process.stderr.read()
    assert message.count("\n") == 1
    assert message == containing("interrupted", "--resume")
    assert not out.exists()
    assert not (fast_path / ".pets.partial" / "owner.json").exists()
    ps.convert(source, out, id="row", shard_bytes=500, resume=True)
    ps.convert(source, fast_path / "other", id="row", shard_bytes=500)
    assert fingerprint(out) == fingerprint(fast_path / "other")


NAN = float("nan")
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
UNFIT = [
    ({"age": [3, "three", 5]}, Number("int64"), 2, "'three'"),
    ({"age": [3, None, 5]}, Number("int64"), 2, "nothing"),
    ({"age": [3, 4.5, 5]}, Number("int64"), 2, "4.5"),
    ({"age": [3.0, NAN, 5.0]}, Number("int64"), 2, "nothing"),
    ({"age": np.array([3.0, 4.0, NAN])}, Number("int64"), 3, "nothing"),
    ({"age": np.array([1, 2, 2**63], np.uint64)}, Number("int64"), 3, 9223372036854775808),
    ({"age": ["a", "b", None]}, Category("string"), 3, "nothing"),
    ({"age": [[1, 2], [3], [4, 5]]}, Tensor((2,), "int64"), 2, 1),
    ({"age": [np.zeros((2, 2)), np.zeros((2, 3))]}, Tensor((2, 2), "float64"), 2, (2, 3)),
    ({"age": [PNG, b"no image"]}, Image(), 2, "text"),
    ({"age": [b"ok", "caf\udce9".encode("utf-8", "surrogateescape")]}, Text(), 2, "e9"),
]


@pytest.mark.parametrize(("source", "field", "row", "got"), UNFIT)
def test_p08_row_that_does_not_fit_is_named_and_nothing_is_written(tmp_path, source, field, row, got):
    with raises_with(CellError, field="age", row=row, got=containing(got)) as caught:
        ps.convert(source, tmp_path / "pets", schema=ps.Schema({"age": field}))
    assert isinstance(caught.value, FieldError)
    assert str(caught.value) == containing("'age'", f"row {row}")
    assert not (tmp_path / "pets").exists()
    assert not list(tmp_path.rglob("*.tfrecord*"))


def test_p08_cell_of_a_csv_is_named_with_its_file_row_and_line(tmp_path):
    path = tmp_path / "pets.csv"
    path.write_text('name,age\n"Rex\nthe dog",3\nAda,old\n')
    with pytest.raises(CellError) as caught:
        ps.convert(path, tmp_path / "pets", fields={"age": Number("int64")})
    error = caught.value
    assert (error.path, error.row, error.line, error.field) == (str(path), 2, 4, "age")
    assert (error.expected, error.got) == (containing("whole number"), "'old'")
    assert "missing=('', 'old')" in error.advice
    assert not (tmp_path / "pets").exists()


def test_p08_row_that_does_not_fit_after_the_first_block_has_its_own_number(tmp_path):
    ages = list(range(20_000))
    ages[17_000] = "old"
    with raises_with(CellError, field="age", row=17_001, got="'old'"):
        ps.convert(({"age": age} for age in ages), tmp_path / "pets", fields={"age": Number("int64")})


SOURCES = {
    "dict": lambda folder: rows(),
    "generator": lambda folder: ({"row": row, "text": "ab" * (row % 50)} for row in range(20_000)),
    "csv": lambda folder: write_csv(folder / "pets.csv"),
}


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("kind", SOURCES)
def test_p09_same_input_gives_the_same_bytes_with_any_number_of_workers(tmp_path, kind, compression):
    found = []
    for workers, memory in ((1, 1 << 28), (2, 1 << 28), (8, 1 << 28), (2, 1 << 14), (8, 1)):
        out = tmp_path / f"{workers} {memory}"
        options = {"num_threads": workers, "memory_bytes": memory, "compression": compression}
        ps.convert(SOURCES[kind](tmp_path), out, id="row", num_shards=3, **options)
        found.append(fingerprint(out))
    assert len(found[0]) > 8
    assert all(each == found[0] for each in found)


def test_p09_another_seed_gives_other_splits_and_another_order(tmp_path):
    found = []
    for seed in (0, 1):
        train = ps.convert(rows(), tmp_path / str(seed), id="row", seed=seed)["train"]
        found.append(train.columns()["row"].values.tolist())
    assert found[0] != found[1]
    assert sorted(found[0]) != sorted(found[1])


HEIGHT = ps.Schema({"height": Number("float32")})


def test_p10_writer_closed_twice_is_complete_and_takes_no_more(tmp_path):
    writer = ps.Writer(tmp_path / "tides", HEIGHT)
    writer.write({"height": 1.5})
    writer.close()
    before = fingerprint(tmp_path / "tides")
    writer.close()
    assert fingerprint(tmp_path / "tides") == before
    with raises_with(WriteError, path=str(tmp_path / "tides"), what=containing("closed")):
        writer.write({"height": 2.5})


@pytest.mark.parametrize("num_samples", [0, 3, 20_000])
def test_p10_writer_that_is_forgotten_warns_and_leaves_no_data_set(tmp_path, num_samples):
    writer = ps.Writer(tmp_path / "tides", HEIGHT)
    for number in range(num_samples):
        writer.write({"height": number})
    with pytest.warns(ResourceWarning, match="tides.* not closed"):  # noqa: PT031
        del writer
        gc.collect()
    assert not (tmp_path / "tides").exists()
    ps.Writer(tmp_path / "tides", HEIGHT).__exit__(ValueError, ValueError(), None)  # the lock is free


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt()])
def test_p10_writer_left_by_an_exception_passes_it_on_and_leaves_no_data_set(tmp_path, error):
    with pytest.raises(type(error)) as caught, ps.Writer(tmp_path / "tides", HEIGHT) as writer:  # noqa: PT012
        writer.write({"height": 1.0})
        raise error
    assert caught.value is error
    assert not (tmp_path / "tides").exists()
    with raises_with(WriteError, path=str(tmp_path / "tides"), what=containing("closed")):
        writer.write({"height": 1.0})
    journal = (tmp_path / ".tides.partial" / "journal.jsonl").read_text()
    assert json.loads(journal.splitlines()[-1])["failed"]["row"] == 1


@pytest.mark.parametrize("overwrite", [False, True])
def test_p11_conversion_syncs_every_file_before_it_is_named_and_all_before_the_data_set_is(
    tmp_path, overwrite
):
    source, out = write_csv(tmp_path / "pets.csv", 100), tmp_path / "pets"
    strace = trace_command(tmp_path / "trace")
    if strace is None:
        pytest.skip("strace is not there, or not allowed")
    if overwrite:
        convert_rows(out)
    options = ["--overwrite"] if overwrite else []
    done = run(*strace, *COMMAND, "convert", source, out, "--num-shards", "2", *options)
    assert done.returncode == 0, done.stderr
    check_order(read_trace(tmp_path / "trace"), out)


class FailingSync:
    """An `os.fsync` with one call that fails, as on a disk that cannot be read or written."""

    def __init__(self, failing_call: int) -> None:
        self.num_calls = 0
        self._failing_call = failing_call
        self._sync, self._lock = os.fsync, threading.Lock()

    def __call__(self, fd: int) -> None:
        with self._lock:
            self.num_calls += 1
            if self.num_calls == self._failing_call + 1:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._sync(fd)


@pytest.mark.parametrize("workers", [1, 3])
def test_p11_sync_that_fails_at_any_call_is_an_error_and_resumes_to_the_same_bytes(
    tmp_path, monkeypatch, workers
):
    table = {"row": list(range(300)), "word": [f"word {row * 7919 % 101}" for row in range(300)]}
    options = {"num_shards": 4, "num_threads": workers}
    ps.convert(table, tmp_path / "whole", **options)
    wanted = fingerprint(tmp_path / "whole")
    is_done, number = False, 0
    while not is_done:
        out = tmp_path / f"out-{number}"
        sync = FailingSync(number)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", sync)
            with contextlib.suppress(WriteError, PathError):
                ps.convert(table, out, **options)
                is_done = True
        assert is_done == (sync.num_calls <= number)  # every failure is an error
        if not is_done:
            ps.convert(table, out, **options, resume=True)
        assert fingerprint(out) == wanted
        assert not out.with_name(f".{out.name}.partial").exists()
        number += 1
    assert number > 20


def test_p12_few_open_files_are_enough_for_many_shards(tmp_path):
    source = write_csv(tmp_path / "pets.csv", 500)
    command = (*COMMAND, "convert", source, tmp_path / "pets", "--shard-size", "400", "--threads", "2")
    done = run("sh", "-c", 'ulimit -n 32; exec "$@"', "sh", *command)
    assert done.returncode == 0, done.stderr
    assert len(ps.open(tmp_path / "pets").paths) > 50


@pytest.mark.parametrize("limit", ["n 8", "f 1"])
def test_p12_limit_that_is_too_low_is_one_line_and_leaves_no_data_set(tmp_path, limit):
    source = write_csv(tmp_path / "pets.csv", 2000)
    done = run(
        "sh", "-c", f'ulimit -{limit}; exec "$@"', "sh", *COMMAND, "convert", source, tmp_path / "pets"
    )
    assert done.returncode == 1
    reason = os.strerror(errno.EMFILE if limit == "n 8" else errno.EFBIG)
    assert done.stderr == containing("penstock: error: ", f"{tmp_path}/", reason)
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "pets").exists()


LITTLE_MEMORY = """
import resource, sys
import numpy as np
from penstock.cli.main import main
import penstock.cli.convert
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + (120 << 20),) * 2)
raise SystemExit(main())
"""


def test_p12_too_little_memory_is_one_line_and_leaves_no_data_set(tmp_path):
    path = tmp_path / "pets.csv"
    path.write_text("word\n" + "".join(f"{'x' * 900}{row}\n" for row in range(60_000)))
    done = run(sys.executable, "-c", LITTLE_MEMORY, "convert", path, tmp_path / "pets", "--threads", "1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == containing("penstock: error: ", "memory")
    assert done.stderr.count("\n") == 1
    assert "internal" not in done.stderr
    assert not (tmp_path / "pets").exists()
