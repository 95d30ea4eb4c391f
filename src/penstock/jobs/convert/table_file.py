"""The way back: the records of a data set as one table in a file.

In: TFRecords. Out: a Parquet or Arrow file, with a column that names the split of each row. Records stream:
memory does not grow with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.dataset import Dataset
from penstock.dataset import open as open_dataset
from penstock.decode.arrow import add_split, arrow_schema, name_split
from penstock.errors import NotTFRecordError, OptionError
from penstock.foundation.wording import show
from penstock.jobs.check.read_progress import Progress
from penstock.storage.atomic import AtomicFile, refuse_existing
from penstock.storage.paths import PathLike

TABLE_SUFFIXES: Final = (".parquet", ".arrow", ".feather")


@dataclass(frozen=True)
class WrittenTable:
    """A table that was written."""

    out: Path
    num_rows: int
    num_bytes: int


def write_table(
    source: Any, out: PathLike, *, overwrite: bool = False, on_progress: Progress | None = None
) -> WrittenTable:
    """Write the records of TFRecords or a data set to a Parquet or Arrow file.

    Args:
        source: What `penstock.open` takes.
        out: The file; its name ends in `.parquet`, `.arrow` or `.feather`.
        overwrite: Whether a file that is there may be replaced.
        on_progress: Is told how far it has come.

    Raises:
        OptionError: The name ends otherwise.
        PathError: The file is there already.
        WriteError: The disk is full, or fails.
    """
    path = Path(out)
    if path.suffix not in TABLE_SUFFIXES:
        raise OptionError("out", expected=f"a name that ends in {' or '.join(TABLE_SUFFIXES)}", got=path.name)
    if not overwrite:
        refuse_existing(path)
    try:
        dataset = open_dataset(source)
    except NotTFRecordError as error:
        raise OptionError(
            "source",
            path=out,
            expected="TFRecords or a data set, which go back to a table",
            got=show(error.path),
            advice="To make a data set of it, name a folder as the output.",
        ) from error
    schema = add_split(arrow_schema(dataset.schema), dataset.splits)
    num_rows = 0
    with AtomicFile(path, overwrite=overwrite) as file, _writer(path, file, schema) as writer:
        for batch in _batches(dataset, schema, on_progress):
            writer.write_batch(batch)
            num_rows += batch.num_rows
    return WrittenTable(path, num_rows, path.stat().st_size)


def _writer(path: Path, file: AtomicFile, schema: Any) -> Any:
    sink = pa.PythonFile(_Sink(file.write), "w")  # type: ignore[arg-type]
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


class _Sink:
    """What pyarrow writes to: a file object over an `AtomicFile`."""

    closed = False

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._num_bytes = 0

    def write(self, data: Any) -> int:
        """Append bytes."""
        view = memoryview(data).cast("B")
        self._write(view)  # type: ignore[arg-type]
        self._num_bytes += len(view)
        return len(view)

    def tell(self) -> int:
        """Return how many bytes came so far."""
        return self._num_bytes

    def writable(self) -> bool:
        """Say that it is."""
        return True

    def readable(self) -> bool:
        """Say that it is not."""
        return False

    def seekable(self) -> bool:
        """Say that it is not."""
        return False

    def flush(self) -> None:
        """Do nothing: every byte is passed on at once."""

    def close(self) -> None:
        """Do nothing: the file is closed by whoever opened it."""
