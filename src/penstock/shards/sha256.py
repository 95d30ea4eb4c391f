"""SHA-256 of shards and of sources, of two streams at a time where the processor has instructions for it.

In: pieces of bytes. Out: the digests of FIPS 180-4, the same on every machine. One thread of an AMD EPYC
hashes 1.8 GB/s of one stream with OpenSSL or the core, and 3.5 GB/s of two streams with the core.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock import _native

if TYPE_CHECKING:
    Sha256: TypeAlias = "_native.Sha256 | hashlib._Hash"

# OpenSSL has versions for other vector instructions, which the core does not.
_IS_IN_CORE: Final = _native.has_sha256_instructions()


def make_sha256() -> Sha256:
    """Return the hash of a stream without bytes; it has `update` and `digest`."""
    return _native.Sha256() if _IS_IN_CORE else hashlib.sha256()


def update_all(hashes: Sequence[Sha256], pieces: Sequence[bytes | memoryview]) -> None:
    """Add one piece to each of several hashes; no hash may occur twice."""
    for first in range(0, len(hashes) - 1, 2):
        one, other = hashes[first : first + 2]
        if isinstance(one, _native.Sha256) and isinstance(other, _native.Sha256):
            one.update_with(pieces[first], other, pieces[first + 1])
        else:
            one.update(pieces[first])
            other.update(pieces[first + 1])
    if len(hashes) % 2:
        hashes[-1].update(pieces[-1])


def digest_pieces(pieces: Sequence[memoryview]) -> bytes:
    """Return the concatenated digests of pieces, each hashed by itself."""
    hashes = [make_sha256() for _ in pieces]
    update_all(hashes, pieces)
    return b"".join(each.digest() for each in hashes)


def digest_parts(parts: Sequence[memoryview]) -> bytes:
    """Return the digest of one piece that is given in parts."""
    found = make_sha256()
    for part in parts:
        found.update(part)
    return found.digest()
