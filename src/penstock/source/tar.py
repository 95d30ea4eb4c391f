"""Members of a tar archive, read from the first byte to the last, plain or with gzip.

In: the path of an archive. Out: names, sizes and bytes of its regular files. Nothing is written to disk, each
length is checked against the bytes present, and an archive that ends early or is damaged is an error: the
standard library takes a damaged header for the end of the archive.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from penstock.errors import CorruptRecordError, SourceError
from penstock.foundation.wording import count, show
from penstock.storage.compression import FIRST_BYTES, find_compression, inflate, name_content
from penstock.storage.named_files import MAX_FILE_BYTES
from penstock.storage.open_file import OpenFile

BLOCK_BYTES: Final = 512
MAX_HEADER_BYTES: Final = 1 << 20
"""Maximum size of the extended header of a member, which holds its long name."""

MAGIC: Final = b"ustar"
MAGIC_OFFSET: Final = 257

_READ_BYTES: Final = 1 << 20
_REGULAR: Final = b"\0" + b"07"
_LONG_NAME, _LONG_LINK, _EXTENDED, _GLOBAL = b"L", b"K", b"x", b"g"
_SPARSE: Final = "GNU.sparse."
_FOLDER: Final = b"5"
_OTHER_TYPES: Final = {
    b"1": "hard link",
    b"2": "symbolic link",
    b"3": "device",
    b"4": "device",
    b"6": "named pipe",
}
_DAMAGED: Final = "The file is truncated or damaged; get it again."
_ZEROS: Final = bytes(BLOCK_BYTES)


def begins_like_tar(first: bytes) -> bool:
    """Return whether bytes begin with the header of a tar archive; archives before 1988 have no such mark."""
    return first[MAGIC_OFFSET : MAGIC_OFFSET + len(MAGIC)] == MAGIC


class TarMember(NamedTuple):
    r"""A regular file of an archive.

    Attributes:
        name: Path in the archive; bytes that are not UTF-8 are written as `\xe9`.
        num_bytes: Size of the file.
    """

    name: str
    num_bytes: int


class _Header(NamedTuple):
    name: bytes
    num_bytes: int
    kind: bytes


class TarReader:
    """Reads the members of an archive in their order; with gzip, memory use does not depend on their sizes.

    Attributes:
        position: Number of bytes of the file that were read or skipped.
        left_out: Number of links, devices and pipes so far, by their type, with the name of the first one.
    """

    def __init__(self, path: Path) -> None:
        """Open an archive."""
        self.path = path
        self.position = 0
        self.left_out: dict[str, tuple[int, str]] = {}
        self._file = OpenFile(path)
        first = self._file.read(0, FIRST_BYTES)
        is_packed = find_compression(first) == "gzip"
        content = None if is_packed or begins_like_tar(first) else name_content(first)
        if content is not None:
            raise SourceError("not a tar archive", path=path, expected="a tar archive", got=content)
        self._chunks = inflate(self, "gzip") if is_packed else None
        self._ahead = memoryview(b"")
        self._offset = 0  # in the archive itself
        self._unread = 0  # bytes of the current member, without padding
        self._member = TarMember("", 0)

    def members(self) -> Iterator[TarMember]:
        """Yield the regular files; `read` returns the bytes of the last one."""
        extended: dict[str, bytes] = {}
        while (header := self._read_header()) is not None:
            if header.kind in (_LONG_NAME, _LONG_LINK, _EXTENDED, _GLOBAL):
                self._read_extension(header, extended)
                continue
            name = extended.get("path", header.name)
            if "size" in extended:
                header = header._replace(num_bytes=self._check_size(extended["size"], base=10))
            is_sparse = header.kind == b"S" or _SPARSE in extended
            extended = {}
            text = name.decode("utf-8", "backslashreplace")
            kind = "sparse file" if is_sparse else _OTHER_TYPES.get(header.kind)
            if header.kind == _FOLDER or (header.kind == b"\0" and text.endswith("/")):
                self._open(TarMember(text, 0))
            elif kind == "sparse file" or (kind is None and header.kind not in _REGULAR):
                raise SourceError(
                    f"type of member {show(text)}",
                    path=self.path,
                    expected="a regular file",
                    got=kind or f"type {header.kind!r}",
                    advice="Pack the files again, without options for sparse files or backups.",
                )
            elif kind is not None:
                number, first = self.left_out.get(kind, (0, text))
                self.left_out[kind] = number + 1, first
                self._open(TarMember(text, 0))  # the size of a link may be the size of its target
            else:
                self._open(TarMember(_check_name(text, self.path), header.num_bytes))
                yield self._member
            self._skip_rest()

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of the file as it is on disk, for `inflate`."""
        data = self._file.read(offset, size)
        self.position = max(self.position, offset + len(data))
        return data

    def read_member(self, most: int | None = None) -> bytes:
        """Return the next bytes of the current member, all of them or at most `most`."""
        size = self._unread if most is None else min(most, self._unread)
        if size > MAX_FILE_BYTES:
            raise SourceError(
                f"size of member {show(self._member.name)}",
                path=self.path,
                expected=f"at most {MAX_FILE_BYTES} bytes",
                got=self._member.num_bytes,
                advice="A record holds less than 2 GiB; divide the file or leave it out.",
            )
        data = self._take(size)
        self._unread -= size
        return data

    def _open(self, member: TarMember) -> None:
        self._member = member
        self._unread = member.num_bytes
        self._padding = -member.num_bytes % BLOCK_BYTES
        if self._chunks is None:
            self._check_present(member.num_bytes)

    def _skip_rest(self) -> None:
        self._skip(self._unread + self._padding)
        self._unread = self._padding = 0

    def _check_present(self, num_bytes: int) -> None:
        num_left = self._file.size - self._offset
        if num_bytes > num_left:
            raise self._refuse_end(num_bytes, max(0, num_left))

    def _refuse_end(self, expected: int, got: int) -> SourceError:
        what = f"member {show(self._member.name)}" if self._unread else "the archive"
        return SourceError(
            f"{what} ends early",
            path=self.path,
            offset=self._offset,
            expected=count(expected, "byte"),
            got=count(got, "byte"),
            advice=_DAMAGED,
        )

    def _fill(self) -> bool:
        """Read ahead; False at the end of the archive."""
        if not self._ahead:
            try:
                chunk = (
                    self.read(self._offset, _READ_BYTES) if self._chunks is None else next(self._chunks, b"")
                )
            except CorruptRecordError as error:
                raise SourceError(
                    error.what, path=self.path, expected=error.expected, got=error.got, advice=_DAMAGED
                ) from None
            self._ahead = memoryview(chunk)
        return bool(self._ahead)

    def _take(self, size: int) -> bytes:
        parts: list[memoryview] = []
        num_left = size
        while num_left and self._fill():
            part, self._ahead = self._ahead[:num_left], self._ahead[num_left:]
            parts.append(part)
            num_left -= len(part)
            self._offset += len(part)
        if num_left:
            raise self._refuse_end(size, size - num_left)
        return b"".join(parts)

    def _skip(self, size: int) -> None:
        if self._chunks is None and size > len(self._ahead):
            self._check_present(size)
            self._offset += size
            self._ahead = memoryview(b"")
            self.position = max(self.position, self._offset)
            return
        num_left = size
        while num_left and self._fill():
            num_taken = min(num_left, len(self._ahead))
            self._ahead = self._ahead[num_taken:]
            num_left -= num_taken
            self._offset += num_taken
        if num_left:
            raise self._refuse_end(size, size - num_left)

    def _read_header(self) -> _Header | None:
        start = self._offset
        if not self._fill():
            if start == 0:
                raise SourceError(
                    "not a tar archive", path=self.path, expected="a header", got="an empty file"
                )
            raise SourceError(
                "the archive has no end",
                path=self.path,
                offset=start,
                expected="two blocks of zeros",
                got="the end of the file",
                advice=f"{_DAMAGED} If it is complete, append {2 * BLOCK_BYTES} zero bytes.",
            )
        block = self._take(BLOCK_BYTES)
        if block == _ZEROS:
            self._check_end()
            return None
        found = _parse_number(block[148:156])
        sums = _sum_bytes(block)
        if found not in sums:
            raise SourceError(
                "checksum of the header" if start else "not a tar archive: checksum of the header",
                path=self.path,
                offset=start,
                expected=sums[0],
                got=show(block[148:156]) if found is None else found,
                advice=_DAMAGED,
            )
        return _Header(_join_name(block), self._check_size(block[124:136]), block[156:157])

    def _check_end(self) -> None:
        """Check that only zeros follow the first block of zeros."""
        while self._fill():
            if any(self._ahead):
                raise SourceError(
                    "bytes follow the end of the archive",
                    path=self.path,
                    offset=self._offset,
                    expected="zeros, or the end of the file",
                    got="other bytes",
                    advice="If several archives were joined, pass each of them: ['a.tar', 'b.tar'].",
                )
            self._offset += len(self._ahead)
            self._ahead = memoryview(b"")

    def _check_size(self, field: bytes, base: int = 8) -> int:
        number = _parse_number(field, base)
        if number is None or not 0 <= number < 2**63:
            raise SourceError(
                "size of a member",
                path=self.path,
                offset=self._offset,
                expected="a number of bytes",
                got=show(field),
                advice=_DAMAGED,
            )
        return number

    def _read_extension(self, header: _Header, extended: dict[str, bytes]) -> None:
        """Read the header before a member that holds its long name, or its name and size."""
        if header.num_bytes > MAX_HEADER_BYTES:
            raise SourceError(
                "size of an extended header",
                path=self.path,
                offset=self._offset,
                expected=f"at most {MAX_HEADER_BYTES} bytes",
                got=header.num_bytes,
                advice=_DAMAGED,
            )
        self._open(TarMember(header.name.decode("utf-8", "backslashreplace"), header.num_bytes))
        data = self.read_member()
        self._skip_rest()
        if header.kind == _LONG_NAME:
            extended["path"] = data.split(b"\0", 1)[0]
        elif header.kind == _EXTENDED:
            for key, value in self._parse_records(data):
                if key in ("path", "size"):
                    extended[key] = value
                elif key.startswith(_SPARSE):  # one entry, however many there are
                    extended[_SPARSE] = b""

    def _parse_records(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield the records `LENGTH KEY=VALUE` of an extended header."""
        position = 0
        while position < len(data):
            length, space, _ = data[position : position + 20].partition(b" ")
            stop = position + int(length) if space and length.isdigit() else 0
            key, equals, value = data[position + len(length) + 1 : stop].partition(b"=")
            if not position < stop <= len(data) or not equals or not value.endswith(b"\n"):
                raise SourceError(
                    "extended header",
                    path=self.path,
                    offset=self._offset,
                    expected="LENGTH KEY=VALUE",
                    got=show(data[position : position + 40]),
                    advice=_DAMAGED,
                )
            yield key.decode("utf-8", "backslashreplace"), value[:-1]
            position = stop


def _check_name(name: str, path: Path) -> str:
    """Return the name of a member without `./` in front."""
    if name.startswith("/") or ".." in name.split("/"):
        raise SourceError(
            f"name of member {show(name)}",
            path=path,
            expected="a path inside the archive",
            got="an absolute path" if name.startswith("/") else "a path with '..'",
            advice="Pack the files again with relative names.",
        )
    return posixpath.normpath(name) if name else name


def _join_name(block: bytes) -> bytes:
    name = block[:100].split(b"\0", 1)[0]
    prefix = block[345:500].split(b"\0", 1)[0] if block[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _parse_number(field: bytes, base: int = 8) -> int | None:
    """Return a number in octal or decimal digits, or in base 256; None if it is not valid."""
    if base == 8 and field[:1] in (b"\x80", b"\xff"):
        return int.from_bytes(field[1:] if field[0] == 0x80 else field, "big", signed=field[0] == 0xFF)
    digits = field.strip(b" \0")
    is_valid = len(digits) < 24 and not digits.strip(b"01234567" if base == 8 else b"0123456789")
    return int(digits or b"0", base) if is_valid else None


def _sum_bytes(block: bytes) -> tuple[int, int]:
    """Return the checksum of a header, of unsigned bytes and as old programs wrote it, of signed bytes."""
    rest = block[:148] + block[156:]
    unsigned = sum(rest) + 8 * ord(" ")
    return unsigned, unsigned - 256 * sum(each > 127 for each in rest)
