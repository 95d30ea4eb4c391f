"""External sort: rows on disk in sorted runs, by keys that are hashes or ascending numbers.

In: blocks of rows with keys. Out: the rows of any range of keys. Runs are sorted by (likely split, key),
so that rows of a split with close keys are contiguous: a range takes one read per run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.shards.sort.chunk import CHUNK_BYTES, Chunk, ChunkColumn
from penstock.shards.sort.scratch import Scratch, release_pages

_PIECE_BYTES = 8 << 20  # gathered before they are written
_GAP_BYTES = 64 << 10  # reading a gap of this size is faster than a second read
_SCAN_ROWS = 1 << 16
_STRIDE = 256  # every 256th key is in memory, so that ranges are found without reading all keys


@dataclass(frozen=True)
class Section:
    """The rows of one run that are likely in one split, sorted by key; at least one row.

    Attributes:
        num_rows: Number of rows.
        keys_at: Offset of the keys in the file.
        headers_at: Offset of the row headers in the file.
        bytes_at: Offset of the bytes of the rows in the file.
        last_key: Largest key.
        landmarks: Every 256th key.
        first_number: Number of rows that arrived before the rows of the file; the numbers in it start from 0.
    """

    num_rows: int
    keys_at: int
    headers_at: int
    bytes_at: int
    last_key: int
    landmarks: NDArray[np.uint64]
    first_number: int = 0


class SpillFile(Protocol):
    """Where runs are: a `Scratch`, or files that several processes wrote."""

    @property
    def num_bytes(self) -> int:
        """Number of bytes that were appended."""

    def append(self, array: NDArray[Any]) -> int:
        """Append a contiguous array; return its offset."""

    def read_parts(self, parts: Sequence[tuple[int, NDArray[Any]]]) -> None:
        """Fill each contiguous array with the bytes from its offset on, in any order."""

    def close(self) -> None:
        """Close the files."""


@dataclass(frozen=True, eq=False)
class SectionRows:
    """Rows of one section: keys and headers, the offset of its bytes, and the index of the first row."""

    keys: NDArray[np.uint64]
    headers: NDArray[np.void]
    bytes_at: int
    start: int

    def take(self, rows: NDArray[np.bool_]) -> SectionRows:
        """Return some of the rows."""
        return SectionRows(self.keys[rows], self.headers[rows], self.bytes_at, self.start)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Number of rows of the file that arrived before each row."""
        return self.headers["number"]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of bytes of each row, in all columns together."""
        sizes: NDArray[np.int64] = self.headers["sizes"].sum(axis=1)
        return sizes


def _header_type(num_columns: int) -> np.dtype[np.void]:
    """Return the type of the header of a row, which has so many byte columns."""
    return np.dtype([("row", "u8"), ("number", "i8"), ("begin", "i8"), ("sizes", "i8", (num_columns,))])


def find_run_bytes(num_rows: int, num_columns: int, num_bytes: int) -> int:
    """Return the size of a run in its file; `num_bytes`: size of its rows in all columns together."""
    return num_rows * (8 + _header_type(num_columns).itemsize) + num_bytes


def write_sections(
    file: Scratch,
    begin: int,
    chunk: Chunk,
    keys: NDArray[np.uint64],
    likely: NDArray[np.uint8],
    first_number: int,
) -> list[Section]:
    """Sort consecutive rows and write them as a run at a reserved offset, in any thread; return its sections.

    `keys`, `likely`: key and likely split of each row. `first_number`: number of rows of the file that
    arrived before the first row.
    """
    sections = []
    for split in np.unique(likely).tolist():
        found = np.flatnonzero(likely == split)
        order = found[np.argsort(keys[found])]
        section, begin = _write_section(file, begin, chunk.take(order), keys[order], order + first_number)
        sections.append(section)
    return sections


def _write_section(
    file: Scratch, begin: int, chunk: Chunk, keys: NDArray[np.uint64], numbers: NDArray[np.int64]
) -> tuple[Section, int]:
    """Write a section at an offset; return it and its exclusive end."""
    headers = np.empty(len(keys), _header_type(len(chunk.columns)))
    headers["row"] = chunk.rows
    headers["number"] = numbers
    for i, column in enumerate(chunk.columns):
        headers["sizes"][:, i] = column.sizes
    sizes = headers["sizes"].sum(axis=1)
    headers["begin"] = np.cumsum(sizes) - sizes
    headers_at = file.write(begin, keys)
    end = bytes_at = file.write(headers_at, headers.view(np.uint8))
    for piece in chunk.cut(_PIECE_BYTES):
        end = file.write(end, piece.gather())
    landmarks = keys[::_STRIDE].copy()
    return Section(len(keys), begin, headers_at, bytes_at, int(keys[-1]), landmarks), end


class Spill:
    """Sorted runs in a file, which any number of threads can search.

    Attributes:
        sections: Sections of all runs, in the order of the runs.
    """

    def __init__(self, file: SpillFile, num_columns: int) -> None:
        """Begin without runs.

        `file`: file of the runs; it is closed with the spill. `num_columns`: number of byte columns of a row.
        """
        self.sections: list[Section] = []
        self._scratch = file
        self._num_columns = num_columns
        self._header_type = _header_type(num_columns)

    def append_splits(self, splits: NDArray[np.uint8]) -> int:
        """Write the splits of the next rows of a section; return their offset for `read_splits`."""
        return self._scratch.append(splits)

    def read_splits(self, begins: Sequence[int], found: Sequence[SectionRows]) -> list[NDArray[np.uint8]]:
        """Return the splits of rows of sections, whose splits start at the offsets `begins`."""
        splits = [np.empty(len(rows.keys), np.uint8) for rows in found]
        offsets = [begin + rows.start for begin, rows in zip(begins, found, strict=True)]
        self._scratch.read_parts(list(zip(offsets, splits, strict=True)))
        return splits

    def scan(self, section: Section) -> Iterator[SectionRows]:
        """Yield all rows of a section in several items."""
        for start in range(0, section.num_rows, _SCAN_ROWS):
            num_rows = min(_SCAN_ROWS, section.num_rows - start)
            keys, headers = np.empty(num_rows, np.uint64), np.empty(num_rows, self._header_type)
            self._scratch.read_parts(
                [_keys_part(section, start, keys), _headers_part(section, start, headers)]
            )
            yield SectionRows(keys, headers, section.bytes_at, start)

    def find(self, sections: Sequence[Section], low: int, high: int) -> list[SectionRows]:
        """Return the rows of each section with keys from `low` (inclusive) to `high` (exclusive).

        The sections are read together: where a file is far away, one after the other would take too long.
        """
        least, most = np.uint64(low), np.uint64(high - 1)  # `high` may be 2**64
        begins, candidates = [], []
        for section in sections:
            begin = max(0, int(np.searchsorted(section.landmarks, least)) - 1) * _STRIDE
            end = int(np.searchsorted(section.landmarks, most, side="right")) * _STRIDE
            begins.append(begin)
            candidates.append(np.empty(max(0, min(end, section.num_rows) - begin), np.uint64))
        self._scratch.read_parts(list(map(_keys_part, sections, begins, candidates)))
        found = []
        for section, begin, keys in zip(sections, begins, candidates, strict=True):
            start = int(np.searchsorted(keys, least))
            stop = int(np.searchsorted(keys, most, side="right"))
            headers = np.empty(stop - start, self._header_type)
            found.append(SectionRows(keys[start:stop], headers, section.bytes_at, begin + start))
        parts = zip(sections, found, strict=True)
        self._scratch.read_parts(
            [_headers_part(section, rows.start, rows.headers) for section, rows in parts]
        )
        return found

    def load(self, found: list[SectionRows]) -> tuple[NDArray[np.uint64], Chunk]:
        """Return the keys of rows, and the rows with their bytes in one arena."""
        spans = [_Spans(part) for part in found]
        arena = np.empty(sum(each.num_bytes for each in spans), np.uint8)
        begins = np.empty(sum(len(part.keys) for part in found), np.int64)
        num_bytes = num_rows = 0
        parts: list[tuple[int, NDArray[Any]]] = []
        for part, each in zip(found, spans, strict=True):
            begins[num_rows : num_rows + len(part.keys)] = each.offsets + num_bytes
            num_rows += len(part.keys)
            for start, stop in zip(each.starts.tolist(), each.stops.tolist(), strict=True):
                parts.append((part.bytes_at + start, arena[num_bytes : num_bytes + stop - start]))
                num_bytes += stop - start
        self._scratch.read_parts(parts)
        headers = np.concatenate([part.headers for part in found] or [np.empty(0, self._header_type)])
        keys = np.concatenate([part.keys for part in found] or [np.empty(0, np.uint64)])
        one = np.zeros(num_rows, np.uint32)
        columns = []
        for i in range(self._num_columns):
            sizes = np.ascontiguousarray(headers["sizes"][:, i])
            columns.append(ChunkColumn([arena], one, begins, sizes))
            begins = begins + sizes
        return keys, Chunk(np.ascontiguousarray(headers["row"]), columns)

    def close(self) -> None:
        """Close the file."""
        self._scratch.close()


def _keys_part(section: Section, start: int, keys: NDArray[np.uint64]) -> tuple[int, NDArray[Any]]:
    """Return the offset of the keys from row `start` on, and the array that they are read into."""
    return section.keys_at + start * keys.itemsize, keys


def _headers_part(section: Section, start: int, headers: NDArray[np.void]) -> tuple[int, NDArray[Any]]:
    """Return the offset of the headers from row `start` on, and the array that they are read into."""
    return section.headers_at + start * headers.itemsize, headers.view(np.uint8)


class _Spans:
    """The byte ranges of a section to read for some rows; close rows are read together.

    Attributes:
        starts: Start of each read.
        stops: Exclusive end of each read.
        offsets: Offset of each row in the concatenated reads.
        num_bytes: Number of bytes to read.
    """

    def __init__(self, found: SectionRows) -> None:
        begins = found.headers["begin"]
        ends = begins + found.sizes
        is_first = np.ones(len(begins), np.bool_)
        is_first[1:] = begins[1:] - ends[:-1] > _GAP_BYTES
        firsts = np.flatnonzero(is_first)
        self.starts = begins[firsts]
        self.stops = ends[np.append(firsts[1:], len(begins))[: len(firsts)] - 1]
        lengths = self.stops - self.starts
        self.num_bytes = int(lengths.sum())
        shifts = np.cumsum(lengths) - lengths - self.starts
        self.offsets = begins + shifts[np.cumsum(is_first) - 1]


CELL_BYTES = 24 << 20
"""Size of a cell, which each thread that writes a shard loads at once."""

_ROW_BYTES = 120  # memory for key, header and position of a row while its cell is loaded


@dataclass(frozen=True, eq=False)
class _Split:
    """The locations of the rows of one split.

    Attributes:
        lows: Smallest key of each cell.
        positions: Number of rows of the split before each cell, and as last item their total.
        sections: Sections that contain rows of the split.
        splits_at: Offset of the splits of the rows of each section.
        first_keys: Smallest key of each section.
        last_keys: Largest key of each section.
    """

    lows: list[int]
    positions: NDArray[np.int64]
    sections: list[Section]
    splits_at: list[int]
    first_keys: NDArray[np.uint64]
    last_keys: NDArray[np.uint64]


class SpilledRows:
    """The rows of all splits, on disk; any number of threads can read chunks."""

    def __init__(
        self, spill: Spill, bounds: NDArray[np.uint64], codes: NDArray[np.uint8], num_splits: int
    ) -> None:
        """Count the rows of each split in each range of keys, in one pass, and combine ranges to cells.

        `bounds`: smallest key of each range; the first is 0.
        """
        self._spill = spill
        num_rows = np.zeros(num_splits * len(bounds), np.int64)
        num_bytes = np.zeros(num_splits * len(bounds))
        holders: list[list[tuple[Section, int]]] = [[] for _ in range(num_splits)]
        for section in spill.sections:
            is_holder = np.zeros(num_splits, np.bool_)
            begins = []
            for rows in spill.scan(section):
                # Stored in the order of the section: selecting them from all codes for each cell would load
                # one byte per row into memory. Rows of a section are close to each other in the source.
                splits = np.array(codes[rows.numbers + section.first_number])
                begins.append(spill.append_splits(splits))
                is_holder[splits] = True
                ranges = np.searchsorted(bounds, rows.keys, side="right") - 1
                counters = splits.astype(np.int64) * len(bounds) + ranges
                num_rows += np.bincount(counters, minlength=len(num_rows))
                num_bytes += np.bincount(counters, rows.sizes + _ROW_BYTES, minlength=len(num_rows))
            for split in np.flatnonzero(is_holder).tolist():
                holders[split].append((section, begins[0]))
            release_pages(codes)
        shape = (num_splits, len(bounds))
        tables = zip(num_rows.reshape(shape), num_bytes.reshape(shape), holders, strict=True)
        self._splits = [_make_split(bounds, *table) for table in tables]

    @property
    def counts(self) -> list[int]:
        """Number of rows of each split."""
        return [int(split.positions[-1]) for split in self._splits]

    def chunks(self, split: int, start: int, stop: int, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
        """Yield the rows of a split from position `start` to `stop`."""
        positions = self._splits[split].positions
        while start < stop:
            cell = int(np.searchsorted(positions, start, side="right")) - 1
            before, end = int(positions[cell]), min(stop, int(positions[cell + 1]))
            yield from self._load(split, cell).take(slice(start - before, end - before)).cut(chunk_bytes)
            start = end

    def _load(self, split: int, cell: int) -> Chunk:
        """Return all rows of a cell, in order."""
        there = self._splits[split]
        low, high = there.lows[cell], there.lows[cell + 1]
        is_near = (there.first_keys <= np.uint64(high - 1)) & (there.last_keys >= np.uint64(low))
        near = np.flatnonzero(is_near).tolist()
        found = self._spill.find([there.sections[number] for number in near], low, high)
        splits = self._spill.read_splits([there.splits_at[number] for number in near], found)
        keys, chunk = self._spill.load(
            [rows.take(each == split) for rows, each in zip(found, splits, strict=True)]
        )
        return chunk.take(np.argsort(keys))


def _make_split(
    bounds: NDArray[np.uint64],
    num_rows: NDArray[np.int64],
    num_bytes: NDArray[np.float64],
    holders: list[tuple[Section, int]],
) -> _Split:
    sections = [section for section, _ in holders]
    cell_of = (np.cumsum(num_bytes) - num_bytes) // CELL_BYTES
    firsts = np.concatenate([[0], np.flatnonzero(np.diff(cell_of)) + 1])
    positions = np.append((np.cumsum(num_rows) - num_rows)[firsts], num_rows.sum())
    return _Split(
        lows=[*bounds[firsts].tolist(), 2**64],
        positions=positions,
        sections=sections,
        splits_at=[begin for _, begin in holders],
        first_keys=np.array([section.landmarks[0] for section in sections], np.uint64),
        last_keys=np.array([section.last_key for section in sections], np.uint64),
    )
