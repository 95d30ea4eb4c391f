"""One or several files with the same columns as one source.

In: paths. Out: blocks, each of one file, and the provenance of the files for the manifest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa

from penstock.errors import OutOfMemoryError, SourceError
from penstock.foundation.wording import show
from penstock.schema.declaration import Representation
from penstock.schema.field import Field
from penstock.settings.groups import TextFiles
from penstock.source.archive import UnpackedTable, is_packed
from penstock.source.arrow_files import IpcFile, ParquetFile
from penstock.source.arrow_schema import (
    check_names,
    declare_schema,
    plain_schema,
    read_carried,
    to_column,
)
from penstock.source.block import Block, LazyColumns, RawColumn
from penstock.source.csv import CsvFile
from penstock.source.csv_ranges import CsvRange
from penstock.source.cutter import BlockRows, cut_tables
from penstock.source.file_digests import FileDigests
from penstock.source.jsonl import JsonlFile
from penstock.source.read_ahead import read_ahead
from penstock.source.recognition import FileKind, find_kind, is_packed_name, split_member
from penstock.source.table_copy import TableCopy, is_spooled, naming_originals
from penstock.source.webdataset import KEY, WebDatasetFile, share_columns
from penstock.storage.open_file import FileIdentity, OpenFile
from penstock.storage.paths import write_name
from penstock.storage.request_threads import call_all
from penstock.storage.store_path import AnyPath, as_pure_path, is_url


class TableFile(Protocol):
    """One file of rows."""

    path: Path
    num_rows: int | None

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""

    def tables(self) -> Iterator[tuple[pa.Table, int]]:
        """Yield the rows as tables, each with the number of bytes of the file that it accounts for."""


def _open_excel(path: Path, options: TextFiles) -> TableFile:
    # Loaded late: for such files alone.
    from penstock.source.excel import ExcelFile  # noqa: PLC0415

    return ExcelFile(path, options)


READERS: Final[dict[FileKind, Callable[[Path, TextFiles], TableFile]]] = {
    "csv": CsvFile,
    "jsonl": JsonlFile,
    "parquet": lambda path, _: ParquetFile(path),
    "arrow": lambda path, _: IpcFile(path),
    "excel": _open_excel,
    "tar": lambda path, _: WebDatasetFile(path),
}
"""What opens a file of each kind in `recognition.FORMATS`."""


def open_file(path: Path, options: TextFiles) -> TableFile:
    """Open one file of rows."""
    return READERS[find_kind(path, options)](path, options)


_READ_AHEAD: Final = 4 << 20  # smaller files are read in the thread that needs their rows
_RANGES_AHEAD: Final = 16  # numbers, not rows
_BLOCKS_AHEAD: Final = 2
_HASHED_AHEAD: Final = 1 << 20  # smaller files are hashed in less time than a thread takes to begin


class FilesSource:
    """Files of rows, in the given order.

    All files must have the columns of the first file, in any order. JSON lines files may lack columns: a
    field that no line of a file has is missing there. Different types become their common type, if there is
    one.

    Attributes:
        is_csv: Whether all files are CSV files, in which the texts of `TextFiles.missing` are already
            null.
    """

    is_repeatable = True

    def __init__(
        self,
        paths: Sequence[AnyPath],
        options: TextFiles,
        name: str | None = None,
        declared: Mapping[str, Field] | None = None,
        forms: Mapping[str, Representation] | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.name = name or (paths[0].name if len(paths) == 1 else f"{len(paths)} files")
        self.declared: Mapping[str, Field] = declared or {}
        self.forms: Mapping[str, Representation] = forms or {}
        self._notes = notes
        self._is_deferred = False
        self._rows: dict[Path, int] = {}
        self._paths = list(paths)
        for path in paths:  # before the first of them is copied
            if is_url(path) and not is_packed_name(path.name):
                find_kind(path, options)
        self._copies = [TableCopy(path) for path in paths]
        self._originals = {str(copy.file): str(copy.path) for copy in self._copies if copy.is_copy}
        with naming_originals(self._originals):
            self._unpack([copy.file for copy in self._copies])
        self._originals |= {
            str(each.file): str(path)
            for each, path in zip(self._unpacked, paths, strict=True)
            if each is not None
        }
        with naming_originals(self._originals):
            self._open(options)

    def _unpack(self, paths: Sequence[Path]) -> None:
        self._stored = [split_member(path)[0] for path in paths]
        self._identities = [OpenFile(path).identity for path in self._stored]
        self._digests = FileDigests(self._stored)
        self._unpacked = [UnpackedTable(path) if is_packed(path) else None for path in paths]

    def _open(self, options: TextFiles) -> None:
        tables = zip(self._stored, self._unpacked, strict=True)
        self._files = [open_file(path if each is None else each.file, options) for path, each in tables]
        share_columns(self._files)
        self.is_csv = all(isinstance(file, CsvFile) for file in self._files)
        if not any(isinstance(file, JsonlFile) for file in self._files):
            _ = self.schema  # raises early for files that do not match; JSON lines must be read first
            first = self._files[0].schema
            self.declared = {**declare_schema(first), **self._read_declared(), **self.declared}

    def _read_declared(self) -> dict[str, Field]:
        """Return the fields that the files themselves declare, if all files have the same ones."""
        first, *others = [
            file.declared if isinstance(file, WebDatasetFile) else read_carried(file.schema)
            for file in self._files
        ]
        return first if all(other == first for other in others) else {}

    @property
    def num_bytes(self) -> int | None:
        """Total size of all files."""
        return sum(identity.size for identity in self._identities)

    @property
    def num_rows(self) -> int | None:
        """Number of rows of all files, or None if not known yet."""
        counts = [self._rows.get(file.path, file.num_rows) for file in self._files]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about headers, files that were given twice, and cells that lost their values."""
        tables = [file for file in self._files if isinstance(file, CsvFile)]
        of_headers = (note for file in tables for note in file.notes)
        return (*self._notes, *self._gather_notes("dialect_notes"), *of_headers, *self.cautions)

    @property
    def cautions(self) -> tuple[str, ...]:
        """Notes about cells that lost their values, once the files were read."""
        return self._gather_notes("cautions")

    def _gather_notes(self, attribute: str) -> tuple[str, ...]:
        """Return notes of files, each once and with the names of its files."""
        found: dict[str, list[str]] = {}
        for file in self._files:
            for note in getattr(file, attribute, ()):
                found.setdefault(note, []).append(file.path.name)
        return tuple(f"{_list_files(names)}: {note}." for note, names in found.items())

    @cached_property
    def schema(self) -> pa.Schema:
        """Schema of all files."""
        if all(isinstance(file, JsonlFile) for file in self._files):
            schema = pa.schema([])
        else:
            schema = _plain_schema(self._files[0])
        if len(self._files) == 1 and schema.names:
            return schema
        for file in self._files:
            found = _plain_schema(file)
            if not isinstance(file, JsonlFile):
                _check_columns(file.path, found.names, schema.names, self._files[0].path)
            schema = _unify(schema, found, file.path)
        return schema

    def defer_columns(self) -> None:
        """Let the threads that need the columns of a block read them, where that is possible."""
        self._is_deferred = True

    def blocks(self) -> Iterator[Block]:
        """Yield the rows of one file after the other."""
        with naming_originals(self._originals):
            yield from self._read()

    def _read(self) -> Iterator[Block]:
        schema = self.schema
        if not schema.names and self.num_rows != 0:
            raise SourceError("no columns", path=self._files[0].path, expected="at least one", got="none")
        first_row = 0
        origins = zip(self._files, self._identities, self._copies, self._stored, strict=True)
        for file, identity, copy, stored in origins:
            path, origin, row_in_file = file.path, copy.path, 0
            share = identity.size / max(1, path.stat().st_size)  # of an unpacked file, less than 1
            _check_untouched(stored, identity)
            for piece in _name_row_without_memory(path, self._cut(file, schema, stored, identity)):
                yield Block(
                    first_row,
                    piece.num_rows,
                    piece.columns,
                    path=str(origin),
                    row_in_file=row_in_file,
                    copy=None if path == origin else str(path),
                    folder=_find_folder(copy, stored),
                    num_bytes=piece.num_bytes if path == stored else int(piece.num_bytes * share),
                    # The author of an archive must not choose which files of this machine are read.
                    reads_files=not isinstance(file, WebDatasetFile),
                    key=KEY if isinstance(file, WebDatasetFile) else None,
                )
                first_row += piece.num_rows
                row_in_file += piece.num_rows
            _check_untouched(stored, identity)
            self._rows[path] = row_in_file
        if not first_row:
            raise self._refuse_empty()

    def _cut(
        self, file: TableFile, schema: pa.Schema, stored: Path, identity: FileIdentity
    ) -> Iterator[BlockRows]:
        """Yield the rows of a file as blocks; `stored` is the file, or the archive that it comes from."""
        num_rows = num_bytes = 0
        if isinstance(file, CsvFile) and self.is_csv:
            ranges = file.ranges()
            for found in read_ahead(ranges, _RANGES_AHEAD) if identity.size >= _READ_AHEAD else ranges:
                if found is None:
                    break
                columns = LazyColumns(schema.names, partial(self._parse, file, found, stored, identity))
                if not self._is_deferred:
                    columns.load()
                yield BlockRows(columns, found.num_rows, found.end - num_bytes, is_copy=True)
                num_rows += found.num_rows
                num_bytes = found.end
            else:
                return
        pieces = cut_tables(_leave_out(_as_schema(file, schema), num_rows, num_bytes))
        is_ahead = isinstance(file, CsvFile | ParquetFile | IpcFile) and identity.size >= _READ_AHEAD
        yield from read_ahead(pieces, _BLOCKS_AHEAD) if is_ahead else pieces

    def _parse(
        self, file: CsvFile, found: CsvRange, stored: Path, identity: FileIdentity
    ) -> dict[str, RawColumn]:
        """Return the columns of a range of a CSV file; any thread can call it, at any time."""
        with naming_originals(self._originals):
            try:
                table = file.parse(found)
            finally:
                if stored == file.path:
                    found.file.check_untouched(identity)
            return {name: to_column(table.column(name)) for name in self.schema.names}

    def _refuse_empty(self) -> SourceError:
        file = self._files[0]
        what, advice = "no rows", ""
        if len(self._files) == 1 and isinstance(file, CsvFile) and file.header.cells:
            names = ", ".join(map(show, file.header.cells[:3])) + (
                ", …" if len(file.header.cells) > 3 else ""
            )
            what = f"no rows after the first line, which is read as column names ({names})"
            advice = "If that line is a row, use `header='none'`."
        return SourceError(what, path=file.path, expected="at least one row", got="none", advice=advice)

    def hash_ahead(self) -> None:
        """Begin to hash the files for `provenance`, in a thread, while their rows are read."""
        if (self.num_bytes or 0) >= _HASHED_AHEAD:
            self._digests.begin()

    def provenance(self) -> list[dict[str, Any]]:
        """Return name, size, SHA-256 and rows of each file; hashing reads each file once."""
        for _ in call_all([copy.check_unchanged for copy in self._copies if copy.is_copy]):
            pass
        return [
            {
                "name": name,
                "bytes": identity.size,
                "sha256": self._digest(stored, identity),
                "rows": self._rows.get(file.path, file.num_rows),
            }
            for name, file, stored, identity in zip(
                _relative_names(self._paths), self._files, self._stored, self._identities, strict=True
            )
        ]

    def _digest(self, path: Path, identity: FileIdentity) -> str:
        digest = self._digests.find(path)
        _check_untouched(path, identity)
        return digest


