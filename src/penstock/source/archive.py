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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from penstock.errors import NoSuchPathError, SourceError
from penstock.foundation.wording import list_texts
from penstock.source.listing import is_packed_name, is_table_name
from penstock.storage.atomic import write_failure
from penstock.storage.compression import MAX_RATIO

ZIP_SUFFIX: Final = ".zip"
_STREAMS: Final[dict[str, Callable[..., Any]]] = {".bz2": bz2.open, ".xz": lzma.open}
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

        Args:
            path: Path of the archive, or of a member below it.

        Raises:
            SourceError: The archive is damaged or encrypted, expands too much, or has no or several tables.
            NoSuchPathError: The archive has no such member.
            WriteError: The disk is full, or fails.
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
                    self._copy(packed, info.compress_size)
        else:
            self.file = folder / self.archive.stem
            with (
                _naming_damage(self.archive),
                _STREAMS[self.archive.suffix.lower()](self.archive, "rb") as packed,
            ):
                self._copy(packed, self.archive.stat().st_size)

    def _copy(self, packed: IO[bytes], num_packed: int) -> None:
        num_bytes = 0
        most = max(_FLOOR_BYTES, MAX_RATIO * num_packed)
        with self.file.open("wb") as out:
            while chunk := packed.read(_COPY_BYTES):
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


def is_packed(path: Path) -> bool:
    """Return whether a path names a table to unpack, or a member of an archive."""
    return is_packed_name(path.name) or split_member(path)[1] is not None


def split_member(path: Path) -> tuple[Path, str | None]:
    """Return the archive of a path such as `data.zip/pets.csv` and the name of the member, or None."""
    for folder in path.parents:
        if folder.suffix.lower() == ZIP_SUFFIX and folder.is_file():
            return folder, path.relative_to(folder).as_posix()
    return path, None


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
    return not is_hidden and is_table_name(parts[-1])
