"""Tables in archives and compressed files: unpack the one table inside to a temporary file.

In: a `.zip`, `.bz2` or `.xz` file, or the path of a member, `data.zip/pets.csv`. Out: a local file, removed
with its `UnpackedTable`. Nothing is written to a path that the archive names, and how much a file may expand
is limited. Text with gzip is not unpacked, but inflated while it is read.
"""

from __future__ import annotations

import bz2
import lzma
import shutil
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, NamedTuple

from penstock.errors import NoSuchPathError, SourceError
from penstock.foundation.wording import count, list_texts
from penstock.source.recognition import ZIP_SUFFIX, is_packed_name, is_table_name, is_tar_name, split_member
from penstock.storage.atomic import write_failure
from penstock.storage.compression import MAX_RATIO


class _Format(NamedTuple):
    """A compression whose files are one or several streams, as `cat` joins them.

    Attributes:
        name: Name of the compression.
        magic: First bytes of a stream.
        decoder: Class that decompresses one stream.
        padding: Zero bytes that may follow a stream, in multiples of this number; 0 for none.
    """

    name: str
    magic: bytes
    decoder: Callable[[], Any]
    padding: int = 0


_FORMATS: Final = {
    ".bz2": _Format("bzip2", b"BZh", bz2.BZ2Decompressor),
    ".xz": _Format("xz", b"\xfd7zXZ\0", lzma.LZMADecompressor, padding=4),
}
_FLOOR_BYTES: Final = 8 << 20  # a small file may consist of zeros
_COPY_BYTES: Final = 1 << 20
_MAX_LISTED: Final = 10
_IS_ENCRYPTED: Final = 1
_DAMAGES: Final = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError)


class UnpackedTable:
    """A table that was unpacked.

    Attributes:
        archive: The file that has the table.
        file: Path of the unpacked table.
    """

    def __init__(self, path: Path) -> None:
        """Unpack a table to the temporary folder.

        `path`: path of the archive, or of a member below it.
        """
        self.archive, member = split_member(path)
        try:
            folder = Path(tempfile.mkdtemp(prefix="penstock-"))
        except OSError as error:
            raise write_failure(Path(tempfile.gettempdir()), error) from error
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        if self.archive.suffix.lower() == ZIP_SUFFIX:
            with _naming_damage(self.archive), zipfile.ZipFile(self.archive) as archive:
                info = _choose(archive, self.archive, member)
                # The last part of the name, so that no other folder can be named.
                self.file = folder / PurePosixPath(info.filename).name
                with archive.open(info) as packed:
                    self._copy(iter(partial(packed.read, _COPY_BYTES), b""), info.compress_size)
        else:
            self.file = folder / self.archive.stem
            packing = _FORMATS[self.archive.suffix.lower()]
            with _naming_damage(self.archive), self.archive.open("rb") as packed:
                self._copy(_inflate(packed, packing, self.archive), self.archive.stat().st_size)

    def _copy(self, chunks: Iterable[bytes], num_packed: int) -> None:
        num_bytes = 0
        most = max(_FLOOR_BYTES, MAX_RATIO * num_packed)
        with self.file.open("wb") as out:
            for chunk in chunks:
                num_bytes += len(chunk)
                if num_bytes > most:
                    raise SourceError(
                        "the file expands too much",
                        path=self.archive,
                        expected=f"at most {MAX_RATIO} bytes per compressed byte",
                        got="more",
                        advice="It may be a decompression bomb.",
                    )
                try:
                    out.write(chunk)
                except OSError as error:
                    raise write_failure(self.file, error) from error


def _inflate(file: IO[bytes], packing: _Format, path: Path) -> Iterator[bytes]:
    """Yield the decompressed bytes of all streams of a file.

    The readers of the standard library ignore everything from a later stream that is not valid.
    """
    data = file.read(_COPY_BYTES)
    while True:
        decoder = packing.decoder()
        while not decoder.eof:
            if decoder.needs_input and not data and not (data := file.read(_COPY_BYTES)):
                raise EOFError("the file ends inside a stream")
            chunk = decoder.decompress(data, _COPY_BYTES)
            data = b""
            if chunk:
                yield chunk
        data = _find_stream(file, decoder.unused_data, packing, path)
        if not data:
            return


def _find_stream(file: IO[bytes], data: bytes, packing: _Format, path: Path) -> bytes:
    """Return the first bytes of the next stream, without padding; empty at the end of the file."""
    num_zeros = 0
    while True:
        if packing.padding:
            stripped = data.lstrip(b"\0")
            num_zeros += len(data) - len(stripped)
            data = stripped
        if len(data) >= len(packing.magic) or not (piece := file.read(_COPY_BYTES)):
            break
        data += piece
    is_padded = num_zeros % (packing.padding or 1) == 0
    if is_padded and (not data or data.startswith(packing.magic)):
        return data
    raise SourceError(
        f"compressed stream: bytes after the stream are not another {packing.name} stream "
        f"at compressed byte {file.tell() - len(data)}",
        path=path,
        expected=f"0x{packing.magic.hex()} or the end of the file",
        got=f"0x{data[: len(packing.magic)].hex()}" if is_padded else count(num_zeros, "zero byte"),
        advice="The file is truncated or damaged; get it again.",
    )


def is_packed(path: Path) -> bool:
    """Return whether a path names a table to unpack, or a member of an archive."""
    return is_packed_name(path.name) or split_member(path)[1] is not None


@contextmanager
def _naming_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # raised by zipfile for an encrypted member
        raise _refuse_encrypted(path) from error
    except _DAMAGES as error:
        if isinstance(error, FileNotFoundError | PermissionError) or hasattr(error, "advice"):
            raise
        raise SourceError(
            f"the file cannot be unpacked ({str(error).rstrip('.')})",
            path=path,
            advice="The file is truncated, damaged or of another type; get it again.",
        ) from error


def _refuse_encrypted(path: Path) -> SourceError:
    return SourceError(
        "the archive is encrypted", path=path, advice="Unpack it with its password, and pass the table."
    )


def _choose(archive: zipfile.ZipFile, path: Path, member: str | None) -> zipfile.ZipInfo:
    infos = [info for info in archive.infolist() if not info.is_dir()]
    if member is not None:
        found = [info for info in infos if info.filename == member]
        if not found:
            names = list_texts([info.filename for info in infos[:_MAX_LISTED]])
            raise NoSuchPathError(
                f"the archive has no member {member!r}", path=path, advice=f"Its members are {names}."
            )
    else:
        # A file of any name may be a table if it is alone: pandas writes such archives.
        found = [info for info in infos if _is_table(info.filename)] or infos
    if len(found) != 1:
        names = list_texts([info.filename for info in infos[:_MAX_LISTED]])
        more = f" and {len(infos) - _MAX_LISTED} more" if len(infos) > _MAX_LISTED else ""
        example = found[0].filename if found else "pets.csv"
        raise SourceError(
            "tables in the archive",
            path=path,
            expected="one",
            got=f"{names}{more}" if infos else "no files",
            advice=f"Name one of them, {str(path / example)!r}, or unpack the archive and pass its tables.",
        )
    (info,) = found
    if info.flag_bits & _IS_ENCRYPTED:
        raise _refuse_encrypted(path)
    return info


def _is_table(name: str) -> bool:
    parts = PurePosixPath(name).parts
    is_hidden = any(part.startswith(".") or part == "__MACOSX" for part in parts)
    return not is_hidden and is_table_name(parts[-1]) and not is_tar_name(parts[-1])
