"""One WebDataset archive: a tar file whose members with one base name are a sample.

In: a path. Out: tables with a column for the key of the sample and columns for the extensions of its members.
A first pass over the archive finds the extensions and their types.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from penstock.errors import SourceError
from penstock.foundation.wording import count, list_texts, show
from penstock.schema.field import Field
from penstock.schema.scalar import Text
from penstock.source.array_members import ArrayColumn
from penstock.source.arrow_schema import check_names
from penstock.source.block import BLOCK_ROWS
from penstock.source.json_members import JsonColumn
from penstock.source.listing import IMAGE_SUFFIXES
from penstock.source.member_column import (
    BadMemberError,
    BytesColumn,
    ClassColumn,
    ImageColumn,
    IntegerColumn,
    MemberColumn,
    TextColumn,
)
from penstock.source.recognition import named_kind
from penstock.source.tar import TarReader

KEY: Final = "__key__"
"""Name of the column with the keys of the samples."""

MAX_EXTENSIONS: Final = 256
"""Maximum number of extensions of an archive: more are names with dots that separate no extension."""

COLUMNS: Final[dict[str, Callable[[str], MemberColumn]]] = {
    **{suffix[1:]: ImageColumn for suffix in IMAGE_SUFFIXES},
    **dict.fromkeys(("txt", "text", "transcript"), TextColumn),
    **dict.fromkeys(("cls", "cls2", "class"), ClassColumn),
    **dict.fromkeys(("id", "index", "inx", "count"), IntegerColumn),
    **dict.fromkeys(("json", "jsn"), JsonColumn),
    "npy": ArrayColumn,
}
"""What the files of an extension become, by its last part; files of other extensions are bytes."""

_TABLE_BYTES: Final = 8 << 20
_HASH_BYTES: Final = 8
_T = TypeVar("_T")


class _Member(NamedTuple):
    key: str
    extension: str
    num_bytes: int


class _Sample(NamedTuple):
    key: str
    members: dict[str, Any]


class WebDatasetFile:
    """A tar file of samples.

    The key of a sample is the path of its members up to the first dot of the base name, and the extension is
    the rest, in lower case.

    Attributes:
        path: The file.
        num_rows: Number of samples.
        dialect_notes: Notes about the columns.
        cautions: Notes about members that are left out.
    """

    num_rows: int | None

    def __init__(self, path: Path) -> None:
        """Read the archive once, to find its columns."""
        self.path = path
        self.columns: dict[str, MemberColumn] = {}
        reader = TarReader(path)
        hashes = array("Q")
        for sample in self._read(reader, self._survey):
            hashes.append(_hash(sample.key))
        self.num_rows = len(hashes)
        for column in self.columns.values():
            column.finish(path)
        self._check_contiguous(hashes)
        self._check_content()
        self.cautions = (*_list_left_out(reader), *self._list_others())

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        if not self.columns:
            return pa.schema([])
        fields = [pa.field(KEY, pa.large_string())]
        taken = frozenset((KEY, *self.columns))
        for column in self.columns.values():
            fields += column.list_fields(taken)
        check_names([field.name for field in fields], str(self.path))
        return pa.schema(fields)

    @property
    def declared(self) -> dict[str, Field]:
        """Fields of the columns whose extension decides their type."""
        fields = {name: field for name, column in self.columns.items() if (field := column.declare())}
        return {KEY: Text(role="id"), **fields}

    @property
    def dialect_notes(self) -> tuple[str, ...]:
        """Notes about the columns, without the name of the file."""
        return tuple(column.note for column in self.columns.values() if column.note)

    def tables(self) -> Iterator[tuple[pa.Table, int]]:
        """Yield the samples as tables, each with the number of bytes of the file that it accounts for."""
        reader = TarReader(self.path)
        schema = self.schema
        reported = num_bytes = 0
        samples: list[_Sample] = []
        for sample in self._read(reader, lambda _, load: load(None)):
            size = sum(map(len, sample.members.values()))
            if samples and (len(samples) == BLOCK_ROWS or num_bytes + size > _TABLE_BYTES):
                share, reported = reader.position - reported, reader.position
                yield self._make_table(samples, schema), share
                samples, num_bytes = [], 0
            samples.append(sample)
            num_bytes += size
        if samples:
            yield self._make_table(samples, schema), self.path.stat().st_size - reported

    def _survey(self, member: _Member, load: Callable[[int | None], bytes]) -> None:
        column = self.columns.get(member.extension)
        if column is None:
            if len(self.columns) == MAX_EXTENSIONS:
                raise SourceError(
                    "extensions of the members",
                    path=self.path,
                    expected=f"at most {MAX_EXTENSIONS}",
                    got=f"more, such as {list_texts(self.columns)}",
                    advice="Use base names without other dots: an extension begins at the first one.",
                )
            column = self.columns[member.extension] = _make_column(member.extension)
        data = b"" if column.survey_bytes == 0 else load(column.survey_bytes)
        column.survey(data, member.num_bytes, member.key)
        if isinstance(column, JsonColumn) and column.is_full:
            column.finish(self.path)

    def _read(
        self, reader: TarReader, use: Callable[[_Member, Callable[[int | None], bytes]], _T]
    ) -> Iterator[_Sample]:
        """Yield the samples; `use` returns the value for a member."""
        key: str | None = None
        members: dict[str, _T] = {}
        self._num_others, self._first_other = 0, ""
        for member in reader.members():
            named = split_name(member.name)
            if named is None:
                self._num_others += 1
                self._first_other = self._first_other or member.name
                continue
            if key is not None and named[0] != key:
                yield _Sample(key, members)
                members = {}
            key, extension = named
            if extension in members:
                raise SourceError(
                    f"sample {show(key)}",
                    path=self.path,
                    expected="one member for each extension",
                    got=f"two members with the extension {show(extension)}",
                    advice="Extensions are compared in lower case. Leave one of the two out.",
                )
            try:
                members[extension] = use(_Member(key, extension, member.num_bytes), reader.read_member)
            except BadMemberError as error:
                raise self._explain(error, extension) from None
        if key is not None:
            yield _Sample(key, members)

    def _explain(self, error: BadMemberError, extension: str) -> SourceError:
        return SourceError(
            f"member {show(f'{error.key}.{extension}')}",
            path=self.path,
            field=extension,
            expected=error.expected,
            got=error.got,
            advice=error.advice or "The member is damaged, or of another type; leave its sample out.",
        )

    def _make_table(self, samples: Sequence[_Sample], schema: pa.Schema) -> pa.Table:
        keys = [sample.key for sample in samples]
        arrays: list[pa.Array[Any]] = [pa.array(keys, pa.large_string())]
        for extension, column in self.columns.items():
            values = [sample.members.get(extension) for sample in samples]
            try:
                arrays += column.convert(values, keys, self.path)
            except BadMemberError as error:
                raise self._explain(error, extension) from None
        return pa.Table.from_arrays(arrays, schema=schema)

    def _check_contiguous(self, hashes: array[int]) -> None:
        """Check that no key comes again after the members of another sample."""
        ordered = np.sort(np.frombuffer(hashes, np.uint64)) if hashes else np.zeros(0, np.uint64)
        repeated = set(ordered[1:][ordered[1:] == ordered[:-1]].tolist())
        if not repeated:
            return
        seen: set[str] = set()
        for sample in self._read(TarReader(self.path), lambda *_: None):
            if sample.key in seen:
                raise SourceError(
                    f"sample {show(sample.key)}",
                    path=self.path,
                    expected="all members of a sample one after the other",
                    got="members of other samples between them",
                    advice="Pack the files in the order of their names: tar --sort=name.",
                )
            if _hash(sample.key) in repeated:
                seen.add(sample.key)

    def _check_content(self) -> None:
        """Check that the members are not tables."""
        tables = [name for name in self.columns if named_kind(Path(f"0.{name}")) not in (None, "jsonl")]
        if tables and len(tables) == len(self.columns):
            raise SourceError(
                "members of the archive",
                path=self.path,
                expected="files of samples, such as 0001.jpg and 0001.cls",
                got=f"tables ({list_texts(tables)})",
                advice="Unpack the archive, and pass the tables.",
            )

    def _list_others(self) -> Iterator[str]:
        if self._num_others:
            files = count(self._num_others, "file")
            yield f"{files} without a base name or an extension left out, such as {show(self._first_other)}"


def share_columns(files: Sequence[object]) -> None:
    """Give all archives among some files the columns of all of them, so that types and names are the same."""
    archives = [file for file in files if isinstance(file, WebDatasetFile)]
    if len(archives) < 2:
        return
    shared: dict[str, MemberColumn] = {}
    for archive in archives:
        for extension, column in archive.columns.items():
            if extension not in shared:
                shared[extension] = _make_column(extension)
            try:
                shared[extension].merge(column)
            except BadMemberError as error:
                raise archive._explain(error, extension) from None
    for archive in archives:
        archive.columns = shared


def _make_column(extension: str) -> MemberColumn:
    return COLUMNS.get(extension.rpartition(".")[2], BytesColumn)(extension)


def split_name(name: str) -> tuple[str, str] | None:
    """Return the key and the extension of a member; None for a member that is no part of a sample.

    Example:
        >>> split_name("cats/0001.seg.PNG")
        ('cats/0001', 'seg.png')
    """
    folder, slash, base = name.rpartition("/")
    stem, _, extension = base.partition(".")
    is_metadata = name.startswith("__") and "__" in name.split("/", maxsplit=1)[0][2:]
    if not stem or not extension or is_metadata:
        return None
    return f"{folder}{slash}{stem}", extension.lower()


def _hash(key: str) -> int:
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=_HASH_BYTES).digest(), "little")


def _list_left_out(reader: TarReader) -> Iterator[str]:
    for kind, (number, first) in reader.left_out.items():
        yield f"{count(number, kind)} left out, such as {show(first)}"
