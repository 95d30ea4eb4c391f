"""How a file is compressed, by its first bytes."""

import gzip
import zlib

import pytest

from each_case import each_case
from penstock.storage.compression import FIRST_BYTES, find_compression, name_content
from record_files import BASE, flip, header, open_split, write_plain

PLAIN, GZIP, ZLIB = BASE, gzip.compress(BASE, mtime=0), zlib.compress(BASE)


@pytest.mark.parametrize(
    ("first", "compression"), [(PLAIN, "none"), (GZIP, "gzip"), (ZLIB, "zlib"), (b"", "none")]
)
def test_compression_of_a_file_is_found(first, compression):
    assert find_compression(first[:FIRST_BYTES]) == compression


@each_case("level", range(10))
@each_case("window_bits", range(9, 16))
def test_compression_of_any_level_and_window_is_found(level, window_bits):
    stream = zlib.compressobj(level, zlib.DEFLATED, window_bits)
    assert find_compression((stream.compress(BASE) + stream.flush())[:FIRST_BYTES]) == "zlib"
    stream = zlib.compressobj(level, zlib.DEFLATED, window_bits + 16)
    assert find_compression((stream.compress(BASE) + stream.flush())[:FIRST_BYTES]) == "gzip"


def test_compression_of_an_empty_stream_is_found():
    assert find_compression(gzip.compress(b"")) == "gzip"
    assert find_compression(zlib.compress(b"")) == "zlib"


# Lengths whose first bytes, in little-endian order, look like a gzip member or a zlib stream.
LOOKALIKES = {
    "gzip": 0x8B1F,
    "gzip with its method": 0x088B1F,
    "zlib 78 9c": 0x9C78,
    "zlib 78 01": 0x0178,
    "zlib 78 da": 0xDA78,
    "zlib 08 1d": 0x1D08,
}


@pytest.mark.parametrize("name", LOOKALIKES)
def test_compression_of_a_record_whose_length_looks_compressed_is_none(name):
    assert find_compression(header(LOOKALIKES[name]) + bytes(100)) == "none"


@pytest.mark.parametrize("name", [name for name in LOOKALIKES if name != "gzip with its method"])
@pytest.mark.parametrize("bit", [0, 17])
def test_compression_of_such_a_record_with_a_damaged_crc_is_still_none(name, bit):
    assert find_compression(flip(header(LOOKALIKES[name]), 8 + bit // 8, bit % 8) + bytes(100)) == "none"


@pytest.mark.parametrize("length", [0x8B1F, 0x9C78])
def test_file_that_begins_with_such_a_record_is_read(tmp_path, length):
    payloads = [bytes(length), b"behind it"]
    path = write_plain(tmp_path / "lookalike.tfrecord", payloads)
    assert list(open_split(path).records()) == payloads
    # With its CRC damaged, that record is lost, and no other.
    path.write_bytes(flip(path.read_bytes(), 9))
    assert list(open_split(path, on_error="skip").records()) == payloads[1:]


def test_compression_of_zlib_that_holds_no_records_is_none():
    # Two bytes are too little to tell by; what they inflate to must begin like a record.
    assert find_compression(zlib.compress(b"some other content, long enough to look at")) == "none"


@pytest.mark.parametrize(
    ("first", "name"),
    [
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        (b"  \n<!doctype HTML>", "an HTML page"),
        (b"<HTML lang='en'>", "an HTML page"),
        (b"<?xml version='1.0'?>", "an XML document"),
        (b"PK\x03\x04\x14\x00", "a ZIP archive"),
        (b"PAR1\x15\x04", "a Parquet file"),
        (b"ARROW1\0\0", "an Arrow file"),
        (b"\x28\xb5\x2f\xfd\x04", "a Zstandard stream"),
        (b"\xff\xd8\xff\xe0", "a JPEG image"),
        (b"\x89PNG\r\n\x1a\n", "a PNG image"),
        (b"\x89HDF\r\n", "an HDF5 file"),
        (b"%PDF-1.7", "a PDF document"),
        (b'[{"a": 1}]', "JSON"),
    ],
)
def test_content_that_is_no_tfrecord_is_named(first, name):
    assert name_content(first).startswith(name)


@pytest.mark.parametrize("first", [b"", b"\0" * 20, b"some text", header(0x7B), header(0x5B)])
def test_content_that_says_nothing_has_no_name(first):
    assert name_content(first) is None