def _check_untouched(path: Path, identity: FileIdentity) -> None:
    OpenFile(path).check_untouched(identity)


def _leave_out(
    tables: Iterator[tuple[pa.Table, int]], num_rows: int, num_bytes: int
) -> Iterator[tuple[pa.Table, int]]:
    """Yield tables without their first rows, and their sizes without the first bytes."""
    position = 0
    for table, size in tables:
        position += size
        known = min(num_rows, table.num_rows)
        num_rows -= known
        if known < table.num_rows:
            yield table.slice(known), max(0, position - num_bytes)
            num_bytes = max(position, num_bytes)


def _find_folder(table: TableCopy, stored: Path) -> str:
    """Return the folder of a table: of an archive for its member, the working folder for standard input."""
    if is_spooled(stored):
        return str(Path.cwd())
    return str(table.path.parent if table.is_copy else stored.parent)


def _list_files(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _name_row_without_memory(path: Path, pieces: Iterator[BlockRows]) -> Iterator[BlockRows]:
    """Yield the blocks of a file; an error for lack of memory names the row."""
    num_rows = 0
    try:
        for piece in pieces:
            yield piece
            num_rows += piece.num_rows
    except MemoryError:
        what = f"row {num_rows + 1} or a later row does not fit into memory"
        raise OutOfMemoryError(what, path=path, advice="Use a machine with more memory.") from None


def _plain_schema(file: TableFile) -> pa.Schema:
    check_names(file.schema.names, str(file.path))
    return plain_schema(file.schema).remove_metadata()


def _check_columns(path: Path, found: Sequence[str], expected: Sequence[str], first: Path) -> None:
    there, wanted = set(found), set(expected)
    if there == wanted:
        return
    lacking = [name for name in expected if name not in there]
    extra = [name for name in found if name not in wanted]
    parts = [f"lacks {_list(lacking)}"] if lacking else []
    parts += [f"also has {_list(extra)}"] if extra else []
    raise SourceError(
        "columns",
        path=path,
        field=(lacking or extra)[0],
        expected=f"those of {first}",
        got=f"a file that {' and '.join(parts)}",
        advice="Convert files with other columns separately.",
    )


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:5]))
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def _unify(schema: pa.Schema, found: pa.Schema, path: Path) -> pa.Schema:
    try:
        return pa.unify_schemas([schema, found], promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        for field in found:
            index = schema.get_field_index(field.name)
            if index < 0:
                continue
            try:
                pa.unify_schemas(
                    [pa.schema([schema.field(index)]), pa.schema([field])], promote_options="permissive"
                )
            except (pa.ArrowTypeError, pa.ArrowInvalid):
                raise SourceError(
                    f"column {show(field.name)}",
                    path=path,
                    field=field.name,
                    expected=f"{schema.field(index).type}, as in the previous files",
                    got=field.type,
                    advice="Use one type for the column in all files.",
                ) from None
        raise


def _as_schema(file: TableFile, schema: pa.Schema) -> Iterator[tuple[pa.Table, int]]:
    """Yield the tables of a file, converted to the common schema."""
    for table, num_bytes in file.tables():
        if table.schema.equals(schema):
            yield table, num_bytes
            continue
        columns = []
        for field in schema:
            index = table.schema.get_field_index(field.name)
            if index < 0:
                columns.append(pa.chunked_array([pa.nulls(table.num_rows, field.type)]))
            else:
                columns.append(_as_type(table.column(index), field, file.path))
        yield pa.Table.from_arrays(columns, schema=schema), num_bytes


def _as_type(column: Any, field: Any, path: Path) -> Any:
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as error:
        raise SourceError(
            f"column {show(field.name)}", path=path, field=field.name, expected=field.type, got=str(error)
        ) from None


def _relative_names(paths: Sequence[AnyPath]) -> list[str]:
    if len(paths) == 1:
        return [write_name(paths[0].name)]
    absolute = [as_pure_path(path) for path in paths]
    folder = os.path.commonpath([path.parent for path in absolute])
    return [write_name(path.relative_to(folder).as_posix()) for path in absolute]
