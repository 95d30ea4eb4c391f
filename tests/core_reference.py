"""Hashes, random words and permutations of the core in plain Python; their values never change."""

import math
import struct

WORD = 2**64 - 1
SMALL_SIZE, NUM_ROUNDS = 64, 8
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
    """Return the position of a row in the order of a seed."""
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


def philox(counter: tuple[int, int, int, int], key: int) -> tuple[int, int, int, int]:
    """Return Philox4x32-10 of a counter of four words and a key of 64 bits."""
    a, b, c, d = counter
    low, high = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b = second >> 32 ^ b ^ low, second & 0xFFFFFFFF
        c, d = first >> 32 ^ d ^ high, first & 0xFFFFFFFF
        low, high = low + 0x9E3779B9 & 0xFFFFFFFF, high + 0xBB67AE85 & 0xFFFFFFFF
    return a, b, c, d


def random_words(seed: int, epoch: int, purpose: int, record: int, count: int) -> list[int]:
    """Return the first words of a record for one purpose."""
    record &= WORD
    words: list[int] = []
    for block in range(-(-count // 4)):
        words += philox((record & 0xFFFFFFFF, record >> 32, epoch, purpose << 16 | block), seed)
    return words[:count]


def _below(key: int, word: int, limit: int) -> int:
    return mix_keyed(key, word) * limit >> 64


def _draw_whole(key: int, size: int) -> list[int]:
    values = list(range(size))
    for last in range(size, 1, -1):
        other = _below(key, last, last)
        values[last - 1], values[other] = values[other], values[last - 1]
    return values


def permute(seed: int, epoch: int, purpose: int, size: int, position: int) -> int:
    """Return what stands at a position of the permutation."""
    key = mix_keyed(mix_keyed(mix(seed + 0x9E3779B97F4A7C15 & WORD), epoch), purpose)
    if size <= SMALL_SIZE:
        return _draw_whole(key, size)[position]
    rows = math.isqrt(size - 1) + 1
    columns = -(-size // rows)
    columns += rows % 2 == columns % 2 == 1
    keys = [mix_keyed(key, number) for number in range(NUM_ROUNDS)]
    while True:
        row, column = divmod(position, columns)
        for first, second in zip(keys[::2], keys[1::2], strict=True):
            row = (row + _below(first, column, rows)) % rows
            column = (column + _below(second, row, columns)) % columns
        position = row * columns + column
        if position < size:
            return position
