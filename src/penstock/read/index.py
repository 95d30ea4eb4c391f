"""The index of a file: the byte offset of each record, found by reading the headers once.

In: an open file. Out: `FileIndex`. Records and damaged ranges cover the file without gaps, so reading a
record detects a wrong index: the bytes of the file always take precedence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock._native import masked_crc32c
from penstock.columns import Compression
from penstock.errors import CorruptRecordError, NotTFRecordError, PathError
from penstock.format.index import FRAME_BYTES, decode_tfindex, list_tfindex_names, max_tfindex_bytes
from penstock.read.damage import Damage, naming_record, too_large_for_memory
from penstock.settings.groups import ReadOptions
from penstock.storage.compression import (
    FIRST_BYTES,
    ForeignContent,
    describe_content,
    find_compression,
    has_header,
    inflate,
    name_content,
)
from penstock.storage.open_file import FileIdentity, OpenFile
from penstock.storage.paths import is_named_like_tfrecord
from penstock.storage.store_path import AnyPath

# A file that was rewritten with its records in another order may keep its size, so that its old index still
# covers it. Checking some of the headers detects that.
_NUM_PROBES = 32
_HEADER_BYTES = 12


def read_neighbour(file: OpenFile, max_record_bytes: int) -> tuple[NDArray[np.uint64] | None, str]:
    """Return the offsets from the first text index that fits, or None, and a note if one does not fit."""
    note = ""
    size = file.identity.size
    for name in list_tfindex_names(file.path.name):
        try:
            index = OpenFile(file.path.with_name(name))
        except PathError:
            continue
        fits = index.size <= max_tfindex_bytes(size)
        offsets = decode_tfindex(index.read(0, index.size), size, max_record_bytes) if fits else None
        if offsets is not None and _leads_to_headers(file, offsets):
            return offsets, ""
        note = note or f"{name} is not used: it is not the index of {file.path.name}"
    return None, note


def _leads_to_headers(file: OpenFile, offsets: NDArray[np.uint64]) -> bool:
    num_records = len(offsets) - 1
    for record in np.linspace(0, num_records - 1, min(num_records, _NUM_PROBES)).astype(int).tolist():
        begin, end = int(offsets[record]), int(offsets[record + 1])
        header = file.read(begin, _HEADER_BYTES)
        if int.from_bytes(header[:8], "little") != end - begin - FRAME_BYTES:
            return False
        if int.from_bytes(header[8:], "little") != masked_crc32c(header[:8]):
            return False
    return True


class Index(Protocol):
    """Locations of the records of one file: a `FileIndex`, or an index that is loaded on first use."""

    @property
    def offsets(self) -> NDArray[np.uint64]:
        """Offset of each record, and the end of the last one."""

    @property
    def damages(self) -> Mapping[int, Damage]:
        """Damaged ranges by record number."""

    @property
    def damaged(self) -> list[int]:
        """Numbers of the damaged records, in order."""

    @property
    def compression(self) -> Compression:
        """Compression of the file."""

    @property
    def identity(self) -> FileIdentity:
        """Identity of the file when it was indexed."""

    @property
    def is_scanned(self) -> bool:
        """Whether the index was just built from the bytes of the file."""

    @property
    def note(self) -> str:
        """Remark for the user on how the index was made, or ""."""

    def __len__(self) -> int:
        """Return the number of records, intact or damaged."""

    def distrust(self) -> None:
        """React to bytes that contradict the index."""


@dataclass(frozen=True)
class FileIndex:
    """Locations of the records of one file.

    Attributes:
        offsets: Offset of each record, in the decompressed bytes of a compressed file, and the end of the
            last record.
        damages: Damaged ranges by record number. Damage of a payload is unknown until it is read.
        compression: Compression of the file.
        identity: Identity of the file when it was indexed.
        saved_as: Path of the cache file that the index comes from, or None.
        is_scanned: Whether the index was just built from the bytes of the file.
        note: Remark for the user on how the index was made, or "".
    """

    offsets: NDArray[np.uint64]
    damages: Mapping[int, Damage]
    compression: Compression
    identity: FileIdentity
    saved_as: Path | None = None
    is_scanned: bool = True
    note: str = ""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def distrust(self) -> None:
        """Delete the cache file that the index comes from, because the bytes contradict it."""
        if self.saved_as is not None:
            self.saved_as.unlink(missing_ok=True)

    @cached_property
    def damaged(self) -> list[int]:
        """Numbers of the damaged records, in order."""
        return sorted(self.damages)


def check_compression(path: AnyPath, first: bytes, declared: Literal["auto"] | Compression) -> Compression:
    """Return the compression of a file that begins with the bytes `first`."""
    found = find_compression(first)
    if declared in ("auto", found) or not first:
        return found if declared == "auto" else declared
    raise CorruptRecordError(
        "compression",
        path=path,
        field="compression",
        expected=declared,
        got=found,
        advice="To detect it: `compression='auto'`.",
    )


def build_index(file: OpenFile, options: ReadOptions) -> FileIndex:
    """Build the index of a file from its record headers."""
    first = file.read(0, FIRST_BYTES)
    compression = check_compression(file.path, first, options.compression)
    limits = (options.max_record_bytes, options.allow_trailing_zeros)
    if compression == "none":
        refuse_foreign(file.path, first)
        try:
            offsets, found = _native.scan_file(file.fd, file.identity.size, *limits)
        except MemoryError:  # to look for the next record inside one that was cut short
            raise too_large_for_memory(file.path) from None
        failure = None
    else:
        offsets, found, failure = _walk_stream(file.path, inflate(file, compression), limits)
    if len(found) > _native.MOST_DAMAGES:
        raise _too_many(file.path)
    damages = {each[0]: Damage.from_core(each) for each in found}
    if failure is not None:
        offsets, damages = _add_failure(offsets, damages, failure)
    file.check_unchanged(file.identity)
    if holds_no_record(len(offsets) - 1 - len(damages), damages):
        raise failure or not_tfrecord(file.path, first, damages)
    return FileIndex(offsets, damages, compression, file.identity)


def _walk_stream(
    path: AnyPath, chunks: Iterator[bytes], limits: tuple[int, bool]
) -> tuple[NDArray[np.uint64], list[_native.Damage], CorruptRecordError | None]:
    walk = _native.IndexScanner(*limits)
    failure = None
    try:
        for chunk in chunks:
            with naming_record(path, walk):
                walk.feed(chunk)
    except CorruptRecordError as error:
        failure = error
    return *walk.finish(), failure


def _add_failure(
    offsets: NDArray[np.uint64], damages: dict[int, Damage], failure: CorruptRecordError
) -> tuple[NDArray[np.uint64], dict[int, Damage]]:
    """Add the error of the compressed stream, as damage after its last record."""
    count = len(offsets) - 1
    damage = Damage.from_stream(failure, damages.get(count - 1), count, int(offsets[-1]))
    if damage.record == count:
        offsets = np.append(offsets, offsets[-1])
    return offsets, {**damages, damage.record: damage}


def refuse_foreign(path: AnyPath, first: bytes) -> None:
    """Reject an uncompressed file that begins like a file of another format."""
    if name_content(first) is not None and not has_header(first):
        raise not_tfrecord(path, first)


def holds_no_record(num_sound: int, damages: Mapping[int, Damage]) -> bool:
    """Return whether a file with `num_sound` intact records and this damage is not a TFRecord file."""
    return num_sound == 0 and bool(damages) and not any(each.has_header for each in damages.values())


def _too_many(path: AnyPath) -> CorruptRecordError:
    return CorruptRecordError(
        "number of damaged ranges",
        path=path,
        field="length",
        expected=f"at most {_native.MOST_DAMAGES}",
        got="more",
        advice=f"Copy the intact records with 'penstock repair {path} OUT'.",
    )


def not_tfrecord(
    path: AnyPath, first: bytes, damages: Mapping[int, Damage] | None = None
) -> NotTFRecordError:
    """Return the error for a file in which no record was found."""
    foreign = describe_content(path.name, first)
    damage = damages[0] if damages else None
    found = "other bytes"
    if damage is not None:
        is_cut = damage.field == "header"
        found = damage.got if is_cut else f"CRC {damage.expected} instead of {damage.got}"
    return NotTFRecordError(
        "not a TFRecord file",
        path=path,
        record=0,
        offset=0,
        field="length" if damage is None else damage.field,
        expected="a record header with a valid CRC",
        got=foreign.name or found,
        advice=_advise(path, foreign),
    )


def _advise(path: AnyPath, foreign: ForeignContent) -> str:
    out = path.name.split(".")[0] or "out"
    if foreign.use and is_named_like_tfrecord(path.name):
        return "If it is one, name it like one, and convert it first: `ps.convert(source, out)`."
    if foreign.use == "table" or foreign.name is None:
        call = f"`ps.convert({str(path)!r}, {f'{out}-records'!r})`"
        return (
            f"Convert it first: {call}." if foreign.use else f"If it is raw data, convert it first: {call}."
        )
    if foreign.use == "images":
        return (
            "Convert its folder, which has one folder of images per class, or a table that names images: "
            f"`ps.convert({str(path.parent)!r}, {f'{path.parent.name}-records'!r})`."
        )
    if foreign.use == "array":
        return "Load it with numpy.load, and convert the arrays: ps.convert({'values': array}, 'records')."
    if foreign.use == "database":
        url = f"duckdb:///{path}?table=NAME"
        return f"Convert one of its tables first: `ps.convert({url!r}, {f'{out}-records'!r})`."
    return "Pass TFRecord files, or convert raw data first: `ps.convert(source, out)`."
