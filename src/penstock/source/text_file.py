"""The content of a text file as UTF-8, decompressed and re-encoded if needed.

In: a path and an encoding. Out: chunks of UTF-8, or a file object over them; errors name the byte offset.
"""

from __future__ import annotations

import codecs
import re
import threading
import unicodedata
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Final

from penstock.errors import CorruptRecordError, SourceError
from penstock.storage.compression import (
    FIRST_BYTES,
    find_compression,
    inflate,
    inflate_first,
    name_content,
)
from penstock.storage.open_file import OpenFile

CHUNK_BYTES = 1 << 20
TAIL_BYTES = 64 << 10
BYTE_ORDER_MARK = codecs.BOM_UTF8
_WIDE_MARKS: Final = {  # the longer ones first: the mark of UTF-32 begins like the mark of UTF-16
    codecs.BOM_UTF32_LE: ("utf-32", "utf-32-le"),
    codecs.BOM_UTF32_BE: ("utf-32", "utf-32-be"),
    codecs.BOM_UTF16_LE: ("utf-16", "utf-16-le"),
    codecs.BOM_UTF16_BE: ("utf-16", "utf-16-be"),
}
_WIDE: Final = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
_NOT_TEXT: Final = ("Cc", "Cn", "Co", "Cs")  # categories of Unicode: control, unassigned, private, surrogate
_NEWER: Final = re.compile("[\f\ue000-\uf8ff\U00010000-\U0010ffff]")
"""Characters that are odd in bytes, but usual in a text: form feeds, symbols of fonts, newer emoji."""
_MIN_ODD: Final = 0.1  # share of such characters in a wide text that is read with one byte per character
_MAX_ODD: Final = 0.02  # and in its right encoding: damage, or characters newer than Python's tables
_MIN_ASCII: Final = 0.5  # share of ASCII characters that replaces a line end as evidence


def find_wide_encodings(first: bytes) -> tuple[str, ...]:
    """Return the encodings, of UTF-16 and UTF-32, that read a text which begins with `first`; () if none.

    By the byte order mark, or without one by the text: read in the right encoding it has line ends, begins
    like JSON or is mostly ASCII (a long first line), and has hardly any control characters; a misread
    encoding of one byte per character gives many.
    """
    for mark, names in _WIDE_MARKS.items():
        if first.startswith(mark):
            return names
    if b"\0" not in first or _count_odd(first.decode("latin-1")) < _MIN_ODD * len(first):
        return ()
    for name in _WIDE:
        try:
            text = codecs.getincrementaldecoder(name)().decode(first)
        except UnicodeDecodeError:
            continue
        has_structure = (
            "\n" in text
            or "\r" in text
            or text.lstrip().startswith(("{", "["))
            or sum(map(str.isascii, text)) > _MIN_ASCII * len(text)
        )
        if has_structure and _count_odd(_NEWER.sub("", text)) <= _MAX_ODD * len(text):
            return (name,)
    return ()


def recode_first(first: bytes, encoding: str) -> bytes:
    """Return the first bytes of a text in UTF-8, by its encoding if that is UTF-16 or UTF-32."""
    declared = (encoding,) if encoding.startswith(("utf-16", "utf-32")) else ()
    found = find_wide_encodings(first) or declared
    return first.decode(found[0], "ignore").encode() if found else first


def _count_odd(text: str) -> int:
    """Return the number of characters that a text does not have."""
    return sum(unicodedata.category(each) in _NOT_TEXT and each not in "\t\r\n" for each in text)


