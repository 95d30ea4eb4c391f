"""Export of a data set to one table file.

In: TFRecords. Out: a Parquet or Arrow file, with a column that holds the split of each row. Records are
streamed, so that memory use does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.dataset import Dataset
from penstock.dataset import open as open_dataset
from penstock.decode.arrow import add_split, arrow_schema, name_split
from penstock.errors import NotTFRecordError, OptionError
from penstock.foundation.wording import show
from penstock.jobs.check.file_check import Progress
from penstock.storage.atomic import AtomicFile, ByteSink
from penstock.storage.paths import PathLike, locate
from penstock.storage.store_path import AnyPath, as_path

TABLE_SUFFIXES: Final = (".parquet", ".arrow", ".feather")


@dataclass(frozen=True)
class WrittenTable:
    """A table file that was written."""

    out: AnyPath
    num_rows: int
    num_bytes: int


def write_table(
    source: Any, out: PathLike, *, overwrite: bool = False, on_progress: Progress | None = None
) -> WrittenTable:
    """Write the records of TFRecords or a data set to a Parquet or Arrow file.

    `source`: data, as for `penstock.open`. `out`: path of the file, with the suffix `.parquet`, `.arrow` or
    `.feather`; may be in an object store. `on_progress`: called with the number of rows written and the
    total.
    """
    path = as_path(out)
    if path.suffix not in TABLE_SUFFIXES:
        raise OptionError("out", expected=f"a name that ends in {' or '.join(TABLE_SUFFIXES)}", got=path.name)
    locate(path).refuse_output(overwrite=overwrite)
    try:
        dataset = open_dataset(source)
    except NotTFRecordError as error:
        raise OptionError(
            "source",
            path=out,
            expected="TFRecords or a data set to export as a table",
            got=show(error.path),
            advice="To convert it to a data set, choose a folder as the output.",
        ) from error
    schema = add_split(arrow_schema(dataset.schema), dataset.splits)
    num_rows = 0
    with locate(path).creating(overwrite=overwrite) as file, _writer(path, file, schema) as writer:
        for batch in _batches(dataset, schema, on_progress):
            writer.write_batch(batch)
            num_rows += batch.num_rows
    return WrittenTable(path, num_rows, locate(path).find_size())


def _writer(path: AnyPath, file: AtomicFile, schema: Any) -> Any:
    sink: Any = ByteSink(file.write)
    return pq.ParquetWriter(sink, schema) if path.suffix == ".parquet" else pa.ipc.new_file(sink, schema)


def _batches(dataset: Dataset, schema: Any, on_progress: Progress | None) -> Iterator[Any]:
    total = sum(len(dataset[name]) for name in dataset.splits)
    done = 0
    for name in dataset.splits:
        for batch in dataset[name].iter_arrow():
            yield name_split(batch, name, schema)
            done += batch.num_rows
            if on_progress is not None:
                on_progress(done, total)
