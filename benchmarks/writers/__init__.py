"""The writers that are measured against each other: which there are, and what each of them is given.

In: nothing. Out: `ENTRIES`, in the order of the table. A writer is imported only in the process that runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sources import RawSource

IN_MEMORY = ("T", "S", "B")
QUICK_SHARE = 10
ALL = (*IN_MEMORY, "csv", "parquet", "images")


@dataclass(frozen=True)
class Entry:
    """One row of the table.

    Attributes:
        name: What the row is called, here and on the command line.
        path: The module and class of this package: its `Writer` does the work.
        title: One line for people.
        writes: The materials it is given.
        spreads: Materials that are also measured on more than one core.
        most_records: By source, how many records a slow writer gets.
        variant: The form of columns in memory.
        has_labels: Whether what it writes are records, whose labels can be read back.
        needs: A package that is not there on every machine.
    """

    name: str
    path: str
    title: str
    writes: tuple[str, ...] = ALL
    spreads: tuple[str, ...] = ()
    most_records: Mapping[str, int] = field(default_factory=dict)
    variant: str = "arrays"
    has_labels: bool = True
    needs: str = ""

    def limit(self, raw: RawSource) -> int:
        """Return how many records it writes; a smoke test spares it even more."""
        most_records = self.most_records.get(raw.name)
        if most_records is None:
            return raw.num_records
        return min(raw.num_records, most_records // QUICK_SHARE if raw.is_quick else most_records)


ENTRIES = (
    Entry("penstock", "penstock_convert.Writer", "Penstock", spreads=("T", "B", "images")),
    Entry(
        "penstock-lists",
        "penstock_convert.Writer",
        "Penstock, from Python lists",
        ("T", "S"),
        variant="lists",
    ),
    Entry(
        "tf-tutorial",
        "tf_examples.TutorialWriter",
        "tf.train.Example, as tutorials write it",
        most_records={"T": 20_000, "S": 50_000, "csv": 20_000, "parquet": 20_000},
    ),
    Entry(
        "tf-filled",
        "tf_examples.FilledWriter",
        "tf.train.Example, filled in place",
        most_records={"T": 50_000, "S": 100_000, "csv": 50_000, "parquet": 50_000},
    ),
    Entry(
        "tfrecord",
        "tfrecord_package.Writer",
        "tfrecord (PyPI)",
        (*IN_MEMORY, "images"),
        most_records={"T": 10_000, "S": 20_000, "B": 10_000},
        needs="tfrecord",
    ),
    Entry(
        "tfds",
        "tfds_builder.Writer",
        "TensorFlow Datasets, a builder",
        (*IN_MEMORY, "images"),
        most_records={"T": 4_000, "S": 10_000, "B": 4_000, "images": 2_000},
        needs="tensorflow_datasets",
    ),
    Entry("copy", "copies.CopyWriter", "cp -r of the shards; of the images", has_labels=False),
    Entry("stream", "copies.StreamWriter", "write + fsync of as many bytes", has_labels=False),
)
BASELINE = "penstock"
