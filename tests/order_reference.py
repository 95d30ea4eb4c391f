"""Random words and permutations of the core in plain Python: what they are, for ever."""

import math

from hash_reference import WORD, mix, mix_keyed

SMALL_SIZE, NUM_ROUNDS = 64, 8


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
