"""Writing of predictions to a file, batch by batch: Parquet, CSV or JSON lines.

In: record batches. Out: bytes. In a CSV, cells are quoted where needed, an empty text is quoted because it is
not a missing value, and lists are JSON. Memory use does not grow with the number of rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.errors import OptionError
from penstock.foundation.wording import list_choices, show
from penstock.storage.atomic import ByteSink
from penstock.storage.store_path import AnyPath

SUFFIXES: Final = (".parquet", ".csv", ".jsonl")
_GROUP_ROWS: Final = 1 << 16
_GROUP_BYTES: Final = 16 << 20
_QUOTED: Final = frozenset('",\r\n')

Write: TypeAlias = Callable[[bytes | memoryview], None]


class BatchWriter:
    """Writes record batches of one schema; most formats need nothing at their end."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows."""
        raise NotImplementedError

    def close(self) -> None:
        """Write the remaining rows and the end of the file."""

    def abandon(self) -> None:
        """Stop writing after an error."""


def check_suffix(path: AnyPath) -> str:
    """Return the suffix of the name of an output file."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise OptionError(
            "out",
            field="out",
            path=path,
            expected=f"a name that ends in {list_choices(SUFFIXES)}",
            got=show(path.name),
            advice=f"For example: {str(path.with_name(f'{path.stem}.parquet'))!r}.",
        )
    return suffix


@contextmanager
def open_writer(suffix: str, schema: pa.Schema, write: Write) -> Iterator[BatchWriter]:
    """Open a writer for the format of a suffix; after an error, it writes nothing more."""
    writer = _make_writer(suffix, schema, write)
    try:
        yield writer
        writer.close()
    except BaseException:
        writer.abandon()
        raise


def _make_writer(suffix: str, schema: pa.Schema, write: Write) -> BatchWriter:
    if suffix == ".parquet":
        return ParquetRows(schema, write)
    for field in schema:
        if pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type):
            raise OptionError(
                f"column {show(field.name)}",
                field=field.name,
                expected="text, numbers or lists of them",
                got="bytes",
                advice="Write a '.parquet' file, or do not keep the column.",
            )
    return CsvRows(schema, write) if suffix == ".csv" else JsonRows(write)


class ParquetRows(BatchWriter):
    """Writer of a Parquet file with row groups of about 65,536 rows."""

    def __init__(self, schema: pa.Schema, write: Write) -> None:
        self._schema = schema
        self._sink = ByteSink(write)
        self._writer = pq.ParquetWriter(self._sink, schema)  # type: ignore[arg-type]
        self._held: list[pa.RecordBatch] = []
        self._num_rows = self._num_bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows."""
        self._held.append(batch)
        self._num_rows += batch.num_rows
        self._num_bytes += batch.nbytes
        if self._num_rows >= _GROUP_ROWS or self._num_bytes >= _GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        """Write the remaining rows and the footer."""
        if self._held:
            self._flush()
        self._writer.close()

    def abandon(self) -> None:
        """Close the writer without writing its footer."""
        self._sink.is_open = False
        self._writer.close()

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._held, self._schema)
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._held.clear()
        self._num_rows = self._num_bytes = 0


class CsvRows(BatchWriter):
    """Writer of a CSV file with a header."""

    def __init__(self, schema: pa.Schema, write: Write) -> None:
        self._write = write
        self._write(_line(map(_quote, schema.names)))

    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows."""
        columns = [_write_cells(column) for column in batch.columns]
        self._write(b"".join(_line(cells) for cells in zip(*columns, strict=True)))


class JsonRows(BatchWriter):
    """Writer of JSON lines: one object per row."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows."""
        names = batch.schema.names
        columns = [[_plain(value) for value in _shortest(column)] for column in batch.columns]
        lines = (
            json.dumps(dict(zip(names, values, strict=True)), ensure_ascii=False, default=str)
            for values in zip(*columns, strict=True)
        )
        self._write(b"".join(f"{line}\n".encode("utf-8", "backslashreplace") for line in lines))


def _write_cells(column: Any) -> list[str]:
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        return ["" if text is None else text for text in pc.cast(column, pa.string()).to_pylist()]
    if pa.types.is_nested(kind):
        values = [
            None if value is None else json.dumps(_plain(value), default=str) for value in _shortest(column)
        ]
        return ["" if value is None else _quote(value) for value in values]
    return ["" if value is None else _quote(_word(value)) for value in column.to_pylist()]


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quote(text: str) -> str:
    if text and _QUOTED.isdisjoint(text) and text == text.strip():
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def _line(cells: Iterable[str]) -> bytes:
    return f"{','.join(cells)}\n".encode("utf-8", "backslashreplace")


def _shortest(column: Any) -> list[Any]:
    """Return Python values; a float32 becomes the float64 with its shortest decimal digits."""
    if pa.types.is_float32(column.type):
        texts = pc.cast(column, pa.string()).to_pylist()
        return [None if text is None else float(text) for text in texts]
    if pa.types.is_fixed_size_list(column.type) and pa.types.is_float32(column.type.value_type):
        size = column.type.list_size
        flat = _shortest(column.flatten())
        return [flat[at : at + size] for at in range(0, len(flat), size)]
    return list(column.to_pylist())


def _plain(value: Any) -> Any:
    """Return a value for JSON, with None instead of NaN and infinity, which JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return [_plain(each) for each in value] if isinstance(value, list) else value
