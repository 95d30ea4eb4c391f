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

# What opening looks at: all of a small data set, so that nothing can surprise; of a large one, stretches
# that are spread over each of its files.
SURVEY_BYTES = 64 << 20
_SURVEY_STRETCHES = 64


@dataclass
class OpenedFiles:
    """The files of a data set, by split.

    Attributes:
        splits: The rows of each split.
    """

    splits: Mapping[str, Rows]
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
            is_sample = total > SURVEY_BYTES
            for rows in (split.in_order() for split in self.splits.values()):
                for start, stop in _stretches(rows, SURVEY_BYTES / total if is_sample else 1.0):
                    wanted = _sound(rows, start, stop)
                    counter.add_records(rows.segments(start, stop) if wanted is None else rows.select(wanted))
            self._survey = Survey.from_counts(counter.counts(), is_sample=is_sample)
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


def _stretches(rows: Rows, share: float) -> Iterable[tuple[int, int]]:
    """Yield ranges to look at: everything, or a share of each file."""
    if share >= 1:
        yield from rows.blocks(1024, 4 << 20)
        return
    first = 0
    for shard in rows.shards:
        # Of a compressed file, its beginning: what lies further on must be inflated up to there.
        pieces = 1 if shard.index.compression != "none" else max(1, _SURVEY_STRETCHES // len(rows.shards))
        length = max(1, int(len(shard) * share / pieces))
        last = 0
        for start in np.linspace(0, max(0, len(shard) - length), pieces).astype(int).tolist():
            if start >= last and start < len(shard):
                last = min(len(shard), start + length)
                yield first + start, first + last
        first += len(shard)


def _sound(rows: Rows, start: int, stop: int) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """Return the rows of a range that are not known to be damaged; None if all are."""
    damaged = {row for row, _, _ in rows.damages(start, stop)}
    if not damaged:
        return None
    return np.array([row for row in range(start, stop) if row not in damaged], np.int64)
