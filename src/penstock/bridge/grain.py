"""Records of a split as a `grain.sources.RandomAccessDataSource`.

In: a split. Out: a picklable source of its samples by record number, for `grain.MapDataset.source` and
`grain.DataLoader`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex

from grain.sources import RandomAccessDataSource

from penstock.decode.sample import Sample

if TYPE_CHECKING:
    from penstock.dataset import Split


class GrainSource(RandomAccessDataSource):  # type: ignore[misc]
    """The samples of a split by record number; safe to use from several threads and processes.

    A worker process gets the path of the data set, not its records: it opens the files again, and checks that
    they have not changed. Grain writes the text of a source into checkpoints and compares it when they are
    restored, so the text identifies the content of the split.

    Attributes:
        split: The split.
        fields: Names of the fields of each sample; None for all.
    """

    def __init__(self, split: Split, fields: Iterable[str] | None = None) -> None:
        self.split = split
        self.fields = None if fields is None else (fields,) if isinstance(fields, str) else tuple(fields)
        if self.fields is not None:
            split.schema.select(self.fields)  # refuses unknown names now, not in a worker
        self._fingerprint = split.as_source().fingerprint

    def __len__(self) -> int:
        return len(self.split)

    def __getitem__(self, index: SupportsIndex) -> Sample:
        return self.split.read_sample(index, self.fields)

    def __reduce__(self) -> tuple[Any, ...]:
        return GrainSource, (self.split, self.fields)

    def __repr__(self) -> str:
        fields = "" if self.fields is None else f", fields={list(self.fields)}"
        return f"GrainSource({self.split.name!r}, {len(self)} records, {self._fingerprint}{fields})"
