"""Members of WebDataset samples that are JSON objects: their keys are columns.

In: the bytes of members. Out: Arrow columns, of the types that the objects have as lines of a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from penstock.errors import SourceError
from penstock.foundation.json_text import MAX_DEPTH, find_deep
from penstock.foundation.wording import show
from penstock.source.jsonl import MAX_LINE_BYTES, LineChunk, LineParser
from penstock.source.member_column import BadMemberError, MemberColumn, make_texts, refuse_change
from penstock.source.text_file import BYTE_ORDER_MARK

_LINES_BYTES: Final = 4 << 20


class JsonColumn(MemberColumn):
    """JSON objects, whose keys are the columns, as in a `.jsonl` file; other JSON is text."""

    survey_bytes = None

    def __init__(self, extension: str) -> None:
        super().__init__(extension)
        self._schema: pa.Schema = pa.schema([])
        self._lines: list[bytes] = []
        self._keys: list[str] = []
        self._num_pending = 0
        self._objects: str | None = None  # key of the first sample with an object
        self._others: str | None = None

    @property
    def note(self) -> str:
        """A note if the files are no objects."""
        return (
            "" if self._objects else f"files with the extension {show(self.extension)} hold no objects: text"
        )

    def survey(self, data: bytes, num_bytes: int, key: str) -> None:  # noqa: ARG002
        """Add the keys and types of an object."""
        line = _join_lines(data, key)
        if not line.startswith(b"{"):
            self._others = self._others or key
            self._check_kinds(key)
            return
        self._objects = self._objects or key
        self._check_kinds(key)
        self._lines.append(line)
        self._keys.append(key)
        self._num_pending += len(line)

    def _check_kinds(self, key: str) -> None:
        if self._objects is not None and self._others is not None:
            raise BadMemberError(
                key,
                expected=f"an object, as in sample {show(self._objects)}",
                got="another JSON value"
                if key == self._others
                else f"other JSON in sample {show(self._others)}",
                advice="Use objects in all samples, or in none.",
            )

    @property
    def is_full(self) -> bool:
        """Whether so many objects wait that they should be parsed."""
        return self._num_pending > _LINES_BYTES

    def finish(self, path: Path) -> None:
        """Parse the objects that wait."""
        if self._lines:
            with _naming_samples(self._keys, self.extension):
                self._schema = LineParser(path).extend_schema(self._schema, _as_chunk(self._lines))[0]
        self._lines, self._keys, self._num_pending = [], [], 0

    def merge(self, other: MemberColumn) -> None:
        """See `MemberColumn`."""
        if isinstance(other, JsonColumn):
            key = other._others or other._objects or ""
            self._objects, self._others = self._objects or other._objects, self._others or other._others
            self._check_kinds(key)
            try:
                self._schema = pa.unify_schemas([self._schema, other._schema], promote_options="permissive")
            except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
                advice = "Use one kind of value for a key in all archives."
                raise BadMemberError(key, "the types of the previous archives", str(error), advice) from None

    def list_fields(self, taken: frozenset[str]) -> list[pa.Field[Any]]:
        """Return one column for each key, or one of texts."""
        if self._objects is None:
            return [pa.field(self.extension, pa.large_string())]
        prefix = self.extension.rpartition(".")[0]
        names = {name: f"{prefix}.{name}" if prefix else name for name in self._schema.names}
        return [
            field.with_name(
                f"{self.extension}.{field.name}" if names[field.name] in taken else names[field.name]
            )
            for field in self._schema
        ]

    def convert(self, values: Sequence[bytes | None], keys: Sequence[str], path: Path) -> list[pa.Array[Any]]:
        """Return the values by key."""
        if self._objects is None:
            return [make_texts(values, keys)]
        lines = [
            b"{}" if value is None else _join_lines(value, key)
            for value, key in zip(values, keys, strict=True)
        ]
        with _naming_samples(keys, self.extension):
            table = LineParser(path).parse(_as_chunk(lines), self._schema)
        if table.num_rows != len(values):
            raise refuse_change(path, keys[0])
        return [_combine(table.column(name)) for name in self._schema.names]


def _as_chunk(lines: Sequence[bytes]) -> LineChunk:
    return LineChunk(b"\n".join(lines) + b"\n", 1, -1)


def _combine(column: Any) -> Any:
    return column.combine_chunks()


def _join_lines(data: bytes, key: str) -> bytes:
    """Return a JSON value on one line."""
    text = data.removeprefix(BYTE_ORDER_MARK).strip()
    if len(text) > MAX_LINE_BYTES:
        raise BadMemberError(key, f"at most {MAX_LINE_BYTES >> 20} MiB of JSON", f"{len(text)} bytes")
    if find_deep(text) is not None:
        got = f"more than {MAX_DEPTH} levels of nested lists and objects"
        raise BadMemberError(key, "JSON", got, "Flatten the values.")
    try:
        json.loads(text.decode(), parse_int=str)
    except (ValueError, RecursionError) as error:
        raise BadMemberError(key, "JSON", f"a parse error ({str(error).split(':')[0].lower()})") from None
    return text.replace(b"\n", b" ").replace(b"\r", b" ")


@contextmanager
def _naming_samples(keys: Sequence[str], extension: str) -> Iterator[None]:
    """Let errors name samples instead of lines."""
    try:
        yield
    except SourceError as error:
        if error.line is not None:
            error.what = f"member {show(f'{keys[error.line - 1]}.{extension}')}: {error.what}"
            error.line = error.offset = None
            error.args = (str(error),)
        raise
