"""Blocks of raw columns, the `Source` protocol, and sources whose first blocks are already read.

Every source yields its rows as `Block`s in the order of the data.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.foundation.process import count_cores
from penstock.schema.declaration import Representation
from penstock.schema.field import Field
from penstock.storage.named_files import NamedFiles

RawColumn: TypeAlias = "pa.Array[Any] | NDArray[Any]"
"""One value per row. NumPy arrays may have the shape (rows, …); arrays of dtype object hold any
Python objects."""

BLOCK_ROWS = 16_384
"""Maximum number of rows per block. Only the data determine the blocks, because statistics are merged per
block."""

BLOCK_BYTES = 32 << 20
"""Approximate maximum size of a block in bytes: several blocks are in memory at once."""


LARGE_BYTES = 4096
"""Byte strings of at least this size are not copied into Arrow arrays, but stay objects until they are
written."""


class LazyColumns(Mapping[str, RawColumn]):
    """Columns that the thread which needs them first reads."""

    def __init__(self, names: Sequence[str], read: Callable[[], Mapping[str, RawColumn]]) -> None:
        self._names = names
        self._read: Callable[[], Mapping[str, RawColumn]] | None = read
        self._columns: Mapping[str, RawColumn] = {}
        self._error: BaseException | None = None
        self._lock = threading.Lock()

    def load(self) -> Mapping[str, RawColumn]:
        """Return the columns, or raise the error of reading them, which is tried once."""
        with self._lock:
            if self._read is not None:
                read, self._read = self._read, None  # it holds an open file
                try:
                    self._columns = read()
                except BaseException as error:
                    self._error = error
            if self._error is not None:
                raise self._error
            return self._columns

    def __getitem__(self, name: str) -> RawColumn:
        return self.load()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True)
class Block:
    """Consecutive rows of a source.

    Attributes:
        first_row: Index of the first row in the source, from 0.
        num_rows: Number of rows.
        columns: Raw columns by name; all blocks have the same names in the same order.
        path: Path of the file that holds the rows; a block never has rows of two files.
        row_in_file: Index of the first row in that file, from 0.
        lines: Line number of each row, if already known; otherwise `row_location.locate_row` finds it.
        copy: Local copy of a file that is in an object store; `path` is the file itself.
        folder: Folder that relative paths in the rows start from; it may be in an object store.
        files_from: Other folders and URLs whose files the rows may name; see `NamedFiles`.
        is_resident: Whether the arrays live as long as the source, like the arrays of a table in memory.
        num_bytes: Share of the source's `num_bytes` that the block accounts for.
        reads_files: Whether values may be paths of files to read. If not, such values are refused.
        key: Name of the column that names each row in errors, if the source has one: the key of a sample.
    """

    first_row: int
    num_rows: int
    columns: Mapping[str, RawColumn]
    path: str | None = None
    row_in_file: int = 0
    lines: NDArray[np.int64] | None = None
    copy: str | None = None
    folder: str | None = None
    files_from: tuple[str, ...] = ()
    is_resident: bool = False
    num_bytes: int = 0
    reads_files: bool = True
    key: str | None = None

    @property
    def files(self) -> NamedFiles:
        """The files that the rows may name."""
        return NamedFiles(self.folder, self.files_from)

    def cut(self, num_rows: int) -> Iterator[Block]:
        """Yield the same rows in blocks of at most `num_rows` rows."""
        if self.num_rows <= num_rows:
            yield self
            return
        for start in range(0, self.num_rows, num_rows):
            stop = min(start + num_rows, self.num_rows)
            yield replace(
                self,
                first_row=self.first_row + start,
                num_rows=stop - start,
                columns={name: raw[start:stop] for name, raw in self.columns.items()},
                row_in_file=self.row_in_file + start,
                lines=None if self.lines is None else self.lines[start:stop],
                num_bytes=self.num_bytes * (stop - start) // self.num_rows,
            )


class Source(Protocol):
    """Raw data that yields blocks.

    Attributes:
        name: Name of the source in messages: `pets.csv`, `DataFrame`, `iterable of dicts`.
        is_repeatable: Whether `blocks()` can be called again.
        num_rows: Number of rows, or None if it is only known after reading.
        num_bytes: Number of bytes to read, or None if unknown.
        declared: Fields that the source itself declares, by column.
        forms: Representations of the values in those columns.
        notes: Notes for the user about the source; complete once all rows were read.
    """

    name: str
    is_repeatable: bool
    declared: Mapping[str, Field]
    forms: Mapping[str, Representation]

    @property
    def num_rows(self) -> int | None:
        """See above."""

    @property
    def num_bytes(self) -> int | None:
        """See above."""

    @property
    def notes(self) -> tuple[str, ...]:
        """See above."""

    def blocks(self) -> Iterator[Block]:
        """Yield the rows from the first to the last."""

    def provenance(self) -> list[dict[str, Any]]:
        """Return the origin of the rows as JSON: name, bytes, sha256 and rows of each file.

        Names are base names or relative to the folder of the source, never absolute. Data in memory has name,
        kind and rows. Rows are None if they were not counted.
        """


HEAD_ROWS: Final = 65_536
HEAD_BYTES: Final = 64 << 20
"""The head ends with the block that reaches either limit: it depends on the data alone, and so does the
plan."""

_LOADED_AT_ONCE: Final = 8  # blocks of the head: four full ones have its rows


class PeekedSource:
    """A source whose first blocks are already read; it is a `Source` too.

    The columns of other blocks may be read, and their errors be raised, by the threads that need them.

    Attributes:
        head: First blocks of the source.
        is_whole: Whether the source has no other blocks.

    The first call of `blocks()` releases the blocks of the head one by one as it yields them.
    """

    def __init__(self, source: Source, num_threads: int | None = None) -> None:
        """Read the first blocks, with at most so many threads; by default one per core."""
        self.name = source.name
        self.is_repeatable = source.is_repeatable
        self.num_rows = source.num_rows
        self.num_bytes = source.num_bytes
        self.declared: Mapping[str, Field] = source.declared
        self.forms: Mapping[str, Representation] = source.forms
        self._source = source
        self._absent: tuple[str, ...] = ()
        if (defer := getattr(source, "defer_columns", None)) is not None:
            defer()
        self._rest: Iterator[Block] | None = iter(source.blocks())
        self.head, self._loaded, self.is_whole = _take_head(self._rest, num_threads or count_cores())

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user about the source; complete once all rows were read."""
        return self._source.notes

    @property
    def cautions(self) -> tuple[str, ...]:
        """Those notes that are about values which were lost."""
        return getattr(self._source, "cautions", ())

    def add_absent(self, names: Iterable[str]) -> None:
        """Add columns that the source does not have to all blocks, with all values missing."""
        self._absent = (*self._absent, *names)
        self.head = tuple(map(self._add_absent, self.head))

    def _add_absent(self, block: Block) -> Block:
        if not self._absent:
            return block
        nulls: dict[str, RawColumn] = dict.fromkeys(self._absent, pa.nulls(block.num_rows))
        return replace(block, columns={**block.columns, **nulls})

    def hash_ahead(self) -> None:
        """Begin what `provenance` needs besides the rows, while they are read, if the source can."""
        if (begin := getattr(self._source, "hash_ahead", None)) is not None:
            begin()

    def blocks(self) -> Iterator[Block]:
        """Yield the rows from the first to the last."""
        if self._rest is None:
            yield from map(self._add_absent, self._source.blocks())
            return
        rest, self._rest = self._rest, None
        head, self.head = deque(self.head), ()
        while head:
            yield head.popleft()
        while self._loaded:
            yield self._add_absent(self._loaded.popleft())
        yield from map(self._add_absent, rest)

    def provenance(self) -> list[dict[str, Any]]:
        """Return the origin of the rows as JSON."""
        return self._source.provenance()


