"""pyarrow reading the same rows from Parquet with `iter_batches`, which keeps memory to a few batches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from readers.task import Tally, Task

# Thousands of rows per second on 1 and 2 cores, best of 4 to 10 interleaved passes on a machine that was busy
# with other things too (pyarrow 26):
#
#                                             T            S            B
#   whole row groups, cut into batches    1313  2161    501  614    29.5  29.6
#   iter_batches, memory_map               964  1147    495  670    48.9  43.9
#   iter_batches                          1008  1057    490  601    35.2  34.3
#   dataset scanner                        920  1790    197  703    13.8  30.9
#   dataset scanner, batch_readahead 4    1205  1606    489  524    31.9  22.0
#
# S on 2 cores is close: the scanner led in one of four trials, iter_batches in the other three.
READ_WHOLE_ROW_GROUPS = frozenset({"T"})


class Reader:
    """Opens the files anew for each pass, as a training job does for each epoch."""

    whole_row_groups = READ_WHOLE_ROW_GROUPS

    def __init__(self, task: Task) -> None:
        pa.set_cpu_count(task.num_cores)
        pa.set_io_thread_count(task.num_cores)
        self._task = task
        self._has_threads = task.num_cores > 1

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read file after file, by whichever way is faster for this data set."""
        by_row_group = self._task.spec.name in self.whole_row_groups
        for path in self._task.shards("parquet"):
            with pq.ParquetFile(path, memory_map=not by_row_group) as file:
                yield from self._read_groups(file) if by_row_group else self._iterate(file)

    def _read_groups(self, file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, use_threads=self._has_threads)
            yield from table.to_batches(max_chunksize=self._task.batch_size)

    def _iterate(self, file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
        yield from file.iter_batches(batch_size=self._task.batch_size, use_threads=self._has_threads)

    def touch(self, batch: pa.RecordBatch) -> Tally:
        """Look at the first value of every column, and at all labels."""
        for column in batch.columns:
            column[0]
        return Tally(batch.num_rows, int(batch.column("label").to_numpy().sum()))


class BatchesReader(Reader):
    """Never holds a whole row group."""

    whole_row_groups = frozenset()
