"""The text index that other programs read and write: a line `<offset> <length>` a record.

In: sizes of frames, or the bytes of such a file. Out: the other. DALI and the `tfrecord` package use it,
under the names that `find_names` lists; the length counts the 16 bytes of the frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.shards.index import FRAME_BYTES

SUFFIX: Final = ".tfindex"
_OTHER_SUFFIXES = (".idx", ".index")
_MOST_LINE_BYTES = 2 * 20 + 2
_BLOCK_ROWS = 1 << 16  # its digits stay in the processor's cache
_POWERS = 10 ** np.arange(1, 19, dtype=np.int64)
_FOUR_DIGITS = np.char.zfill(np.arange(10_000).astype("S4"), 4).view(np.uint32)  # as four characters


def tfindex_name(shard: str) -> str:
    """Return the name of a shard's text index, as it lies beside it.

    Example:
        >>> tfindex_name("train-00000-of-00002.tfrecord")
        'train-00000-of-00002.tfindex'
    """
    return f"{shard.removesuffix('.gz').removesuffix('.tfrecord')}{SUFFIX}"


def find_names(file: str) -> list[str]:
    """Return what the index of a file may be called, by whoever wrote it.

    Example:
        >>> find_names("a.tfrecord")[:3]
        ['a.tfindex', 'a.tfrecord.tfindex', 'a.idx']
    """
    stem = PurePath(file).stem
    names = [f"{base}{suffix}" for suffix in (SUFFIX, *_OTHER_SUFFIXES) for base in (stem, file)]
    return [name for name in names if name != file]


def encode_tfindex(sizes: NDArray[Any]) -> bytes:
    """Return the text for frames of these sizes, one behind the other from byte 0.

    Formatting number by number would take a quarter of the time that writing small records does: digits are
    looked up four at a time, and leading zeros dropped, for a block of lines at once.
    """
    return b"".join(iter_tfindex(sizes))


def iter_tfindex(sizes: NDArray[Any]) -> Iterator[bytes]:
    """Yield the text of `encode_tfindex` in parts of some thousand lines.

    The whole is longer than all else that is kept of a shard, and many shards are written at once.
    """
    end = 0
    for start in range(0, len(sizes), _BLOCK_ROWS):
        lengths = sizes[start : start + _BLOCK_ROWS].astype(np.int64)
        ends = np.cumsum(lengths) + end
        yield _write_block(ends - lengths, lengths)
        end = int(ends[-1])


def _write_block(offsets: NDArray[np.int64], lengths: NDArray[np.int64]) -> bytes:
    parts = [_write_numbers(offsets, ord(" ")), _write_numbers(lengths, ord("\n"))]
    text = np.concatenate([chars for chars, _ in parts], axis=1)
    is_kept = np.concatenate([mask for _, mask in parts], axis=1)
    return bytes(text[is_kept].data)


def _write_numbers(numbers: NDArray[np.int64], end: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return a row of digits and an end sign a number, and which of these are written."""
    powers = _POWERS[: len(str(int(numbers.max()))) - 1]
    num_digits = np.ones(len(numbers), np.int8)
    for power in powers:
        num_digits += numbers >= power
    num_groups = len(powers) // 4 + 1
    fours = np.empty((len(numbers), num_groups), np.uint32)
    for group in reversed(range(num_groups)):
        rest = numbers // 10_000
        fours[:, group] = _FOUR_DIGITS[numbers - rest * 10_000]
        numbers = rest
    width = 4 * num_groups
    chars = np.full((len(numbers), width + 1), end, np.uint8)
    chars[:, :width] = fours.view(np.uint8)
    return chars, np.arange(width + 1, dtype=np.int8) >= np.int8(width) - num_digits[:, None]


def most_bytes(num_bytes: int) -> int:
    """Return how large the text index of a file of some bytes can be."""
    return _MOST_LINE_BYTES * (num_bytes // FRAME_BYTES)


def decode_tfindex(text: bytes, num_bytes: int, max_record_bytes: int) -> NDArray[np.uint64] | None:
    """Return where each record of a file begins, and the last ends.

    Returns None for a text that is no such index, or not that of a file of `num_bytes`: its records tile the
    file from the first byte to the last, and memory is taken by their sizes, so that they are held to the
    limit of records.
    """
    if text.translate(None, b"0123456789 \t\r\n"):
        return None
    # What does not fit 64 bits comes out as another number, and then does not tile the file.
    numbers = np.fromstring(text, np.int64, sep=" ") if text.strip() else np.empty(0, np.int64)
    if len(numbers) % 2:
        return None
    offsets, lengths = numbers[::2], numbers[1::2]
    if (
        len(lengths)
        and not FRAME_BYTES <= int(lengths.min()) <= int(lengths.max()) <= max_record_bytes + FRAME_BYTES
    ):
        return None
    bounds = np.zeros(len(lengths) + 1, np.uint64)
    np.cumsum(lengths, out=bounds[1:].view(np.int64))
    tiles = bool(np.array_equal(bounds[:-1].view(np.int64), offsets)) and int(bounds[-1]) == num_bytes
    return bounds if tiles else None
