"""One Arrow IPC file or stream (`.arrow`, `.feather`, `.ipc`), record batch by record batch.

In: a path. Out: its schema and its tables. Memory holds one record batch of the file at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from penstock.errors import SourceError
from penstock.source.arrowtype import open_arrow
from penstock.storage.open_file import OpenFile

_FILE_MAGIC = b"ARROW1"
_FEATHER_1_MAGIC = b"FEA1"


class IpcFile:
    """An Arrow file: the random-access form or a stream, told by its first bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.num_rows: int | None = None
        magic = OpenFile(path).read(0, len(_FILE_MAGIC))
        self._is_file = magic == _FILE_MAGIC
        if magic.startswith(_FEATHER_1_MAGIC):
            advice = "Read it with pandas.read_feather and pass the frame."
            raise SourceError("Feather of version 1 is not read", path=path, advice=advice)
        try:
            with open_arrow(path) as file:
                self.schema: pa.Schema = self._open(file).schema
        except (pa.ArrowException, OSError) as error:
            raise self._damage(error) from error

    def tables(self) -> Iterator[tuple[pa.Table, int]]:
        """Yield the rows, each table with the bytes of the file that it stands for."""
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
        """Yield the batches with the share of the file that was read with them."""
        reader = self._open(file)
        if isinstance(reader, pa.RecordBatchFileReader):
            for i in range(reader.num_record_batches):
                yield reader.get_batch(i), (i + 1) / reader.num_record_batches
        else:
            for batch in reader:
                yield batch, file.tell() / file.size()

    def _damage(self, error: Exception) -> SourceError:
        return SourceError(
            f"not a sound Arrow file ({str(error).strip().rstrip('.')})",
            path=self.path,
            advice="The file is cut, damaged, or something else; get it again.",
        )
