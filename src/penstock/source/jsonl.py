"""One JSON file, plain or compressed: one object per line, or a document with an array of objects.

In: a path. Out: tables of one schema for the whole file. A first pass finds the types, so that a field with 3
in the first line and 2.5 in the last line has one type; a field that a line lacks is missing there.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.json

from penstock.errors import SourceError
from penstock.foundation.json_text import MAX_DEPTH, find_deep
from penstock.foundation.wording import show
from penstock.settings.groups import TextFiles
from penstock.source.arrow_schema import check_names
from penstock.source.json_document import JsonLayout, find_layout, split_rows
from penstock.source.text_file import BYTE_ORDER_MARK, TextFile

MAX_LINE_BYTES = 256 << 20
_PIECE_BYTES = 8 << 20
_HUGE = 2.0**63
_MAX_DIGITS = 100  # of an int: far more than 64 bits have
_LINE_SUFFIXES = (".jsonl", ".ndjson")


class LineChunk(NamedTuple):
    """Complete lines: their bytes, and the line number and byte offset of the first one."""

    data: bytes
    line: int
    offset: int


def read_layout(text: TextFile) -> JsonLayout:
    """Return where the rows of a JSON file are; a file named like JSON lines has no objects around them."""
    layout = JsonLayout()
    with closing(text.chunks()) as chunks:
        if not any(suffix.lower() in _LINE_SUFFIXES for suffix in text.path.suffixes):
            layout = find_layout(chunks, text.path)
        else:
            start = next(chunks, b"").removeprefix(BYTE_ORDER_MARK).lstrip()
            layout = find_layout([start], text.path) if start.startswith(b"[") else layout
    return layout


class LineParser:
    """Parses lines with one JSON object each; errors name the line.

    Attributes:
        path: File of the lines, for errors.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def extend_schema(self, schema: pa.Schema, piece: LineChunk) -> tuple[pa.Schema, int]:
        """Return a schema that also has the columns of more lines, and the number of lines that are rows."""
        self._check_depth(piece)
        table = self.parse(piece, None)
        self._check_numbers(table, piece)
        found = pa.schema([field.with_type(_text_for_dates(field.type)) for field in table.schema])
        try:
            return pa.unify_schemas([schema, found], promote_options="permissive"), table.num_rows
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            self.parse(piece, schema)  # raises an error that names the line
            raise SourceError(str(error), path=self.path, line=piece.line) from error

    def parse(self, piece: LineChunk, schema: pa.Schema | None) -> pa.Table:
        """Return the rows of lines, with the columns of a schema or with those that the lines have."""
        data = piece.data.removeprefix(BYTE_ORDER_MARK) if piece.offset == 0 else piece.data
        if not data.strip():
            return pa.schema([] if schema is None else schema).empty_table()
        try:
            return pyarrow.json.read_json(
                io.BytesIO(data),
                read_options=pyarrow.json.ReadOptions(block_size=len(data) + 1),
                parse_options=pyarrow.json.ParseOptions(
                    explicit_schema=schema,
                    unexpected_field_behavior="infer" if schema is None else "ignore",
                ),
            )
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise self._explain(piece, str(error)) from None

    def _explain(self, piece: LineChunk, reason: str) -> SourceError:
        """Return the error of the first line that is not a JSON object, or of the line that pyarrow names."""
        for line, text in _lines(piece):
            if fault := self._check_line(text, line):
                return fault
        lines = [line for line, _ in _lines(piece)]
        row = re.search(r" in row (\d+)", reason)
        line = lines[min(int(row[1]), len(lines) - 1)] if row and lines else piece.line
        change = re.search(r"Column\(/(.*)\) changed from (\w+) to (\w+)", reason)
        if change is None:
            return SourceError(f"not valid JSON ({reason.rstrip('.')})", path=self.path, line=line)
        return SourceError(
            f"field {show(change[1])}",
            path=self.path,
            line=line,
            field=change[1],
            expected=f"a {change[2]}, as in the lines before",
            got=f"a {change[3]}",
            advice="Use one kind of value for the field in every line.",
        )

    def _check_line(self, text: bytes, line: int) -> SourceError | None:
        try:
            value = json.loads(text, parse_int=_parse_int)
        except ValueError as error:
            reason = (
                str(error).split(":")[0].lower() if isinstance(error, json.JSONDecodeError) else str(error)
            )
            return SourceError(
                "not valid JSON",
                path=self.path,
                line=line,
                expected="one JSON object per line",
                got=f"a parse error ({reason})",
            )
        if isinstance(value, dict):
            return None
        advice = 'Write each row as an object: {"name": value, …}.'
        got = {list: "an array", str: "a string", type(None): "null"}.get(type(value), "a number")
        return SourceError(
            "not a JSON object",
            path=self.path,
            line=line,
            expected="one JSON object per line",
            got=got,
            advice=advice,
        )

    def _check_depth(self, piece: LineChunk) -> None:
        num_before = find_deep(piece.data)
        if num_before is None:
            return
        deep = piece.line + num_before
        for line, text in _lines(piece):
            if line < deep and (fault := self._check_line(text, line)):  # an unclosed list
                raise fault
        raise SourceError(
            "depth of the line",
            path=self.path,
            line=deep,
            expected=f"at most {MAX_DEPTH} levels of nested lists and objects",
            got="more",
            advice="Flatten the values.",
        )

    def _check_numbers(self, table: pa.Table, piece: LineChunk) -> None:
        """Raise an error for an int outside int64 and a float beyond float64.

        pyarrow would turn the column of the int into floats, and reads a float of many digits as infinite.
        """
        for name in table.column_names:
            if not any(_holds_huge(chunk) for chunk in table.column(name).chunks):
                continue
            for line, text in _lines(piece):
                value = json.loads(text, parse_int=_parse_int, parse_float=_parse_float).get(name)
                huge = _find_huge(value)
                if huge is not None:
                    is_float = isinstance(huge, str)
                    raise SourceError(
                        f"field {show(name)}",
                        path=self.path,
                        line=line,
                        field=name,
                        expected="a number within the range of float64"
                        if is_float
                        else "a signed 64-bit integer",
                        got=huge,
                        advice="Write it as a string."
                        if is_float
                        else "Write it as a string, or as a float.",
                    )


