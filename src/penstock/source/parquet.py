"""One Parquet file, row group by row group.

In: a path. Out: its schema and its tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import SourceError
from penstock.source.arrowtype import open_arrow
from penstock.source.block import BLOCK_BYTES, BLOCK_ROWS

_BUFFER_BYTES = 1 << 20  # of each column at a time: a row group may be larger than memory


class ParquetFile:
    """A Parquet file; types are those that it declares."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open_arrow(path) as source, pq.ParquetFile(source) as file:
                self.schema = file.schema_arrow
                metadata = file.metadata
        except (pa.ArrowInvalid, OSError) as error:
            raise self._damage(error) from error
        self.num_rows: int | None = metadata.num_rows
        # A row group tells how large its rows are when inflated; the largest decides for all.
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        row_bytes = max((group.total_byte_size // max(1, group.num_rows) for group in groups), default=0)
        self._batch_rows = max(1, min(BLOCK_ROWS, BLOCK_BYTES // max(1, row_bytes)))

    def tables(self) -> Iterator[tuple[pa.Table, int]]:
        """Yield the rows, each table with the bytes of the file that it stands for."""
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
            f"not a sound Parquet file ({str(error).strip().rstrip('.')})",
            path=self.path,
            advice="The file is cut, damaged, or something else; get it again.",
        )
