"""Inflating piece by piece: the same bytes as gzip and zlib give, whatever the sizes, and every check."""

import gzip
import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import CorruptRecordError
from penstock.storage import compression as module
from penstock.storage.compression import CHUNK_BYTES, READ_BYTES, inflate
from raising import mentions, raises_with


class Bytes:
    """A file in memory."""

    path = "in memory"

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, offset: int, size: int) -> bytes:
        return self.data[offset : offset + size]


def inflated(data: bytes, compression: str = "gzip") -> bytes:
    return b"".join(inflate(Bytes(data), compression))


def text(size: int) -> bytes:
    return (b"all work and no play makes jack a dull boy " * (size // 43 + 1))[:size]


SIZES = [0, 1, 12, READ_BYTES, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["zeros", "text", "noise"])
def test_inflated_bytes_are_those_that_were_compressed(kind, size):
    # Zeros and text end with a call that has more to give than a chunk takes; noise takes several calls.
    content = {"zeros": bytes, "text": text, "noise": np.random.default_rng(1).bytes}[kind](size)
    assert inflated(gzip.compress(content, 6)) == content
    assert inflated(zlib.compress(content, 6), "zlib") == content


@pytest.mark.timeout(60)
def test_inflated_members_that_end_with_a_full_chunk_follow_each_other():
    members = [bytes(CHUNK_BYTES), bytes(2 * CHUNK_BYTES), b"", text(CHUNK_BYTES), b"the end"]
    assert inflated(b"".join(map(gzip.compress, members))) == b"".join(members)


@settings(max_examples=50)
@given(
    parts=st.lists(st.binary(max_size=200), max_size=6),
    read_bytes=st.integers(1, 64),
    chunk_bytes=st.integers(1, 64),
)
def test_inflated_bytes_do_not_depend_on_the_sizes_of_pieces(parts, read_bytes, chunk_bytes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "READ_BYTES", read_bytes)
        patch.setattr(module, "CHUNK_BYTES", chunk_bytes)
        assert inflated(b"".join(map(gzip.compress, parts)) or gzip.compress(b"")) == b"".join(parts)
        assert inflated(zlib.compress(b"".join(parts)), "zlib") == b"".join(parts)


def gzip_with_header(flags: int, extra: bytes) -> bytes:
    """Return a member whose header has these flags and the parts that go with them."""
    plain = gzip.compress(b"content", mtime=0)
    return plain[:3] + bytes([flags]) + plain[4:10] + extra + plain[10:]


@pytest.mark.parametrize(
    ("flags", "extra"),
    [
        (0, b""),
        (1, b""),
        (2, b"\x12\x34"),
        (4, b"\x03\x00abc"),
        (8, b"name\0"),
        (16, b"a comment\0"),
        (31, b"\x01\x00x" + b"name\0" + b"comment\0" + b"\x12\x34"),
    ],
)
def test_inflated_header_with_optional_parts_is_passed_over(flags, extra):
    assert inflated(gzip_with_header(flags, extra)) == b"content"


def test_inflated_header_written_with_a_name_is_passed_over():
    buffer = io.BytesIO()
    with gzip.GzipFile("a file name.txt", "wb", fileobj=buffer) as file:
        file.write(b"content")
    assert inflated(buffer.getvalue()) == b"content"


def test_inflated_header_with_a_name_of_megabytes_is_passed_over_at_once():
    assert inflated(gzip_with_header(8, b"n" * (8 << 20) + b"\0")) == b"content"


@pytest.mark.parametrize(
    ("data", "facts"),
    [
        (b"", "gzip 0 2 0"),
        (b"PK\x03\x04", "gzip 0 0x1f8b"),
        (gzip_with_header(0xE0, b""), "gzip 10 8"),
        (gzip_with_header(8, b"")[:12], "gzip header 12"),
        (gzip_with_header(4, b"\xff\xff"), "gzip header"),
    ],
)
def test_invalid_header_is_refused(data, facts):
    with raises_with(CorruptRecordError, facts, field="compression"):
        inflated(data)


def read_until_failure(data: bytes, compression: str = "gzip") -> tuple[bytes, CorruptRecordError]:
    got = b""
    with pytest.raises(CorruptRecordError) as caught:  # noqa: PT012
        for chunk in inflate(Bytes(data), compression):
            got += chunk
    return got, caught.value


def test_damage_inside_deflated_bytes_comes_after_the_intact_bytes():
    content = np.random.default_rng(2).bytes(300_000)
    data = bytearray(gzip.compress(content, 1))
    for i in range(200_000, 200_200):
        data[i] ^= 0xFF
    got, error = read_until_failure(bytes(data))
    assert len(got) > 150_000
    assert content.startswith(got[:150_000])
    assert mentions(error, "compressed stream")


def test_sum_of_a_member_that_does_not_fit_names_both():
    content = b"content"
    data = bytearray(gzip.compress(content, mtime=0))
    data[-8:-4] = struct.pack("<I", 0x01020304)
    got, error = read_until_failure(bytes(data))
    assert got == content
    assert (error.expected, error.got) == ("0x01020304", f"{zlib.crc32(content):#010x}")
    assert mentions(error.advice, "'penstock repair'")
