"""Indexes kept in the cache: they save a scan, and never a wrong one is believed."""

import json
import os

import numpy as np
import pytest

import penstock as ps
from penstock._native import crc32c
from penstock.errors import CorruptRecordError
from penstock.read import opened_files
from raising import raises_with
from record_files import (
    BASE,
    FRAME_BYTES,
    PAYLOADS,
    open_split,
    read_until_error,
    row_numbers,
    write_gzip,
    write_plain,
)


@pytest.fixture(autouse=True)
def _keep_small_indexes(monkeypatch):
    monkeypatch.setattr(opened_files, "_SMALLEST_PLAIN", 0)
    monkeypatch.setattr(opened_files, "_SMALLEST_COMPRESSED", 0)


@pytest.fixture
def num_scans(monkeypatch):
    """Count how often an index is made."""
    scans = []
    build_index = opened_files.build_index

    def count(file, options):
        scans.append(file.path)
        return build_index(file, options)

    monkeypatch.setattr(opened_files, "build_index", count)
    return lambda: len(scans)


@pytest.fixture(params=[write_plain, write_gzip])
def path(request, cache, tmp_path):
    return request.param(tmp_path / "base.tfrecord", PAYLOADS)


@pytest.fixture
def plain(cache, tmp_path):
    return write_plain(tmp_path / "base.tfrecord", PAYLOADS)


def numbers(path, **options):
    return row_numbers(open_split(path, **options).records())


def only_file(cache):
    (file,) = (cache / "index").iterdir()
    return file


def test_second_open_uses_the_index_of_the_first(path, num_scans):
    assert numbers(path) == numbers(path) == [0, 1, 2, 3, 4]
    assert num_scans() == 1


def test_small_files_are_not_kept(plain, cache, num_scans, monkeypatch):
    monkeypatch.setattr(opened_files, "_SMALLEST_COMPRESSED", 1 << 20)
    assert numbers(plain) == numbers(plain)
    assert num_scans() == 2
    assert not cache.exists()


@pytest.mark.parametrize(
    "option",
    [{"allow_trailing_zeros": True}, {"max_record_bytes": 100}],
    ids=["allow_trailing_zeros", "max_record_bytes"],
)
def test_index_made_with_other_limits_is_not_used(path, num_scans, option):
    numbers(path)
    numbers(path, options=ps.options.ReadOptions(**option))
    assert num_scans() == 2


def test_index_made_under_a_limit_does_not_lift_it(plain):
    numbers(plain)
    with raises_with(CorruptRecordError, "max_record_bytes", field="length"):
        numbers(plain, options=ps.options.ReadOptions(max_record_bytes=10))


def test_index_of_a_file_that_got_another_size_is_not_used(plain, num_scans):
    numbers(plain)
    plain.write_bytes(BASE[: 3 * FRAME_BYTES])
    assert numbers(plain) == [0, 1, 2]
    assert num_scans() == 2


def test_index_of_a_file_of_another_time_is_not_used(path, num_scans):
    numbers(path)
    os.utime(path, ns=(0, 12345))
    assert numbers(path) == [0, 1, 2, 3, 4]
    assert num_scans() == 2


