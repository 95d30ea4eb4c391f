"""Files of a block: read, checked, hashed and digested in the core, by several threads."""

import os
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from penstock import _native
from penstock.encode.file_check import FileThreads, check_files

SIZES = (0, 1, 15, 127, 4095, 4096, 4097, 100_000, 262_143, 262_144, 700_001)


@pytest.fixture
def threads():
    with ThreadPoolExecutor(3) as pool:
        yield FileThreads(pool, 3)


def write(folder, contents):
    paths = []
    for i, content in enumerate(contents):
        path = folder / f"{i:04}.bin"
        path.write_bytes(content)
        paths.append(str(path))
    return paths


def gif(width, height, rest=b""):
    return b"GIF89a" + struct.pack("<HH", width, height) + rest


def jpeg(width, height, comment_bytes=0):
    comment = b"\xff\xfe" + struct.pack(">H", comment_bytes + 2) + bytes(comment_bytes)
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\x00"
    return b"\xff\xd8\xff\xe0\x00\x02" + comment + frame + b"\xff\xd9"


def test_sizes_hashes_and_digests_are_those_of_the_bytes(tmp_path, threads):
    rng = np.random.default_rng(1)
    contents = [rng.bytes(size) for size in (*SIZES, *rng.integers(0, 3000, 300).tolist(), *SIZES)]
    paths = write(tmp_path, contents)
    hashes, digests = _native.fingerprint(contents)
    for helpers in (None, threads):
        found = check_files(paths, None, helpers, reads_headers=False)
        assert found.sizes.tolist() == [len(content) for content in contents]
        assert found.hashes.tolist() == hashes.tolist()
        assert found.digests.reshape(-1).tolist() == digests.tolist()
        assert found.others == []
        assert not found.formats.any()


def test_no_files_are_no_rows(threads):
    found = check_files([], None, threads, reads_headers=True)
    assert found.others == []
    assert len(found.sizes) == len(found.digests) == 0


def test_images_have_a_format_and_a_size_also_behind_a_long_comment(tmp_path):
    contents = [gif(7, 9), jpeg(300, 200), jpeg(64, 48, comment_bytes=60_000)]
    found = check_files(write(tmp_path, contents), None, None, reads_headers=True)
    assert found.formats.tolist() == [4, 1, 1]
    assert (found.widths.tolist(), found.heights.tolist()) == ([7, 300, 64], [9, 200, 48])
    assert found.others == []


def test_files_that_are_no_images_are_left_to_the_caller(tmp_path):
    contents = [gif(7, 9), b"", b"text", gif(0, 9), gif(3, 4), b"GIF89a", jpeg(5, 6)[:12]]
    found = check_files(write(tmp_path, contents), None, None, reads_headers=True)
    assert found.others == [1, 2, 3, 5, 6]
    assert found.sizes.tolist() == [len(contents[0]), 0, 0, 0, len(contents[4]), 0, 0]


def test_files_that_cannot_be_read_are_left_to_the_caller(tmp_path):
    (fine,) = write(tmp_path, [b"fine"])
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "broken").symlink_to(tmp_path / "none")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "link").symlink_to(fine)
    names = ["none", "folder", "pipe", "broken", "loop", "link", "a\0b", "x" * 300]
    paths = [fine, *(f"{tmp_path}/{name}" for name in names), "s3://bucket/key", fine]
    found = check_files(paths, None, None, reads_headers=False)
    assert found.others == [1, 2, 3, 4, 5, 7, 8, 9]
    assert np.flatnonzero(found.sizes).tolist() == [0, 6, 10]
    assert found.hashes[[0, 6, 10]].tolist() == [_native.hash_bytes(b"fine")] * 3


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_file_of_another_size_than_it_had_when_it_was_opened_is_left_to_the_caller(tmp_path):
    # Files of /proc have a size of 0 until they are read, like one that another program appends to.
    (fine,) = write(tmp_path, [b"fine"])
    assert check_files([fine, "/proc/self/status"], None, None, reads_headers=False).others == [1]


def test_rows_without_a_path_have_no_values(tmp_path, threads):
    paths = write(tmp_path, [b"a", b"bb", b"ccc"])
    present = np.array([True, False, True, False])
    found = check_files([*paths, ""], present, threads, reads_headers=False)
    assert found.sizes.tolist() == [1, 0, 3, 0]
    assert found.others == []
    assert not found.hashes[[1, 3]].any()


def test_paths_need_a_zero_byte_after_each():
    for paths in (b"/a", b"/a\0\0", b"\0"):
        with pytest.raises(ValueError, match="zero byte"):
            _native.FileCheck(paths, False)


def test_more_threads_than_files_end(tmp_path):
    paths = write(tmp_path, [b"a"] * 200)
    check = _native.FileCheck(b"".join(os.fsencode(path) + b"\0" for path in paths), False)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(40):
            pool.submit(check.run)
        check.run()
        assert check.finish()[0].tolist() == [1] * 200
