"""The compiled core for raw data, writing and statistics: part of `penstock._native`, which has them."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

_Buffer: TypeAlias = bytes | bytearray | memoryview

# Raw data: where ranges of rows of a CSV text end, which comes in pieces; `start`: offset of the first
class RowCutter:
    def __init__(self, delimiter: int, rows_per_range: int, start: int) -> None: ...
    # Offsets of the ends of ranges that are in the piece
    def scan(self, piece: _Buffer) -> list[int]: ...
    # Rows since the end of the last range; whether the text so far ends inside of quotes
    @property
    def num_rows(self) -> int: ...
    @property
    def is_quoted(self) -> bool: ...
    @property
    def longest_row(self) -> int: ...

# Writing: what encode/ and shards/ ask of the core. Hashes are part of the format and never change.
def hash_bytes(data: _Buffer) -> int: ...

# BLAKE2b with an output of 16 bytes; of 4096 bytes and more as a tree of four leaves
def digest_bytes(data: _Buffer) -> bytes: ...

# The hash of each value, and its digest as two words per value
def fingerprint(values: Sequence[_Buffer]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]: ...

# Files that any number of threads read, hash and digest; `paths` has a zero byte after each path
class FileCheck:
    def __init__(self, paths: bytes, reads_headers: bool) -> None: ...

    # Checks files until all have begun
    def run(self) -> None: ...

    # Waits until all files are done, for which `run` must have returned: sizes, or -1 for a file that cannot
    # be read, changes while it is read, or is not an image; hashes; digests as two words per file; formats,
    # widths, heights
    def finish(
        self,
    ) -> tuple[
        NDArray[np.int64],
        NDArray[np.uint64],
        NDArray[np.uint64],
        NDArray[np.int8],
        NDArray[np.int64],
        NDArray[np.int64],
    ]: ...

def mix_rows(seed: int, first_row: int, num_rows: int) -> NDArray[np.uint64]: ...
def mix_hashes(seed: int, hashes: NDArray[np.uint64]) -> NDArray[np.uint64]: ...

# (how many numbers, NaN, infinite, zero; of the finite ones least, greatest, mean, squared distances from it)
Measured: TypeAlias = tuple[int, int, int, int, float, float, float, float]

def measure_ints(values: NDArray[np.int64], keep: NDArray[np.bool_] | None) -> Measured: ...
def measure_floats(values: NDArray[np.float32], keep: NDArray[np.bool_] | None) -> Measured: ...
def measure_doubles(values: NDArray[np.float64], keep: NDArray[np.bool_] | None) -> Measured: ...

# (how many rows; how many NaN, infinite, zero; least, greatest of all; of each column count, mean, squares)
MeasuredRows: TypeAlias = tuple[
    int, int, int, int, float, float, NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]
]

def measure_rows_of_ints(
    values: NDArray[np.int64], width: int, keep: NDArray[np.bool_] | None
) -> MeasuredRows: ...
def measure_rows_of_floats(
    values: NDArray[np.float32], width: int, keep: NDArray[np.bool_] | None
) -> MeasuredRows: ...
def measure_rows_of_doubles(
    values: NDArray[np.float64], width: int, keep: NDArray[np.bool_] | None
) -> MeasuredRows: ...

# (how many integers, the least that is counted, counts); no counts where they lie `max_range` apart or wider
def count_list_ints(
    values: NDArray[np.int64],
    offsets: NDArray[np.int64],
    keep: NDArray[np.bool_] | None,
    max_range: int,
) -> tuple[int, int, NDArray[np.int64]]: ...

# 16 values of each list at even distances, in turn; NaN after the last value of a list
def sample_lists_of_ints(
    values: NDArray[np.int64], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.float64]: ...
def sample_lists_of_floats(
    values: NDArray[np.float32], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.float64]: ...
def sample_lists_of_doubles(
    values: NDArray[np.float64], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.float64]: ...

# (key, source, whether it is a feature list); sources are numbered in native/write/encode.h
EncodeField: TypeAlias = tuple[str, int, bool]
# (values, starts, stops, row offsets, step offsets or a mark of doubles, count, present); None for nothing. A
# deferred column has hashes as its values, and digests (two words per row) in the place of starts.
EncodeColumn: TypeAlias = tuple[
    NDArray[Any],
    NDArray[np.int64] | NDArray[np.uint64] | None,
    NDArray[np.int64] | None,
    NDArray[np.int64] | None,
    NDArray[np.int64] | bool | None,
    int,
    NDArray[np.bool_] | None,
]

class Encoder:
    def __init__(self, fields: Sequence[EncodeField], sequence_example: bool) -> None: ...
    # (bodies, where each begins, and the last ends)
    def encode(
        self, columns: Sequence[EncodeColumn], num_rows: int
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]: ...
    def hash_rows(
        self, columns: Sequence[EncodeColumn], num_rows: int, fields: Sequence[int], is_named: bool
    ) -> NDArray[np.uint64]: ...
    # Two words per row; fields as (number, whether its strings are represented by their own digests)
    def digest_rows(
        self,
        columns: Sequence[EncodeColumn],
        num_rows: int,
        fields: Sequence[tuple[int, bool]],
        is_named: bool,
    ) -> NDArray[np.uint64]: ...

# Byte strings from any of the arenas, concatenated
def gather(
    arenas: Sequence[NDArray[np.uint8]],
    arena_of: NDArray[np.uint32],
    begins: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> NDArray[np.uint8]: ...

# A value that is fetched late: its bytes, or (path, size, digest) of the file that holds it, or None
LateValue: TypeAlias = _Buffer | tuple[bytes, int, bytes] | None

# References of penstock.encode.deferred: the size of each value, and 0 for none, 1 for a value in memory,
# 2 for a file, 3 for an object of a store
def read_references(
    arenas: Sequence[NDArray[np.uint8]],
    arena_of: NDArray[np.uint32],
    begins: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]: ...

# Bodies, taken from some arenas, as frames: (concatenated frames, size of each, files that could not
# be read: row, late field, errno or 0 for a file that is not what it was)
def compose(
    arenas: Sequence[NDArray[np.uint8]],
    arena_of: NDArray[np.uint32],
    begins: NDArray[np.int64],
    sizes: NDArray[np.int64],
    late: Sequence[tuple[str, Sequence[LateValue]]],
    is_message: bool,
) -> tuple[NDArray[np.uint8], NDArray[np.int64], list[tuple[int, int, int]]]: ...

# The lines of a text index as bytes, and the end of the last frame; `offset` is where the first one begins
def text_index(sizes: NDArray[np.int64], offset: int) -> tuple[NDArray[np.uint8], int]: ...
def has_sha256_instructions() -> bool: ...

class Sha256:
    def __init__(self) -> None: ...
    def update(self, data: _Buffer) -> None: ...
    # Adds to two different hashes at once, in about the time of one
    def update_with(self, data: _Buffer, other: Sha256, other_data: _Buffer) -> None: ...
    def digest(self) -> bytes: ...

class ValueCounter:
    num_overflowed: int  # how many values came when there was no more room
    def __init__(self, max_values: int) -> None: ...
    def add_strings(
        self,
        arena: NDArray[np.uint8],
        starts: NDArray[np.int64],
        stops: NDArray[np.int64],
        keep: NDArray[np.bool_] | None,
    ) -> None: ...
    def add_ints(self, values: NDArray[np.int64], keep: NDArray[np.bool_] | None) -> None: ...
    # Adds what another counter counted, which must be of the same kind: strings or integers.
    def merge(self, other: ValueCounter) -> None: ...
    def __len__(self) -> int: ...  # distinct values
    # (values in the order of first appearance, their counts, `num_overflowed`)
    def take(self) -> tuple[list[bytes] | NDArray[np.int64], NDArray[np.int64], int]: ...