def test_index_of_a_file_that_was_replaced_is_not_used(plain, num_scans, tmp_path):
    numbers(plain)
    facts = plain.stat()
    other = write_plain(tmp_path / "other", PAYLOADS[::-1])
    os.utime(other, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    other.replace(plain)
    assert numbers(plain) == [4, 3, 2, 1, 0]
    assert num_scans() == 2


def test_index_of_a_damaged_file_is_not_kept(plain, cache, num_scans):
    plain.write_bytes(BASE[:-1])
    for _ in range(2):
        _, error = read_until_error(open_split(plain).records())
        assert error.record == 4
    assert num_scans() == 2
    assert not cache.exists()


def test_wrongly_declared_compression_is_refused_although_an_index_is_kept(plain):
    numbers(plain)
    with raises_with(CorruptRecordError, field="compression", expected="gzip"):
        ps.open(plain, options=ps.options.ReadOptions(compression="gzip"))


def test_cache_that_cannot_be_written_is_no_error(path, cache, num_scans):
    cache.write_bytes(b"a file where the folder should be")
    assert numbers(path) == numbers(path) == [0, 1, 2, 3, 4]
    assert num_scans() == 2


def test_cache_entry_that_cannot_be_read_is_no_error(path, cache):
    numbers(path)
    file = only_file(cache)
    file.unlink()
    file.mkdir()
    assert numbers(path) == [0, 1, 2, 3, 4]


def test_cache_entry_cut_at_any_byte_gives_no_other_records(path, cache):
    numbers(path)
    file = only_file(cache)
    whole = file.read_bytes()
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        assert numbers(path) == [0, 1, 2, 3, 4]
    assert file.read_bytes() == whole


def test_cache_entry_with_any_bit_flipped_gives_no_other_records(path, cache):
    numbers(path)
    file = only_file(cache)
    whole = file.read_bytes()
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << position % 8
        file.write_bytes(damaged)
        assert numbers(path) == [0, 1, 2, 3, 4]


def forge(whole: bytes, sizes: list[int], **facts: object) -> bytes:
    """Return an entry with other sizes and a CRC that fits."""
    head = json.loads(whole[: whole.index(b"\n")])
    body = np.array(sizes, "<u8").tobytes()
    head.update({"item": "<u8", "records": len(sizes), "crc32c": crc32c(body), **facts})
    return json.dumps(head).encode() + b"\n" + body


# All reach the end of the file, so that only the bytes there show it.
FORGED = {
    "two records as one": [170, 85, 85, 85],
    "a boundary moved": [84, 86, 85, 85, 85],
    "one record": [425],
    "many records": [17] * 25,
    "more than memory, around 2 to the 64": [2**63, 2**63, 85, 85, 85, 85, 85],
    "frames too small": [0, 425],
}


@pytest.mark.parametrize("name", FORGED)
def test_cache_entry_that_was_forged_gives_an_error_or_the_right_records(path, cache, name):
    numbers(path)
    file = only_file(cache)
    file.write_bytes(forge(file.read_bytes(), FORGED[name]))
    for on_error in ("raise", "skip"):
        payloads, error = read_until_error(open_split(path, on_error=on_error).records())
        assert payloads == [payload for payload in PAYLOADS if payload in payloads]
        assert error is None or error.field == "length"


@pytest.mark.parametrize("sizes", [[], [85], [85] * 4, [85] * 6])
def test_cache_entry_that_does_not_reach_the_end_of_the_file_is_made_again(plain, cache, num_scans, sizes):
    # Of a compressed file nobody knows the inflated size beforehand; there the entry's own CRC must do.
    numbers(plain)
    file = only_file(cache)
    file.write_bytes(forge(file.read_bytes(), sizes))
    assert numbers(plain) == [0, 1, 2, 3, 4]
    assert num_scans() == 2


@pytest.mark.parametrize(
    "entry",
    [
        b"",
        b"\n",
        b"{}\n",
        b"[]\n",
        b"null\n",
        b"no json\n",
        b"\xff\xfe\n",
        b"[" * 4000 + b"\n",
        b'{"version": 1}\n',
        b"9" * 5000,
    ],
    ids=range(10),
)
def test_invalid_cache_entry_is_made_again(path, cache, num_scans, entry):
    numbers(path)
    file = only_file(cache)
    whole = file.read_bytes()
    file.write_bytes(entry)
    assert numbers(path) == [0, 1, 2, 3, 4]
    assert num_scans() == 2
    assert file.read_bytes() == whole


@pytest.mark.parametrize(
    "facts", [{"version": 2}, {"item": "<f8"}, {"compression": "zstd"}, {"identity": None}, {"records": "5"}]
)
def test_cache_entry_with_another_header_is_made_again(path, cache, num_scans, facts):
    numbers(path)
    file = only_file(cache)
    file.write_bytes(forge(file.read_bytes(), [85] * 5, **facts))
    assert numbers(path) == [0, 1, 2, 3, 4]
    assert num_scans() == 2
