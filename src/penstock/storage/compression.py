"""Compression of files: detect it from the first bytes, never from the name, and decompress.

In: the first bytes of a file, or the file. Out: "none", "gzip" or "zlib", the name of another file format, or
the decompressed bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final, Literal, NamedTuple

from penstock._native import masked_crc32c
from penstock.columns import Compression
from penstock.errors import CorruptRecordError
from penstock.storage.open_file import Readable

FIRST_BYTES = 4096  # enough to decompress a header, and to recognize other file formats

_ANY_HEADER = 47  # zlib detects whether a stream is gzip or zlib

_MAGICS = {
    b"PK\x03\x04": "a ZIP archive",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"\xd0\xcf\x11\xe0": "an Excel file",
    b"GIF8": "a GIF image",
    b"WEBP": "a WebP image",
    b"\x28\xb5\x2f\xfd": "a Zstandard stream (only gzip and zlib are supported)",
    b"\xff\xd8\xff": "a JPEG image",
    b"\x89PNG": "a PNG image",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy array",
    b"BZh": "a bzip2 stream (only gzip and zlib are supported)",
    b"\xfd7zXZ": "an xz stream (only gzip and zlib are supported)",
    b"%PDF": "a PDF document",
}
_TABLES: Final = {
    ".csv": "a CSV file",
    **dict.fromkeys((".tsv", ".tab"), "a TSV file"),
    ".json": "a JSON file",
    **dict.fromkeys((".jsonl", ".ndjson"), "a JSON lines file"),
    **dict.fromkeys((".parquet", ".pq"), "a Parquet file"),
    **dict.fromkeys((".arrow", ".feather", ".ipc", ".arrows"), "an Arrow file"),
    **dict.fromkeys((".xlsx", ".xlsm", ".xls"), "an Excel file"),
    ".ods": "an OpenDocument spreadsheet",
    ".zip": "a ZIP archive",
    **dict.fromkeys((".tar", ".tgz"), "a tar archive"),
}
_IMAGES: Final = {
    **dict.fromkeys((".jpg", ".jpeg", ".jpe", ".jfif"), "a JPEG image"),
    **{f".{name}": f"a {name.upper()} image" for name in ("png", "gif", "bmp")},
    ".webp": "a WebP image",
}
_ARRAYS: Final = {".npy": "a NumPy array", ".npz": "NumPy arrays"}
_DATABASES: Final = {".duckdb": "a DuckDB file"}
_PACKED: Final = {".gz": "gzip", ".gzip": "gzip", ".bz2": "bzip2", ".xz": "xz"}
_HEADER_BYTES: Final = 12  # fewer may be the beginning of a record
_OUTER: Final = ("JSON", "a ZIP archive", "a bzip2", "an xz")  # the name says more
READ_BYTES = 64 << 10  # compressed bytes per read
CHUNK_BYTES = 1 << 20  # decompressed bytes per chunk
MAX_RATIO = 1000  # deflate reaches 1032:1 on constant bytes; real shards stay far below
_RATIO_FLOOR_BYTES = 8 << 20  # a small file may consist of zeros
_RAW_DEFLATE = -15


def find_compression(first: bytes) -> Compression:
    """Return the compression of a file that begins with `first`.

    A record length with a valid CRC means plain: a length can look like a zlib header, but not with a CRC.
    """
    if has_header(first):
        return "none"
    # The third byte is the method, always 8: a plain file whose first length is damaged seldom has all three.
    if first.startswith(b"\x1f\x8b") and first[2:3] in (b"", b"\x08"):
        return "gzip"
    if _is_zlib(first):
        return "zlib"
    return "none"


def has_header(first: bytes) -> bool:
    """Return whether bytes begin with a record header with a valid CRC."""
    return len(first) >= 12 and int.from_bytes(first[8:12], "little") == masked_crc32c(first[:8])


def begins_with_record(first: bytes) -> bool:
    """Return whether a file, plain or compressed, that begins with `first` begins with a record."""
    compression = find_compression(first)
    if compression == "none":
        return has_header(first)
    try:
        return has_header(zlib.decompressobj(_ANY_HEADER).decompress(first, 12))
    except zlib.error:
        return False


def inflate_first(first: bytes, most: int) -> bytes:
    """Return up to `most` bytes of the beginning of a gzip file; nothing if it is damaged."""
    try:
        return zlib.decompressobj(47).decompress(first, most)
    except zlib.error:
        return b""


def _is_zlib(first: bytes) -> bool:
    if len(first) < 2 or first[0] & 0x0F != 8 or (first[0] << 8 | first[1]) % 31 != 0:
        return False
    stream = zlib.decompressobj()
    try:
        inflated = stream.decompress(first, 12)
    except zlib.error:
        return False
    if not inflated:
        return stream.eof
    # A plain file may begin like this too; a decompressed TFRecord begins with a header with a valid CRC.
    return len(inflated) < 12 or has_header(inflated)


def name_content(first: bytes) -> str | None:
    """Return the file format of a file that is not a TFRecord, if its first bytes identify it."""
    text = first[:64].lstrip().lower()
    if first.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer (run 'git lfs pull' to download the file)"
    if text.startswith((b"<!doctype html", b"<html")):
        return "an HTML page (perhaps a failed download)"
    if text.startswith((b"<?xml", b"<error")):
        return "an XML document (perhaps a failed download)"
    start = first[8:12] if first.startswith(b"RIFF") else first  # of a container, what it holds
    for magic, name in _MAGICS.items():
        if start.startswith(magic):
            return name
    # A record of 123 or 91 bytes begins with the same byte, but followed by zeros: the rest of its length.
    if text.startswith((b"{", b"[")) and b"\0" not in first[:8]:
        return "JSON"
    return None


class ForeignContent(NamedTuple):
    """What a file is that is not a TFRecord file.

    Attributes:
        name: The format, such as `a CSV file`; None if it is unknown.
        use: How its data is read: `ps.convert` reads it as a "table", or it is one of "images", an "array", a
            "database"; None if the file is of no use, or unknown.
    """

    name: str | None
    use: Literal["table", "images", "array", "database"] | None = None


def describe_content(file_name: str, first: bytes) -> ForeignContent:
    """Return what a file is, by its first bytes and by its name where these leave it open."""
    suffixes = PurePath(file_name.lower()).suffixes
    packing = _PACKED.get(suffixes[-1]) if suffixes else None
    suffix = next(reversed(suffixes[:-1] if packing else suffixes), "")
    if find_compression(first) == "gzip":
        first = inflate_first(first, FIRST_BYTES)
    known = name_content(first)
    if known is not None and not known.startswith(_OUTER):
        use: Any = "table" if known in _TABLES.values() else "images" if known in _IMAGES.values() else None
        return ForeignContent(known, "array" if known in _ARRAYS.values() else use)
    if suffix in _TABLES or known == "JSON" or (known is None and _is_text_table(first)):
        name = _TABLES.get(suffix, "JSON" if known == "JSON" else "a CSV file")
        return ForeignContent(f"{name} compressed with {packing}" if packing else name, "table")
    for names, each in ((_IMAGES, "images"), (_ARRAYS, "array"), (_DATABASES, "database")):
        if suffix in names:
            use = each
            return ForeignContent(names[suffix], use)
    if known is None and len(first) >= _HEADER_BYTES and _is_text(first):
        return ForeignContent("text")
    return ForeignContent(known)


def _is_text(first: bytes) -> bool:
    text = first.decode("utf-8", "ignore")
    return len(first) - len(text.encode()) < 4 and all(
        each.isprintable() or each in "\t\r\n" for each in text
    )


def _is_text_table(first: bytes) -> bool:
    """Return whether the first lines of a text have equally many delimiters."""
    lines = [line for line in first.splitlines()[:3] if line.strip()][:2]
    return _is_text(first) and any(
        len(lines) == 2 and lines[0].count(each) == lines[1].count(each) > 0 for each in (b",", b";", b"\t")
    )


def inflate(file: Readable, compression: Compression) -> Iterator[bytes]:
    """Yield the decompressed bytes of a compressed file."""
    source = _Source(file)
    total = 0
    first = True
    while first or not source.at_end:
        member = _Member(source, gzip=compression == "gzip")
        member.read_header(first=first)
        for chunk in member.chunks():
            total += len(chunk)
            if total > _RATIO_FLOOR_BYTES and total > MAX_RATIO * source.position:
                raise source.error(
                    "the stream expands too much",
                    expected=f"at most {MAX_RATIO} bytes per compressed byte",
                    got=f"{total} from {source.position}",
                    advice="It may be a decompression bomb.",
                )
            yield chunk
        member.read_trailer()
        first = False
        if compression == "zlib":
            break
    if not source.at_end:
        raise source.error(
            "bytes follow the end of the stream", expected="the end of the file", got="more bytes"
        )


class _Source:
    """The compressed bytes, with the current position for errors."""

    def __init__(self, file: Readable) -> None:
        self.file = file
        self.position = 0  # offset of the next byte to consume
        self._ahead = b""

    @property
    def at_end(self) -> bool:
        return not self._ahead and not self._fill()

    def _fill(self) -> bool:
        self._ahead += self.file.read(self.position + len(self._ahead), READ_BYTES)
        return bool(self._ahead)

    def piece(self) -> bytes:
        """Consume the available bytes, at most READ_BYTES; empty at the end of the file."""
        if not self._ahead:
            self._fill()
        piece, self._ahead = self._ahead, b""
        self.position += len(piece)
        return piece

    def give_back(self, piece: bytes) -> None:
        self._ahead = piece + self._ahead
        self.position -= len(piece)

    def take(self, size: int, what: str) -> bytes:
        """Consume exactly `size` bytes."""
        taken = b""
        while len(taken) < size:
            piece = self.piece()
            if not piece:
                raise self.error(
                    f"the file ends inside the {what}", expected=f"{size} bytes", got=f"{len(taken)} bytes"
                )
            taken += piece
        self.give_back(taken[size:])
        return taken[:size]

    def skip_string(self, what: str) -> None:
        """Consume everything up to a zero byte, and that byte."""
        while piece := self.piece():
            end = piece.find(b"\0")
            if end >= 0:
                self.give_back(piece[end + 1 :])
                return
        raise self.error(f"the file ends inside the {what}", expected="a zero byte", got="its end")

    def error(self, what: str, *, expected: object, got: object, advice: str = "") -> CorruptRecordError:
        return CorruptRecordError(
            f"compressed stream: {what} at compressed byte {self.position}",
            path=self.file.path,
            field="compression",
            expected=expected,
            got=got,
            advice=advice or "The file is truncated or damaged: copy it again, or run 'penstock repair'.",
        )


class _Member:
    """One gzip member, or one zlib stream: header, deflated bytes, trailer."""

    def __init__(self, source: _Source, *, gzip: bool) -> None:
        self._source = source
        self._gzip = gzip
        self._check = 0 if gzip else 1
        self._size = 0

    def read_header(self, *, first: bool) -> None:
        source = self._source
        if not self._gzip:
            source.take(2, "zlib header")
            return
        # RFC 1952: magic, method, flags, time (4), extra flags, system.
        magic = source.take(2, "gzip header")
        if magic != b"\x1f\x8b":
            source.give_back(magic)
            raise source.error(
                "bytes after the stream are not a gzip member" if not first else "no gzip header",
                expected="0x1f8b or the end of the file",
                got=f"0x{magic.hex()}",
            )
        method, flags = source.take(8, "gzip header")[:2]
        if method != 8 or flags & 0xE0:
            raise source.error(
                "unknown gzip method or flags", expected="method 8", got=f"method {method}, flags {flags}"
            )
        if flags & 4:
            source.take(int.from_bytes(source.take(2, "gzip header"), "little"), "gzip header")
        for flag in (8, 16):  # name, comment: up to a zero byte
            if flags & flag:
                source.skip_string("gzip header")
        if flags & 2:
            source.take(2, "gzip header")

    def chunks(self) -> Iterator[bytes]:
        stream = zlib.decompressobj(_RAW_DEFLATE)
        while not stream.eof:
            piece = self._source.piece()
            if not piece:
                raise self._source.error(
                    "the file ends inside the deflated bytes", expected="more bytes", got="its end"
                )
            before = stream.copy()
            while True:
                try:
                    chunk = stream.decompress(piece, CHUNK_BYTES)
                except zlib.error as error:
                    yield from self._salvage(before, piece)
                    raise self._source.error(
                        f"the deflated bytes are damaged ({error})", expected="deflate", got="something else"
                    ) from None
                if chunk:
                    self._count(chunk)
                    yield chunk
                # At the end of the stream the tail may hold unused bytes too: feeding them would never end.
                piece = b"" if stream.eof else stream.unconsumed_tail
                if not piece:
                    break
                before = stream.copy()
        self._source.give_back(stream.unused_data)

    def _salvage(self, stream: Any, piece: bytes) -> Iterator[bytes]:
        """Yield what can be decompressed, byte by byte, of the piece that failed: it may contain records."""
        out = bytearray()
        try:
            for i in range(len(piece)):
                out += stream.decompress(piece[i : i + 1])
        except zlib.error:
            pass
        if out:
            yield bytes(out)

    def _count(self, chunk: bytes) -> None:
        self._check = zlib.crc32(chunk, self._check) if self._gzip else zlib.adler32(chunk, self._check)
        self._size += len(chunk)

    def read_trailer(self) -> None:
        source = self._source
        if not self._gzip:
            stored = int.from_bytes(source.take(4, "zlib trailer"), "big")
            if stored != self._check:
                raise source.error(
                    "Adler-32 of the stream", expected=f"{stored:#010x}", got=f"{self._check:#010x}"
                )
            return
        trailer = source.take(8, "gzip trailer")
        stored, size = int.from_bytes(trailer[:4], "little"), int.from_bytes(trailer[4:], "little")
        if stored != self._check:
            raise source.error("CRC-32 of the stream", expected=f"{stored:#010x}", got=f"{self._check:#010x}")
        if size != self._size & 0xFFFFFFFF:
            raise source.error("size of the stream", expected=f"{size} bytes", got=f"{self._size} bytes")
