"""Lengths and streams that claim more memory than is there, F7–F9 and F19 of the fault table.

Each runs in a separate process, whose memory is limited and measured: an unchecked length would end it.
"""

import gzip
import json
import os
import subprocess
import sys
import zlib

import pytest

from penstock._native import masked_crc32c
from raising import containing
from record_files import BASE, FRAME_BYTES, FRAMES, example, header, open_split, write_plain

pytestmark = pytest.mark.skipif(
    "PENSTOCK_SANITIZED" in os.environ, reason="sanitizers take memory of their own"
)

MB = 1 << 20

# Reads the files that are named, and prints for each what was delivered, the error, and how far memory grew.
READ = """
import json, resource, sys
import penstock as ps
from penstock.errors import PenstockError

def status(key):
    for line in open("/proc/self/status"):
        if line.startswith(key + ":"):
            return int(line.split()[1]) << 10

def read(path, on_error, **options):
    numbers, error = [], None
    try:
        split = ps.open(path, on_error=on_error, options=ps.options.ReadOptions(**options))["all"]
        for payload in split.records():
            numbers.append(len(payload))
    except PenstockError as caught:
        error = caught
    facts = None if error is None else {
        "type": type(error).__name__, "record": error.record, "offset": error.offset, "field": error.field,
        "expected": error.expected, "got": error.got, "what": error.what, "advice": error.advice}
    return {"sizes": numbers, "error": facts}

sample, options, *paths = sys.argv[1:]
read(sample, "raise")  # loads whatever is loaded late
before = status("VmHWM")
limit = status("VmSize") + (512 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
results = [read(path, on_error, **json.loads(options)) for path in paths for on_error in ("raise", "skip")]
print(json.dumps({"results": results, "growth": status("VmHWM") - before}))
"""


@pytest.fixture
def read_measured(tmp_path):
    sample = write_plain(tmp_path / "sample.tfrecord", [b"x"] * 3)

    def run(*paths, **options):
        """Return pairs of results, under "raise" and under "skip", and the growth of memory in bytes."""
        command = [sys.executable, "-c", READ, sample, json.dumps(options), *paths]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        results = answer["results"]
        return list(zip(results[::2], results[1::2], strict=True)), answer["growth"]

    return run


LENGTHS = {
    "f07": [2**30 + 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32],
    "f08": [2**36, 2**42, 2**50],
    "f09": [2**63 - 1, 2**63, 2**63 + 1, 2**64 - 17, 2**64 - 16, 2**64 - 1],
}
CLAIMS = [(row, length) for row, lengths in LENGTHS.items() for length in lengths]


def claim_files(tmp_path, wrap):
    """Write for each length a file whose third record claims it, with a CRC that fits."""
    paths = []
    for row, length in CLAIMS:
        data = b"".join(FRAMES[:2]) + header(length) + BASE[2 * FRAME_BYTES + 12 :]
        path = tmp_path / f"{row}-{length}.tfrecord"
        path.write_bytes(wrap(data))
        paths.append(path)
    return paths


@pytest.mark.parametrize("form", ["plain", "gzip"])
def test_f07_f08_f09_length_beyond_the_file_is_an_error_before_memory_is_taken(tmp_path, read_measured, form):
    wrap = gzip.compress if form == "gzip" else bytes
    pairs, growth = read_measured(*claim_files(tmp_path, wrap))
    assert growth < 16 * MB
    for (row, length), (raised, skipped) in zip(CLAIMS, pairs, strict=True):
        error = raised["error"]
        assert raised["sizes"] == [69, 69], row
        assert (error["type"], error["record"], error["offset"]) == ("CorruptRecordError", 2, 170)
        assert (error["field"], error["got"]) == ("length", containing(length))
        # The record that claims it is lost, and no other.
        assert (skipped["sizes"], skipped["error"]) == ([69, 69, 69, 69], None)


@pytest.mark.parametrize("form", ["plain", "gzip"])
def test_f07_length_as_the_only_record_is_an_error_before_memory_is_taken(tmp_path, read_measured, form):
    wrap = gzip.compress if form == "gzip" else bytes
    paths = []
    for length in (2**30, 2**36, 2**64 - 1):
        paths.append(tmp_path / f"{length}.tfrecord")
        paths[-1].write_bytes(wrap(header(length) + bytes(100)))
    pairs, growth = read_measured(*paths)
    assert growth < 16 * MB
    for raised, skipped in pairs:
        assert (raised["sizes"], skipped["sizes"], skipped["error"]) == ([], [], None)
        assert raised["error"]["record"] == 0
        assert raised["error"]["field"] in ("length", "payload")


def test_f07_record_above_max_record_bytes_is_passed_over_by_its_length(tmp_path, read_measured):
    big = 64 * MB
    plain = tmp_path / "big.tfrecord"
    with plain.open("wb") as file:  # with a hole: only its header is ever read
        file.write(FRAMES[0] + header(big))
        file.truncate(FRAME_BYTES + 16 + big)
        file.seek(0, 2)
        file.write(FRAMES[1])
    ((raised, skipped),), growth = read_measured(plain, max_record_bytes=MB)
    assert growth < 16 * MB
    assert raised["sizes"] == [69]
    error = raised["error"]
    assert (error["record"], error["offset"], error["what"]) == (1, 85, containing("max_record_bytes"))
    assert (error["expected"], error["got"]) == (containing(MB), containing(big))
    assert skipped["sizes"] == [69, 69]


