"""Serialized Examples with their map entries in another order.

In: the bytes of an Example. Out: the same entries, shuffled, as a writer with random map order leaves them.
"""

from __future__ import annotations

import random

ENTRY_TAG = b"\x0a"


def shuffle_keys(example: bytes, rng: random.Random) -> bytes:
    """Put the map entries of one serialized Example (`0a length features`) into random order."""
    size, at = _read_varint(example, 1)
    if example[:1] != ENTRY_TAG or at + size != len(example):
        raise ValueError("expected an Example that holds its features and nothing else")
    entries = []
    while at < len(example):
        if example[at : at + 1] != ENTRY_TAG:
            raise ValueError(f"expected a map entry at byte {at}, got tag {example[at]:#04x}")
        size, start = _read_varint(example, at + 1)
        entries.append(example[at : start + size])
        at = start + size
    rng.shuffle(entries)
    features = b"".join(entries)
    return example[: len(example) - len(features)] + features


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
