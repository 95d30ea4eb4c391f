"""The readers that are measured against each other: which there are, and which data sets each of them reads.

In: nothing. Out: `ENTRIES`, in the order of the table. A reader is imported only in the process that runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Entry:
    """One row of the table.

    Attributes:
        name: What the row is called, here and on the command line.
        path: The module and class of this package: its `Reader` does the work.
        title: One line for people.
        reads: By the data set of the table, the data set that is read.
        field_names: The fields to read; None means all.
        most_records: By the data set of the table, how many records a slow reader gets.
        needs: A package that is not there on every machine.
    """

    name: str
    path: str
    title: str
    reads: Mapping[str, str] = field(default_factory=lambda: {"T": "T", "S": "S", "B": "B"})
    field_names: tuple[str, ...] | None = None
    most_records: Mapping[str, int] = field(default_factory=dict)
    needs: str = ""


ENTRIES = (
    Entry("penstock", "penstock_columns.Reader", "Penstock, all fields"),
    Entry(
        "penstock-4-of-40",
        "penstock_columns.Reader",
        "Penstock, 4 of 40 fields",
        {"T": "T"},
        ("f03", "f09", "label", "s04"),
    ),
    Entry("penstock-shuffled", "penstock_columns.Reader", "Penstock, random key order", {"T": "T-shuffled"}),
    Entry("tf-interleaved", "tfdata.InterleavedReader", "tf.data, tuned, shards interleaved"),
    Entry("tf-tuned", "tfdata.TunedReader", "tf.data, tuned, shards in order"),
    Entry(
        "tf-tutorial",
        "tfdata.TutorialReader",
        "tf.data, as tutorials write it",
        most_records={"T": 50_000, "S": 50_000},
    ),
    Entry(
        "tfrecord",
        "tfrecord_package.Reader",
        "tfrecord (PyPI)",
        most_records={"T": 4_000, "S": 4_000, "B": 4_000},
        needs="tfrecord",
    ),
    Entry("pyarrow", "parquet.Reader", "pyarrow, same rows as Parquet"),
    Entry("pyarrow-batches", "parquet.BatchesReader", "pyarrow, the same by iter_batches", {"T": "T"}),
)
BASELINE = "penstock"
