"""Locations on a disk."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import stat
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from penstock.errors import ChangedFileError, PathError
from penstock.foundation.process import ProcessLock
from penstock.storage.atomic import (
    AtomicFile,
    exchange,
    refuse_existing,
    sync_descriptor,
    sync_folder,
    write_failure,
)
from penstock.storage.location import ABSENT, Content, Entry, FolderKind, Location, Part, Ranges
from penstock.storage.open_file import FileIdentity, OpenFile

_MAX_OPEN: Final = 64  # files that one process has open at a time
_PIECE_BYTES: Final = 16 << 20  # of a file that is copied
_COARSEST_CLOCK_NS: Final = 3_000_000_000  # some file systems have times of two seconds
_NO_FILE: Final = (errno.ENOENT, errno.ENOTDIR, errno.EBADF, errno.ELOOP, errno.ENAMETOOLONG)


class Disk(Location):
    """A file or a folder on a disk."""

    has_folders: ClassVar[bool] = True
    _path: Path

    def look_up(self) -> Entry | None:
        """Return the size and the version of the file; None if there is no such file."""
        try:
            status = self._path.stat()
        except OSError as error:
            if error.errno not in _NO_FILE:
                raise
            return None
        except ValueError:  # a name with a NUL
            return None
        if stat.S_ISDIR(status.st_mode):
            return None
        return Entry(self.name, status.st_size, _write_version(FileIdentity.from_status(status)))

    def list(
        self, skips: Callable[[str], bool] = lambda _: False, folders: MutableSequence[str] | None = None
    ) -> Iterator[Entry]:
        """Yield the files below this folder; broken links are empty files: opening them is an error."""
        if os.path.lexists(self._path):
            yield from _list(str(self._path), "", (), skips, [] if folders is None else folders)

    def mark_folders(self, folders: Iterable[str], since_ns: int) -> Sequence[str] | None:
        """Return the inode and the time of the last change of each folder; see `Location.mark_folders`."""
        marks = []
        for folder in folders:
            try:
                status = (self._path / folder).stat()
            except OSError:
                return None
            if status.st_mtime_ns > since_ns - _COARSEST_CLOCK_NS:
                return None
            marks.append(f"{status.st_dev}-{status.st_ino}-{status.st_mtime_ns}")
        return marks

    def list_folders(self, skips: Callable[[str], bool] = lambda _: False) -> Sequence[str]:
        """Return the names of the folders directly in this folder."""
        if not os.path.lexists(self._path):
            return []
        return [entry.name for entry in _scan(str(self._path), skips) if entry.is_dir()]

    def fetch(
        self, start: int = 0, stop: int | None = None, *, version: str | None = None, most: int | None = None
    ) -> Content:
        """Return bytes of the file, and its version; see `Location.fetch`."""
        file = OpenFile(self._path)
        try:
            found = _write_version(file.identity)
            if version not in (None, found):
                raise ChangedFileError(
                    "the file changed since it was opened",
                    path=self._path,
                    expected=version,
                    got=found,
                    advice="Open it again when no other program writes to it.",
                )
            if most is not None and file.identity.size > most:
                raise OSError(errno.EFBIG, "too large", str(self._path))
            stop = file.identity.size if stop is None else stop
            return Content(memoryview(file.read(start, stop - start)), found)
        finally:
            file.close()

    def open(self) -> OpenFile:
        """Open the file."""
        return OpenFile(self._path)

    def open_ranges(self) -> Ranges:
        """Return random access to the files of this folder."""
        return _DiskRanges(self._path)

    def find_existing(self, names: Iterable[str], skips: Callable[[str], bool] = lambda _: False) -> set[str]:  # noqa: ARG002
        """Return those names that are files, without a list of all files."""
        return {name for name in names if os.path.isfile(self._path / name)}  # noqa: PTH113 - takes any text

    def copy_once(self, make_folder: Callable[[], Path]) -> tuple[Path, Entry | None]:  # noqa: ARG002
        """Return the path itself."""
        return self._path, None

    @contextmanager
    def copied(self) -> Iterator[Path]:
        """Yield the path itself."""
        yield self._path

    def copy_folder(
        self,
        is_needed: Callable[[str], bool],  # noqa: ARG002 - all files are there
        list_needed: Callable[[Path], Iterable[str]],  # noqa: ARG002
    ) -> Path:
        """Return the path itself, whether or not the folder exists."""
        return self._path

    def refuse_output(self, *, overwrite: bool) -> None:
        """Refuse an output file that is a folder, or exists; a link counts, wherever it leads to."""
        if self._path.is_dir():
            raise PathError("is a folder", path=self._path, advice="Pass the path of a file.")
        if not overwrite:
            refuse_existing(self._path)

    def write(self, data: bytes, *, over: str | None = None, syncs_folder: bool = True) -> bool:
        """Write a small file; see `Location.write`. On network disks, `over` needs their locks."""
        if over is None:
            with AtomicFile(self._path, overwrite=True, syncs_folder=syncs_folder) as file:
                file.write(data)
            return True
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise write_failure(self._path, error) from error
        try:
            # Look and rename are one step for all processes that pass a version.
            fcntl.flock(folder, fcntl.LOCK_EX)
            found = self.look_up()
            if (ABSENT if found is None else found.version) != over:
                return False
            replaced = None if found is None else self._path.stat()
            with AtomicFile(self._path, overwrite=True, syncs_folder=syncs_folder) as file:
                file.write(data)
            if replaced is not None:
                self._advance_time(replaced.st_mtime_ns)
            return True
        finally:
            os.close(folder)

    def _advance_time(self, replaced_ns: int) -> None:
        """Let the file be newer than the one that it replaced: clocks of disks are coarse, inodes reused."""
        status = self._path.stat()
        if status.st_mtime_ns <= replaced_ns:
            os.utime(self._path, ns=(status.st_atime_ns, replaced_ns + 1000))

    def write_file(self, file: Path) -> None:
        """Write a file with the content of another one."""
        with file.open("rb") as source, AtomicFile(self._path, overwrite=True) as target:
            while piece := source.read(_PIECE_BYTES):
                target.write(piece)

    @contextmanager
    def writing(self, *, makes_folder: bool = True) -> Iterator[Path]:
        """Yield the path itself."""
        try:
            if makes_folder:
                self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_failure(self._path, error) from error
        yield self._path

    @contextmanager
    def creating(self, *, overwrite: bool) -> Iterator[AtomicFile]:
        """Open an output file; see `Location.creating`."""
        with AtomicFile(self._path, overwrite=overwrite) as file:
            yield file

    def remove_files(self, names: Iterable[str]) -> None:
        """Remove files of this folder by name, those that exist."""
        for name in names:
            (self._path / name).unlink(missing_ok=True)

    def remove_folder(self) -> None:
        """Remove this folder with all files, as far as possible."""
        shutil.rmtree(self._path, ignore_errors=True)

    def check_folder(self, kind: FolderKind, *, overwrite: bool) -> bool:
        """Return whether a folder exists and is replaced; see `Location.check_folder`."""
        out = self._path
        if not os.path.lexists(out):
            return False
        if not out.is_dir() or out.is_symlink():
            noun = kind.word.partition(" ")[2]
            raise PathError("is not a folder", path=out, advice=f"Choose another name for the {noun}.")
        if next(out.iterdir(), None) is None:
            return True
        if not (out / kind.mark).is_file():
            raise PathError(
                f"contains files, but is not {kind.word}",
                path=out,
                advice="Move them elsewhere, or choose another folder.",
            )
        if not overwrite:
            refuse_existing(out)
        return True

    @contextmanager
    def replacing_folder(self, kind: FolderKind, *, overwrite: bool) -> Iterator[Path]:
        """Yield a hidden folder beside this one, which gets its name at the end, in one step."""
        self.check_folder(kind, overwrite=overwrite)
        hidden = self._path.parent / f".tmp-{secrets.token_hex(8)}"
        try:
            hidden.mkdir(parents=True)
        except OSError as error:
            raise write_failure(self._path, error) from error
        try:
            yield hidden
            _commit(hidden, self._path, replaces=self.check_folder(kind, overwrite=overwrite))
        finally:
            shutil.rmtree(hidden, ignore_errors=True)


def _write_version(identity: FileIdentity) -> str:
    """Return the version of a file: without the time of a change of metadata, such as a hard link."""
    return f"{identity.inode}-{identity.size}-{identity.mtime_ns}"


def _list(
    folder: str,
    prefix: str,
    above: tuple[str, ...],
    skips: Callable[[str], bool],
    folders: MutableSequence[str],
) -> Iterator[Entry]:
    real = os.path.realpath(folder)
    if real in above:
        raise PathError("a link leads back to a folder above it", path=folder, advice="Remove the link.")
    folders.append(prefix)
    for entry in _scan(folder, skips):
        if entry.is_dir():
            yield from _list(entry.path, f"{prefix}{entry.name}/", (*above, real), skips, folders)
            continue
        try:
            num_bytes = entry.stat().st_size
        except OSError:
            num_bytes = 0
        yield Entry(prefix + entry.name, num_bytes, None)  # a version would take as long as the rest


def _scan(folder: str, skips: Callable[[str], bool]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            seen = [entry for entry in entries if not skips(entry.name)]
    except OSError as error:
        raise PathError(
            f"the folder cannot be read ({error.strerror})", path=folder, advice="Check its permissions."
        ) from error
    return sorted(seen, key=lambda entry: os.fsencode(entry.name))


def _commit(hidden: Path, out: Path, *, replaces: bool) -> None:
    """Give a folder its name, when all its files are on the disk."""
    aside = hidden.with_name(f"{hidden.name}-old")
    try:
        for path in hidden.rglob("*"):
            if path.is_dir():
                sync_folder(path)
            else:
                _sync_file(path)
        sync_folder(hidden)
        if replaces:
            exchange(hidden, out, aside)  # the old folder is at `hidden` now, or at `aside`
        else:
            hidden.rename(out)
        sync_folder(out.parent)
    except OSError as error:
        raise write_failure(out, error) from error
    shutil.rmtree(aside, ignore_errors=True)


def _sync_file(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_descriptor(fd)
    finally:
        os.close(fd)


class _DiskRanges(Ranges):
    """Files of a folder; the most recently used ones are open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = ProcessLock()
        self._open: OrderedDict[str, int] = OrderedDict()

    def fill(self, parts: Sequence[Part]) -> None:
        for name, offset, into in parts:
            if into.nbytes:
                with self._lock:
                    self._fill(name, offset, into)

    def _fill(self, name: str, offset: int, into: Any) -> None:
        rest = memoryview(into.reshape(-1).view(np.uint8))
        descriptor = self._find(name)
        while rest:
            num_read = _read_into(descriptor, rest, offset)
            if not num_read:
                raise ChangedFileError("the file is shorter than expected", path=self._folder / name)
            rest, offset = rest[num_read:], offset + num_read

    def _find(self, name: str) -> int:
        fd = self._open.pop(name, None)
        if fd is None:
            fd = os.open(self._folder / name, os.O_RDONLY | os.O_CLOEXEC)
            if len(self._open) >= _MAX_OPEN:
                os.close(self._open.popitem(last=False)[1])
        self._open[name] = fd
        return fd

    def close(self) -> None:
        with self._lock:
            while self._open:
                os.close(self._open.popitem()[1])

    def __del__(self) -> None:
        for fd in self._open.values():
            os.close(fd)


def _read_into(fd: int, view: memoryview, offset: int) -> int:
    if hasattr(os, "preadv"):
        return os.preadv(fd, [view], offset)
    piece = os.pread(fd, min(len(view), _PIECE_BYTES), offset)  # older versions of macOS
    view[: len(piece)] = piece
    return len(piece)
