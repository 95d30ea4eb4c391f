"""SHA-256 in the core and beside OpenSSL: the digests of the standard library, for one stream or two."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import _native
from penstock.shards import sha256
from penstock.shards.sha256 import digest_pieces, make_sha256, update_all


@pytest.mark.parametrize("size", [0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 1000, 1 << 20])
def test_core_gives_the_digest_of_the_standard_library(size):
    data = np.random.default_rng(size).bytes(size)
    found = _native.Sha256()
    found.update(data)
    assert found.digest() == hashlib.sha256(data).digest()


@given(st.lists(st.tuples(st.binary(max_size=200), st.binary(max_size=200)), max_size=8))
def test_two_streams_together_have_the_digests_of_each_by_itself(pieces):
    one, other = _native.Sha256(), _native.Sha256()
    for first, second in pieces:
        one.update_with(first, other, second)
        one.digest()  # does not end the stream
    assert one.digest() == hashlib.sha256(b"".join(first for first, _ in pieces)).digest()
    assert other.digest() == hashlib.sha256(b"".join(second for _, second in pieces)).digest()


def test_one_stream_twice_is_refused():
    found = _native.Sha256()
    with pytest.raises(ValueError, match="different"):
        found.update_with(b"a", found, b"b")


@pytest.mark.parametrize("in_core", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
def test_any_number_of_pieces_is_hashed_piece_by_piece(monkeypatch, in_core, count):
    monkeypatch.setattr(sha256, "_IS_IN_CORE", in_core)
    pieces = [memoryview(bytes([i]) * (100 * i + 1)) for i in range(count)]
    assert digest_pieces(pieces) == b"".join(hashlib.sha256(piece).digest() for piece in pieces)
    hashes = [make_sha256() for _ in pieces]
    update_all(hashes, pieces)
    update_all(hashes, pieces[::-1])
    wanted = [
        hashlib.sha256(one.tobytes() + two.tobytes()) for one, two in zip(pieces, pieces[::-1], strict=True)
    ]
    assert [each.digest() for each in hashes] == [each.digest() for each in wanted]
