"""The compact index of a shard: what was encoded comes back, and anything else is no index."""

import json

import numpy as np
import pytest

from penstock._native import crc32c
from penstock.format.index import decode_header, decode_index, encode_index, index_name

IDENTITY = (96, "ab" * 32)
SIZES = np.array([16, 30, 50], np.int64)
LIMIT = 1 << 30


def encoded(**changes) -> bytes:
    """Return an index with another header."""
    header, body = encode_index(SIZES, "none", IDENTITY).split(b"\n", 1)
    return json.dumps({**json.loads(header), **changes}).encode() + b"\n" + body


def test_index_that_was_encoded_is_decoded():
    offsets, compression = decode_index(encode_index(SIZES, "none", IDENTITY), IDENTITY, LIMIT)
    assert offsets.tolist() == [0, 16, 46, 96]
    assert offsets.dtype == np.uint64
    assert compression == "none"


def test_index_of_no_records_is_decoded():
    empty = encode_index(np.empty(0, np.int64), "none", (0, "ab"))
    assert decode_index(empty, (0, "ab"), LIMIT)[0].tolist() == [0]


def test_index_of_a_compressed_file_need_not_end_where_that_does():
    packed = encode_index(SIZES, "gzip", (40, "ab"))
    assert decode_index(packed, (40, "ab"), LIMIT) is not None


def test_records_beyond_32_bits_are_kept_in_64():
    sizes = np.array([2**33, 16], np.uint64)
    identity = (2**33 + 16, 1, 2)
    data = encode_index(sizes, "none", identity)
    assert decode_header(data, identity).item == "<u8"
    assert decode_index(data, identity, 2**34)[0].tolist() == [0, 2**33, 2**33 + 16]


def test_index_takes_four_bytes_a_record():
    header = decode_header(encode_index(SIZES, "none", IDENTITY), IDENTITY)
    assert header.num_bytes - header.num_header_bytes == 12
    assert header.num_records == 3


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"[]\n",
        b"null\n",
        b"{}\n",
        b"{" * 5000,
        b"[" * 4000 + b"\n",
        encoded(version=2),
        encoded(identity=[96, "cd" * 32]),
        encoded(identity=[97, "ab" * 32]),
        encoded(identity=None),
        encoded(crc32c=0),
        encoded(item="<u2"),
        encoded(item="|O"),
        encoded(compression="zstd"),
        encoded(records=2),
        encoded(records=-1),
        encoded(records="3"),
        encoded() + b"\0",
        encoded()[:-1],
    ],
)
def test_bytes_that_are_no_index_of_that_file_are_none(data):
    assert decode_index(data, IDENTITY, LIMIT) is None


@pytest.mark.parametrize("sizes", [[15, 31, 50], [16, 30, 51], [46, 50], [96, 0]])
def test_sizes_that_do_not_fit_the_file_are_none(sizes):
    data = encode_index(np.array(sizes), "none", (96, "ab"))
    is_whole = sizes == [46, 50]
    assert (decode_index(data, (96, "ab"), LIMIT) is not None) == is_whole


def test_sizes_that_pass_64_bits_are_none():
    sizes = np.full(5, 2**62, np.uint64)
    assert decode_index(encode_index(sizes, "gzip", (96, "ab")), (96, "ab"), 2**63) is None


def test_record_above_the_limit_makes_it_none():
    data = encode_index(SIZES, "none", IDENTITY)
    assert decode_index(data, IDENTITY, 34) is not None
    assert decode_index(data, IDENTITY, 33) is None


def test_crc_is_the_crc_of_the_sizes():
    header, body = encode_index(SIZES, "none", IDENTITY).split(b"\n", 1)
    assert json.loads(header)["crc32c"] == crc32c(body)


def test_index_lies_in_a_separate_folder():
    assert index_name("a.tfrecord") == "index/a.tfrecord.idx"