class TextFile:
    """A text file, plain or gzip (recognized by its first bytes), in any encoding.

    Attributes:
        path: Path of the file.
        position: Number of bytes of the file that the current pass has read.
        is_plain: Whether its bytes can be used unchanged: not compressed, and declared as UTF-8.
    """

    def __init__(self, path: Path, encoding: str) -> None:
        """Open a file."""
        self.path = path
        self.position = 0
        self._file: OpenFile | None = None
        self._encoding = encoding
        self._is_utf8 = encoding in ("utf-8", "utf-8-sig", "ascii")
        file = OpenFile(path)
        first = file.read(0, FIRST_BYTES)
        self._is_gzip = find_compression(first) == "gzip"
        self.is_plain = not self._is_gzip and self._is_utf8
        content = None if self._is_gzip else name_content(first)
        if content not in (None, "JSON"):
            raise SourceError("not a text file", path=path, expected="text", got=content)
        self._check_encoding(inflate_first(first, FIRST_BYTES) if self._is_gzip else first)

    def _check_encoding(self, first: bytes) -> None:
        fitting = find_wide_encodings(first)
        if not fitting or self._encoding in fitting:
            return
        mark = " with a byte order mark" if len(fitting) > 1 else " without a byte order mark"
        raise SourceError(
            "text",
            path=self.path,
            expected=self._encoding.upper(),
            got=f"{fitting[0].upper()}{mark}",
            advice=f"Specify the encoding: `encoding='{fitting[0]}'`.",
        )

    @property
    def num_bytes(self) -> int:
        """Size of the file on disk."""
        return self.path.stat().st_size

    def chunks(self) -> Generator[bytes, None, None]:
        """Yield the text from its beginning, in UTF-8; it may still begin with a byte order mark.

        Bytes that are declared as UTF-8 are not checked here, but by the parser.
        """
        self.position = 0
        return self._inflated() if self._is_utf8 else self._recoded(self._inflated())

    def read_tail(self) -> bytes:
        """Return the last bytes of a plain file."""
        file = OpenFile(self.path)
        return file.read(max(0, file.size - TAIL_BYTES), TAIL_BYTES)

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes of the file as it is on disk."""
        if self._file is None:
            raise RuntimeError("a text is read in a pass of `chunks`")
        data = self._file.read(offset, size)
        self.position = max(self.position, offset + len(data))
        return data

    def _inflated(self) -> Generator[bytes, None, None]:
        file = self._file = OpenFile(self.path)
        try:
            if self._is_gzip:
                yield from self._inflate()
            else:
                while chunk := self.read(self.position, CHUNK_BYTES):
                    yield chunk
        finally:
            if self._file is file:  # otherwise, another pass has begun
                self._file = None  # a source may have thousands of files

    def _inflate(self) -> Iterator[bytes]:
        try:
            yield from inflate(self, "gzip")
        except CorruptRecordError as error:
            raise SourceError(
                error.what,
                path=self.path,
                expected=error.expected,
                got=error.got,
                advice="The file is truncated or damaged; get it again.",
            ) from None

    def _recoded(self, chunks: Iterable[bytes]) -> Generator[bytes, None, None]:
        decoder = codecs.getincrementaldecoder(self._encoding)()
        offset = 0
        for chunk in _with_end(chunks):
            pending = len(decoder.getstate()[0])
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                raise self.encoding_error(
                    offset - pending + error.start, error.object[error.start : error.start + 4]
                ) from None
            except UnicodeError as error:  # UTF-16 without a byte order mark, for example
                raise SourceError(
                    f"the text is not in {self._encoding}",
                    path=self.path,
                    expected=self._encoding,
                    got=str(error),
                    advice="Specify the right encoding, such as 'utf-16-le'.",
                ) from None
            offset += len(chunk)
            if text:
                yield text.encode()

    def encoding_error(
        self, offset: int | None, got: bytes, row: int | None = None, line: int | None = None
    ) -> SourceError:
        """Return the error for bytes that are not valid in the encoding; `offset` is after inflating."""
        other = "latin-1" if self._is_utf8 else "utf-8"
        return SourceError(
            "text",
            path=self.path,
            row=row,
            line=line,
            offset=offset,
            expected=self._encoding.upper(),
            got=f"0x{got.hex()}",
            advice=f"If the file has another encoding, specify it: `encoding='{other}'`.",
        )


def _with_end(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks, then b"" to finalize a decoder."""
    yield from (chunk for chunk in chunks if chunk)
    yield b""


class ChunkFile:
    """A file object over chunks, for readers that call `read(size)`.

    Attributes:
        tail: Last bytes that were read.
    """

    closed = False

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.tail = b""
        self._chunks = chunks
        self._ahead = b""
        self._lock = threading.Lock()

    def read(self, size: int) -> bytes:
        """Return `size` bytes, fewer only at the end, because each read becomes a block to parse."""
        pieces = [self._ahead]
        num_bytes = len(self._ahead)
        with self._lock:
            while num_bytes < size and not self.closed and (chunk := next(self._chunks, b"")):
                pieces.append(chunk)
                num_bytes += len(chunk)
        data = b"".join(pieces)
        data, self._ahead = data[:size], data[size:]
        if data:
            self.tail = (self.tail + data)[-TAIL_BYTES:] if len(data) < TAIL_BYTES else data[-TAIL_BYTES:]
        return data

    def close(self) -> None:
        """Close the file: a reader that is a block ahead in its own thread gets no more data."""
        self.closed = True
        with self._lock:  # once it is free, no read is in progress
            return
