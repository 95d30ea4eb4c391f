"""The text index of other programs: written indexes can be read, and others are ignored."""

import numpy as np
import pytest

from penstock.format.index import (
    decode_tfindex,
    encode_tfindex,
    list_tfindex_names,
    max_tfindex_bytes,
    tfindex_name,
)

LIMIT = 1 << 40


def write_slowly(sizes: list[int]) -> bytes:
    lines, offset = [], 0
    for size in sizes:
        lines.append(f"{offset} {size}\n")
        offset += size
    return "".join(lines).encode()


@pytest.mark.parametrize(
    "sizes",
    [
        [],
        [16],
        [99, 1, 9_900, 90_000, 9_900_000, 90_000_000, 900_000_000, 16],
        [16, 10**11, 10**15, 10**17, 99],
        list(range(16, 70_100)),  # more than a block
        [10_000] * 100_000,
    ],
    ids=["none", "one", "every width", "wide", "blocks", "even"],
)
def test_text_is_a_line_a_record(sizes):
    text = encode_tfindex(np.array(sizes, np.int64))
    assert text == write_slowly(sizes)
    if min(sizes, default=16) >= 16:
        offsets = decode_tfindex(text, sum(sizes), 1 << 62)
        assert offsets.tolist() == np.cumsum([0, *sizes]).tolist()
        assert offsets.dtype == np.uint64


def test_sizes_of_any_type_of_int_are_taken():
    assert encode_tfindex(np.array([20, 30], np.uint32)) == b"0 20\n20 30\n"


@pytest.mark.parametrize("text", [b"0 20\n20 30\n", b"0 20\r\n20 30\r\n", b"0\t20\n20\t30", b" 0 20 20 30"])
def test_text_of_other_writers_is_read(text):
    assert decode_tfindex(text, 50, LIMIT).tolist() == [0, 20, 50]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"0 20\n",
        b"0 20\n20 30\n50 20\n",
        b"0 20\n20 31\n",
        b"1 20\n21 29\n",
        b"0 20\n21 29\n",
        b"0 20\n20",
        b"0 40\n40 10\n",
        b"0 -20\n-20 70\n",
        b"0 2e1\n20 30\n",
        b"0x0 20\n20 30\n",
        b"0 20\n20 30\nnan",
        b"0 99999999999999999999999\n20 30\n",
        b"0 9223372036854775807\n9223372036854775807 9223372036854775807\n",
        b"0\x0020\n20 30\n",
        "0 ２0\n".encode(),
    ],
)
def test_text_that_does_not_tile_the_file_is_none(text):
    assert decode_tfindex(text, 50, LIMIT) is None


def test_record_above_the_limit_makes_it_none():
    assert decode_tfindex(b"0 50\n", 50, 34) is not None
    assert decode_tfindex(b"0 50\n", 50, 33) is None


def test_index_of_an_empty_file_is_empty():
    assert decode_tfindex(b"", 0, LIMIT).tolist() == [0]


def test_text_is_never_larger_than_its_bound():
    assert len(encode_tfindex(np.full(1000, 16))) <= max_tfindex_bytes(16_000)


def test_names_of_all_tools_are_looked_for():
    assert tfindex_name("train-00000-of-00002.tfrecord") == "train-00000-of-00002.tfindex"
    assert list_tfindex_names("a.tfrecord") == [
        "a.tfindex",
        "a.tfrecord.tfindex",
        "a.idx",
        "a.tfrecord.idx",
        "a.index",
        "a.tfrecord.index",
    ]
    assert "a.idx" not in list_tfindex_names("a.idx")