class JsonlFile:
    """A file with one JSON object per line, or with an array of objects; blank lines are skipped.

    Attributes:
        path: The file.
        num_rows: Number of rows, once the schema is known.
    """

    def __init__(self, path: Path, options: TextFiles) -> None:
        self.path = path
        self.num_rows: int | None = None
        self._parser = LineParser(path)
        self._text = TextFile(path, options.encoding)
        self._layout = read_layout(self._text)
        self.dialect_notes = (self._layout.note,) if self._layout.note else ()

    @cached_property
    def schema(self) -> pa.Schema:
        """The fields of all lines, in the order in which they appear, each of one type."""
        with self._naming_items():
            return self._find_schema()

    def _find_schema(self) -> pa.Schema:
        schema = pa.schema([])
        num_rows = 0
        for piece in self._pieces():
            self._check_text(piece)
            schema, num_found = self._parser.extend_schema(schema, piece)
            num_rows += num_found
        self.num_rows = num_rows
        check_names(schema.names, str(self.path))
        return schema

    def tables(self) -> Iterator[tuple[pa.Table, int]]:
        """Yield the rows as tables, each with the number of bytes of the file that it accounts for."""
        schema = self.schema
        reported = 0
        with self._naming_items():
            for piece in self._pieces():
                share = max(0, self._text.position - reported)
                reported += share
                yield self._parser.parse(piece, schema), share

    @contextmanager
    def _naming_items(self) -> Iterator[None]:
        """Let errors name the items of an array instead of lines."""
        try:
            yield
        except SourceError as error:
            if self._layout.start is not None and error.line is not None:
                error.row, error.line, error.offset = error.line, None, None
                error.args = (str(error),)
            raise

    def _lines(self) -> Iterator[bytes]:
        chunks = self._text.chunks()
        return chunks if self._layout.start is None else split_rows(chunks, self._layout, self.path)

    def _pieces(self) -> Iterator[LineChunk]:
        pending = b""
        line, offset = 1, 0
        for chunk in self._lines():
            pending += chunk
            if len(pending) < _PIECE_BYTES:
                continue
            end = pending.rfind(b"\n") + 1
            if end:
                yield LineChunk(pending[:end], line, offset)
                line, offset = line + pending.count(b"\n", 0, end), offset + end
                pending = pending[end:]
            elif len(pending) > MAX_LINE_BYTES:
                raise SourceError(
                    "length of the line",
                    path=self.path,
                    line=line,
                    expected=f"at most {MAX_LINE_BYTES >> 20} MiB",
                    got="more",
                    advice="Write one JSON object per line.",
                )
        if pending:
            yield LineChunk(pending, line, offset)

    def _check_text(self, piece: LineChunk) -> None:
        try:
            piece.data.decode()
        except UnicodeDecodeError as error:
            line = piece.line + piece.data.count(b"\n", 0, error.start)
            got = piece.data[error.start : error.start + 4]
            raise self._text.encoding_error(piece.offset + error.start, got, line=line) from None


def _lines(piece: LineChunk) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their line numbers."""
    data = piece.data.removeprefix(BYTE_ORDER_MARK) if piece.offset == 0 else piece.data
    for line, text in enumerate(data.split(b"\n"), piece.line):
        if text.strip():
            yield line, text


def _text_for_dates(given: pa.DataType) -> pa.DataType:
    """Undo that pyarrow parses some strings as times: the plan decides from all rows whether they are."""
    if pa.types.is_timestamp(given):
        return pa.string()
    if pa.types.is_list(given):
        return pa.list_(_text_for_dates(given.value_type))
    if pa.types.is_struct(given):
        fields = [given.field(i) for i in range(given.num_fields)]
        return pa.struct([field.with_type(_text_for_dates(field.type)) for field in fields])
    return given


def _holds_huge(array: Any) -> bool:
    if pa.types.is_floating(array.type):
        return bool(np.any(np.abs(array.drop_null().to_numpy(zero_copy_only=False)) >= _HUGE))
    if pa.types.is_list(array.type) or pa.types.is_struct(array.type):
        inner = array.flatten()
        return any(map(_holds_huge, inner if isinstance(inner, list) else [inner]))
    return False


def _parse_int(digits: str) -> int:
    """Return an int; only the first digits of a longer one, which Python may refuse to convert."""
    return int(digits[:_MAX_DIGITS])


class _HugeFloat(NamedTuple):
    """A number with a fraction or an exponent that is beyond float64."""

    text: str


def _parse_float(text: str) -> float | _HugeFloat:
    value = float(text)
    return _HugeFloat(text) if math.isinf(value) else value


def _find_huge(value: Any) -> int | str | None:
    """Return the first number in a value that its type cannot hold: an int, or the text of a float."""
    if isinstance(value, _HugeFloat):
        return value.text
    if isinstance(value, int):
        return value if not -(2**63) <= value < 2**63 else None
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((huge for huge in map(_find_huge, inner) if huge is not None), None)
