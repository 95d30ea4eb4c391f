"""Sorted runs that several processes write, each as a file of its own in a location that all of them see.

In: encoded blocks of consecutive rows, in any process. Out: a file per run, and from all runs, in the order
of the source, the rows of each split, which any process that sees the location can read.
"""

from __future__ import annotations

import secrets
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.errors import ChangedFileError, PenstockError, WriteError
from penstock.shards.row_work import WorkedRows
from penstock.shards.sort.chunk import ByteColumn, join_blocks
from penstock.shards.sort.row_store import divide_keys
from penstock.shards.sort.scratch import Scratch
from penstock.shards.sort.spill import Section, Spill, SpilledRows, find_run_bytes, write_sections
from penstock.storage.location import Location, Part, Ranges

_ROW_BYTES: Final = 40  # as in a `RowStore`


@dataclass(frozen=True)
class SortedRun:
    """A run in a file.

    Attributes:
        name: Name of the file; "" if no row is valid, and there is no file.
        first_row: Index of its first row in the source.
        num_rows: Number of rows.
        num_bytes: Size of the file.
        sections: Sections of the file.
        num_columns: Number of byte columns of a row.
    """

    name: str
    first_row: int
    num_rows: int
    num_bytes: int
    sections: tuple[Section, ...]
    num_columns: int


def write_run(
    folder: Location, blocks: Sequence[WorkedRows], deferred_names: Sequence[str], seed: int | None
) -> SortedRun:
    """Write consecutive blocks as one run under a new name; two calls never write the same file.

    Values of deferred fields that are in memory are stored with their rows.

    `folder`: folder of the files, on a disk or in an object store. `seed`: seed of the shuffle; None keeps
    the order of the source.
    """
    first_row = blocks[0].block.first_row
    columns = [[*each.columns, *_store_residents(each, deferred_names)] for each in blocks]
    chunk = join_blocks([each.rows for each in blocks], columns)
    num_columns = len(columns[0])
    if not len(chunk.rows):
        return SortedRun("", first_row, 0, 0, (), num_columns)
    keys = chunk.rows if seed is None else _native.mix_hashes(seed, chunk.rows)
    name = f"run-{first_row:012}-{secrets.token_hex(8)}"
    # A task that runs late must not make the folder again after it was removed with the job.
    with (folder / name).writing(makes_folder=False) as path, Scratch(path.parent, name) as file:
        begin = file.reserve(find_run_bytes(len(chunk.rows), num_columns, chunk.num_bytes))
        likely = np.concatenate([each.tentative for each in blocks])
        sections = write_sections(file, begin, chunk, keys, likely, 0)
        return SortedRun(name, first_row, len(chunk.rows), file.num_bytes, tuple(sections), num_columns)


def _store_residents(worked: WorkedRows, names: Sequence[str]) -> list[ByteColumn]:
    """Return the values in memory of each deferred field, one per valid row, empty where there are none."""
    columns: list[ByteColumn] = []
    first_row = worked.block.first_row
    for name in names:
        offsets = np.zeros(len(worked.rows) + 1, np.int64)
        values = worked.resident.get(name)
        pieces = [] if values is None else [values[row - first_row] for row in worked.rows.tolist()]
        if pieces:
            np.cumsum([len(piece or b"") for piece in pieces], out=offsets[1:])
        columns.append((np.frombuffer(b"".join(piece or b"" for piece in pieces), np.uint8), offsets))
    return columns


class RunFiles:
    """The files of all runs as one file, by offset; it can be pickled, and opens files when they are read.

    Attributes:
        num_bytes: Number of bytes of all files.
    """

    def __init__(self, folder: Location) -> None:
        self.num_bytes = 0
        self._folder = folder
        self._names: list[str] = []
        self._starts: list[int] = []
        self._reset()

    def _reset(self) -> None:
        self._ranges: Ranges = self._folder.open_ranges()
        self._appended: Scratch | None = None
        self._closing = ExitStack()

    def __getstate__(self) -> dict[str, Any]:
        names = ("num_bytes", "_folder", "_names", "_starts")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reset()

    def add(self, name: str, num_bytes: int) -> int:
        """Add a file; return its offset."""
        start = self.num_bytes
        self._names.append(name)
        self._starts.append(start)
        self.num_bytes += num_bytes
        return start

    def append(self, array: NDArray[Any]) -> int:
        """Append an array to one further file; no file can be added after that."""
        if self._appended is None:
            name = f"splits-{secrets.token_hex(8)}"
            path = self._closing.enter_context((self._folder / name).writing())
            self._appended = self._closing.enter_context(Scratch(path.parent, name))
            self.add(name, 0)
        self._appended.append(array)
        start = self.num_bytes
        self.num_bytes += array.nbytes
        return start

    def read(self, begin: int, array: NDArray[Any]) -> None:
        """Fill a contiguous array with the bytes from an offset on, which are all in one file."""
        self.read_parts([(begin, array)])

    def read_parts(self, parts: Sequence[tuple[int, NDArray[Any]]]) -> None:
        """Fill each contiguous array with the bytes from its offset on."""
        found = [Part(*self.locate(begin), array) for begin, array in parts if array.nbytes]
        try:
            self._ranges.fill(found)
        except ChangedFileError as error:
            raise WriteError("a temporary file is shorter than expected", path=error.path) from error
        except OSError as error:
            if isinstance(error, PenstockError):
                raise
            raise WriteError(
                f"a temporary file cannot be read ({error.strerror or error})",
                path=error.filename or self._folder,  # reads of an open file name none
                advice="All machines of the cluster must see the output folder, under the same path.",
            ) from error

    def locate(self, begin: int) -> tuple[str, int]:
        """Return the name of the file that has the byte at an offset, and the offset in that file."""
        number = bisect_right(self._starts, begin) - 1
        return self._names[number], begin - self._starts[number]

    def close(self) -> None:
        """Close the files, which stay in their folder; what was appended to one of a store is uploaded."""
        self._ranges.close()
        self._closing.close()


def join_runs(
    files: RunFiles,
    runs: Sequence[SortedRun],
    codes: NDArray[np.uint8],
    num_splits: int,
    *,
    is_shuffled: bool,
) -> SpilledRows:
    """Return the rows of all splits; the result can be pickled, and read where the folder is seen.

    `files`: where the runs are; without any file yet. `runs`: all runs, in the order of the source; at least
    one has rows. `codes`: split of each row, in the order of the source. `is_shuffled`: whether the keys of
    rows are hashes, and not their indices.
    """
    spill = Spill(files, runs[0].num_columns)
    num_rows = num_bytes = 0
    starts: list[int] = []
    for run in runs:
        if not run.num_rows:
            continue
        start = files.add(run.name, run.num_bytes)
        spill.sections += [_shift(section, start, num_rows) for section in run.sections]
        starts.append(run.first_row if starts else 0)
        num_rows += run.num_rows
        num_bytes += run.num_bytes + _ROW_BYTES * run.num_rows
    bounds = divide_keys(num_bytes, num_splits) if is_shuffled else np.array(starts, np.uint64)
    rows = SpilledRows(spill, bounds, codes, num_splits)
    spill.close()
    return rows


def _shift(section: Section, start: int, first_number: int) -> Section:
    return replace(
        section,
        keys_at=section.keys_at + start,
        headers_at=section.headers_at + start,
        bytes_at=section.bytes_at + start,
        first_number=first_number,
    )
