"""Opens files: finds them, groups them into splits, indexes each, and looks at what is in them.

In: what the caller named. Out: `OpenedFiles` with the rows of each split, and a survey of their records.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from penstock import _native
from penstock.read.naming import group_files
from penstock.read.options import ReadOptions
from penstock.read.rows import Rows
from penstock.read.saved import load_index
from penstock.read.shard import CompressedShard, Shard
from penstock.schema.survey import Survey
from penstock.storage.file import OpenFile
from penstock.storage.kept import KeptFiles
from penstock.storage.paths import PathLike, find_files
from penstock.types import Payload

# What opening looks at: all of a small data set, so that nothing in it can surprise; of a large one, stretches that are
# spread over all its files.
SURVEY_BYTES = 64 << 20
_SURVEY_STRETCHES = 64


@dataclass
class OpenedFiles:
    """The files of a data set, by split.

    Attributes:
        splits: The rows of each split.
        is_sampled: Whether the survey saw only a part of the records.
    """

    splits: Mapping[str, Rows]
    is_sampled: bool = False
    _survey: Survey | None = field(default=None, repr=False)

    @property
    def payload(self) -> Payload:
        """What the records are."""
        return self.survey().payload

    def survey(self) -> Survey:
        """Count what is in the records; done once."""
        if self._survey is None:
            counter = _native.Survey()
            total = sum(rows.frame_bytes(0, len(rows)) for rows in self.splits.values())
            self.is_sampled = total > SURVEY_BYTES
            for rows in self.splits.values():
                share = rows.frame_bytes(0, len(rows)) / total if total else 0
                for start, stop in _stretches(rows, int(SURVEY_BYTES * share) if self.is_sampled else None):
                    wanted = _sound(rows, start, stop)
                    counter.add_records(rows.segments(start, stop) if wanted is None else rows.select(wanted))
            self._survey = Survey.from_counts(counter.counts())
        return self._survey


def open_files(paths: PathLike | Iterable[PathLike], options: ReadOptions) -> OpenedFiles:
    """Find, group and index files.

    Raises:
        PenstockError: A file is not there, is missing from its set, or is no TFRecord.
    """
    files, named_singly = find_files(paths)
    groups = group_files(files, named_singly=named_singly)

    kept = KeptFiles()

    def open_one(path: Path) -> Shard:
        index = load_index(OpenFile(path), options)
        return (Shard if index.compression == "none" else CompressedShard)(path, index, kept)

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        shards = dict(zip(files, pool.map(open_one, files), strict=True))
    return OpenedFiles({name: Rows([shards[path] for path in group]) for name, group in groups.items()})


def _stretches(rows: Rows, budget_bytes: int | None) -> Iterable[tuple[int, int]]:
    """Yield ranges to look at: everything, or evenly spread ones that take about the budget."""
    if budget_bytes is None:
        yield from rows.blocks(1024, 4 << 20)
        return
    mean = max(1, rows.frame_bytes(0, len(rows)) // max(1, len(rows)))
    length = max(1, budget_bytes // _SURVEY_STRETCHES // mean)
    last = 0
    for start in np.linspace(0, max(0, len(rows) - length), _SURVEY_STRETCHES).astype(int).tolist():
        if start >= last:
            last = min(len(rows), start + length)
            yield start, last


def _sound(rows: Rows, start: int, stop: int) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """Return the rows of a range that are not known to be damaged; None if all are."""
    damaged = {row for row, _, _ in rows.damages(start, stop)}
    if not damaged:
        return None
    return np.array([row for row in range(start, stop) if row not in damaged], np.int64)
