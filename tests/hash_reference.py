"""The hashes of the core in plain Python: what they are, for ever."""

import math
import struct

WORD = 2**64 - 1
FIRST, SECOND = 0xA0761D6478BD642F, 0xE7037ED1A0B428DB


def mix(word: int) -> int:
    """Return the finaliser of SplitMix64."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB & WORD
    return word ^ word >> 31


def mix_keyed(key: int, word: int) -> int:
    """Return the mix of a word under a key."""
    return mix(mix(word ^ key) + key & WORD)


def mix_row(seed: int, row: int) -> int:
    """Return the place of a row in the order of a seed."""
    return mix_keyed(mix(seed + 0x9E3779B97F4A7C15 & WORD), row)


def _fold(a: int, b: int) -> int:
    product = a * b
    return product & WORD ^ product >> 64


def hash_bytes(data: bytes) -> int:
    """Return the hash of a byte string."""
    state = FIRST ^ mix(len(data))
    rest = data
    while len(rest) > 16:
        low, high = struct.unpack("<QQ", rest[:16])
        state = _fold(low ^ FIRST, high ^ state)
        rest = rest[16:]
    low, high = struct.unpack("<QQ", rest.ljust(16, b"\0"))
    return mix(_fold(low ^ SECOND, high ^ state) ^ state)


def word_of(value: float) -> int:
    """Return the word of an int64 or of a double; equal numbers have one, and so have all NaNs."""
    if isinstance(value, int) and int(float(value)) != value:
        return value & WORD ^ FIRST
    if math.isnan(value):
        return FIRST
    (word,) = struct.unpack("<Q", struct.pack("<d", float(value) + 0.0))
    return word ^ SECOND


def hash_list(values: list[bytes]) -> int:
    """Return the hash of a list of byte strings."""
    state = len(values)
    for value in values:
        state = mix(state ^ hash_bytes(value))
    return state


def hash_field(name: str, word: int) -> int:
    """Return what a field with this word adds to the hash of its row."""
    return mix(hash_bytes(name.encode()) ^ word)
