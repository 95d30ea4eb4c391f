"""One Parquet or Arrow IPC (Feather) file.

In: a path. Out: the schema and the tables of the file, batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import SourceError
from penstock.source.arrow_schema import open_arrow
from penstock.source.block import BLOCK_BYTES, BLOCK_ROWS
from penstock.storage.open_file import OpenFile

_BUFFER_BYTES = 1 << 20  # per column: a row group may be larger than memory


class ParquetFile:
    """A Parquet file; its columns have the types that the file declares."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open_arrow(path) as source, pq.ParquetFile(source) as file:
                self.schema = file.schema_arrow
                metadata = file.metadata
        except (pa.ArrowInvalid, OSError) as error:
            raise self._damage(error) from error
        self.num_rows: int | None = metadata.num_rows
        # The metadata of a row group give the uncompressed size of its rows; the largest determines the batch
        # size.
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        row_bytes = max((group.total_byte_size // max(1, group.num_rows) for group in groups), default=0)
        self._batch_rows = max(1, min(BLOCK_ROWS, BLOCK_BYTES // max(1, row_bytes)))

    def tables(self) -> Iterator[tuple[pa.Table, int]]:
        """Yield the rows as tables, each with the number of bytes of the file that it accounts for."""
        size = self.path.stat().st_size
        num_rows, reported = 0, 0
        try:
            with (
                open_arrow(self.path) as source,
                pq.ParquetFile(source, pre_buffer=False, buffer_size=_BUFFER_BYTES) as file,
            ):
                for batch in file.iter_batches(batch_size=self._batch_rows):
                    num_rows += batch.num_rows
                    share = size * num_rows // max(1, self.num_rows or 0) - reported
                    reported += share
                    yield pa.Table.from_batches([batch]), share
        except (pa.ArrowInvalid, OSError) as error:
            raise self._damage(error) from error

    def _damage(self, error: Exception) -> SourceError:
        return SourceError(
            f"not a valid Parquet file ({str(error).strip().rstrip('.')})",
            path=self.path,
            advice="The file is truncated, damaged or of another type; get it again.",
        )


_FILE_MAGIC = b"ARROW1"
_FEATHER_1_MAGIC = b"FEA1"


class IpcFile:
    """An Arrow IPC file in the file or the stream format, recognized by its first bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.num_rows: int | None = None
        magic = OpenFile(path).read(0, len(_FILE_MAGIC))
        self._is_file = magic == _FILE_MAGIC
        if magic.startswith(_FEATHER_1_MAGIC):
            advice = "Read it with pandas.read_feather and pass the frame."
            raise SourceError("Feather version 1 is not supported", path=path, advice=advice)
        try:
            with open_arrow(path) as file:
                self.schema: pa.Schema = self._open(file).schema
        except (pa.ArrowException, OSError) as error:
            raise self._damage(error) from error

    def tables(self) -> Iterator[tuple[pa.Table, int]]:
        """Yield the rows as tables, each with the number of bytes of the file that it accounts for."""
        size, reported = self.path.stat().st_size, 0
        try:
            with open_arrow(self.path) as file:
                for batch, share in self._batches(file):
                    position = int(size * share)
                    yield pa.Table.from_batches([batch]), position - reported
                    reported = position
        except (pa.ArrowException, OSError) as error:
            raise self._damage(error) from error

    def _open(self, file: pa.NativeFile) -> pa.RecordBatchFileReader | pa.RecordBatchStreamReader:
        return pa.ipc.open_file(file) if self._is_file else pa.ipc.open_stream(file)

    def _batches(self, file: pa.NativeFile) -> Iterator[tuple[pa.RecordBatch, float]]:
        """Yield the batches, each with the fraction of the file that was read so far."""
        reader = self._open(file)
        if isinstance(reader, pa.RecordBatchFileReader):
            for i in range(reader.num_record_batches):
                yield reader.get_batch(i), (i + 1) / reader.num_record_batches
        else:
            for batch in reader:
                yield batch, file.tell() / file.size()

    def _damage(self, error: Exception) -> SourceError:
        return SourceError(
            f"not a valid Arrow file ({str(error).strip().rstrip('.')})",
            path=self.path,
            advice="The file is truncated, damaged or of another type; get it again.",
        )