def _take_head(blocks: Iterator[Block], num_threads: int) -> tuple[tuple[Block, ...], deque[Block], bool]:
    """Return the head, the loaded blocks after it, and whether these are all blocks."""
    head: list[Block] = []
    num_rows = num_bytes = 0
    while loaded := _load_some(blocks, HEAD_ROWS - num_rows, HEAD_BYTES - num_bytes, num_threads):
        while loaded:
            head.append(block := loaded.popleft())
            num_rows += block.num_rows
            num_bytes += sum(map(_count_bytes, block.columns.values()))
            if num_rows >= HEAD_ROWS or num_bytes >= HEAD_BYTES:
                return tuple(head), loaded, False
    return tuple(head), loaded, True


def _load_some(blocks: Iterator[Block], num_rows: int, num_bytes: int, num_threads: int) -> deque[Block]:
    """Return the next blocks, whose columns several threads have read if that was still to be done.

    They are few, because a block whose columns are not read holds an open file, and end with the block that
    reaches one of the sizes.
    """
    found: deque[Block] = deque()
    for block in islice(blocks, _LOADED_AT_ONCE):
        found.append(block)
        num_rows -= block.num_rows
        num_bytes -= block.num_bytes
        if num_rows <= 0 or num_bytes <= 0 or not isinstance(block.columns, LazyColumns):
            break
    deferred = [each.columns for each in found if isinstance(each.columns, LazyColumns)]
    if deferred:  # also a single one: in the main thread, pyarrow needs two more open files
        with ThreadPoolExecutor(min(len(deferred), num_threads), "penstock-head") as pool:
            wait([pool.submit(each.load) for each in deferred])  # an error is raised when they are needed
    return found


def _count_bytes(column: RawColumn) -> int:
    if isinstance(column, np.ndarray) and column.dtype == object:
        # Arrays, byte strings and texts know their size; other objects are small.
        return sum(getattr(value, "nbytes", 0) or _len(value) for value in column)
    return int(column.nbytes)


def _len(value: object) -> int:
    return len(value) if isinstance(value, (bytes, bytearray, str)) else 0