def members_of_zeros(size: int) -> bytes:
    """Return gzip members that inflate to so many zeros, a thousandth of them long."""
    each = 32 * MB
    assert size % each == 0
    stream = zlib.compressobj(9, zlib.DEFLATED, 31)
    member = stream.compress(bytes(each)) + stream.flush()
    return member * (size // each)


BOMBS = {
    "nothing but zeros": b"",
    "one record of zeros": header(512 * MB),
    "records, then zeros": BASE,
}


def test_f19_gzip_bomb_is_an_error_in_bounded_memory(tmp_path, read_measured):
    zeros = members_of_zeros(512 * MB)
    paths = []
    for name, first in BOMBS.items():
        paths.append(tmp_path / f"{name}.tfrecord.gz")
        paths[-1].write_bytes(gzip.compress(first) + zeros)
        assert paths[-1].stat().st_size < MB
    pairs, growth = read_measured(*paths)
    assert growth < 64 * MB
    bombs = dict(zip(BOMBS, pairs, strict=True))

    raised, _ = bombs["nothing but zeros"]
    assert raised["error"]["type"] == "CorruptRecordError"
    assert raised["error"]["field"] == "compression"
    assert raised["error"]["expected"] == containing(1000, "compressed byte")
    assert "decompression bomb" in raised["error"]["advice"]

    raised, skipped = bombs["one record of zeros"]
    assert (raised["sizes"], raised["error"]["record"]) == ([], 0)
    assert raised["error"]["expected"] == containing(1000, "compressed byte")
    assert (skipped["sizes"], skipped["error"]) == ([], None)

    raised, skipped = bombs["records, then zeros"]
    assert (raised["sizes"], raised["error"]["record"], raised["error"]["offset"]) == ([69] * 5, 5, 425)
    assert (skipped["sizes"], skipped["error"]) == ([69] * 5, None)


def test_f19_record_above_max_record_bytes_in_a_stream_is_an_error_in_bounded_memory(tmp_path, read_measured):
    path = tmp_path / "big.tfrecord.gz"
    path.write_bytes(
        gzip.compress(FRAMES[0] + header(64 * MB)) + members_of_zeros(64 * MB) + gzip.compress(FRAMES[1])
    )
    ((raised, skipped),), growth = read_measured(path, max_record_bytes=MB)
    assert growth < 32 * MB
    assert raised["sizes"] == [69]
    assert raised["error"]["expected"] == containing(MB)
    assert skipped["sizes"][0] == 69


def test_f19_small_record_that_compresses_beyond_any_ratio_is_read(tmp_path):
    # Eight megabytes are no bomb, whatever they were compressed to.
    payload = bytes(7 * MB)
    footer = masked_crc32c(payload).to_bytes(4, "little")
    path = tmp_path / "zeros.tfrecord.gz"
    path.write_bytes(gzip.compress(header(len(payload)) + payload + footer, 9))
    assert len(payload) > 1000 * path.stat().st_size
    assert list(open_split(path).records()) == [payload]


# Reads a file with a record that does not fit into memory, and prints each error.
READ_LARGE = """
import json, resource, sys
import numpy, penstock as ps
from penstock.cli.main import main
from penstock.errors import PenstockError

def size():
    for line in open("/proc/self/status"):
        if line.startswith("VmSize:"):
            return int(line.split()[1]) << 10

sample, path, out = sys.argv[1:]
options = {"schema": {"blob": ps.fields.Bytes()}}
warm = ps.open(sample, **options)["all"]
calls = {
    "records": lambda split: list(split.records()),
    "samples": lambda split: list(split),
    "row": lambda split: split[1],
    "loader": lambda split: list(split.loader(batch_size=2, num_threads=1)),
}
for call in calls.values():
    call(warm)
for command in (["inspect"], ["verify"], ["repair", out + "/warm"]):
    main([command[0], sample, *command[1:], "-q"])
split = ps.open(path, **options)["all"]
limit = size() + (24 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for name, call in calls.items():
    try:
        call(split)
        print(name, "no error")
    except PenstockError as error:
        print(name, type(error).__name__, error)
for command in (["inspect"], ["verify"], ["repair", out + "/repaired"]):
    print(*command, flush=True)
    main([command[0], path, *command[1:], "-q"])
"""


@pytest.mark.parametrize("form", ["plain", "gzip"])
def test_x12_record_that_does_not_fit_into_memory_is_named_with_its_file(tmp_path, form):
    sample = write_plain(tmp_path / "sample.tfrecord", [example(blob="x")] * 3)
    path = tmp_path / "large.tfrecord"
    large = [example(blob="x"), example(blob="z" * (48 * MB)), example(blob="y")]
    write_plain(path, large)
    if form == "gzip":
        path.write_bytes(gzip.compress(path.read_bytes(), 0))
    command = [sys.executable, "-c", READ_LARGE, sample, path, tmp_path]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout
    errors = [line for line in done.stdout.splitlines() if "fit into memory" in line]
    # Once a large block is in the pool, later calls may find room in it.
    assert len(errors) >= 5, done.stdout
    assert any(line.startswith("records OutOfMemoryError") for line in errors)
    assert "Close other programs" not in done.stdout
    for line in errors:
        assert str(path) in line
        assert "record 1 at byte" in line
