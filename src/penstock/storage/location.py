"""Locations: files and folders on a disk or in an object store, with the same methods.

In: a path; `storage.paths.locate` chooses the class. Out: sizes, versions, bytes, local copies, and files
that appear under their names when they are complete. A version is an opaque text that changes with the file.
"""

from __future__ import annotations

import os
import posixpath
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, Protocol, Self

from numpy.typing import NDArray

from penstock.errors import ChangedFileError, NoSuchPathError, PathError, PenstockError
from penstock.storage.atomic import AtomicFile, make_existing, make_temporary_folder, scratch_folder
from penstock.storage.open_file import FileIdentity, Readable
from penstock.storage.store_path import AnyPath

ABSENT: Final = ""
"""The version of a file that does not exist, for conditional writes."""

_MAX_ATTEMPTS: Final = 3  # of a copy of files that change while they are copied

_copies: dict[Location, tuple[list[Entry], Path]] = {}


class Entry(NamedTuple):
    """A file that exists.

    Attributes:
        name: Path of the file within the folder that was listed; last part of the path of a file itself.
        num_bytes: Size of the file.
        version: Version of the file; None if it is not known.
    """

    name: str
    num_bytes: int
    version: str | None


class Content(NamedTuple):
    """Bytes of a file, and the version that they belong to; None if the store gives none."""

    data: memoryview
    version: str | None


class Part(NamedTuple):
    """Bytes of a file of a folder, and the contiguous array that they are read into."""

    name: str
    offset: int
    into: NDArray[Any]


class FolderKind(NamedTuple):
    """A kind of folder that is written and replaced as a whole.

    Attributes:
        word: The kind, such as "an export".
        mark: Name of the file without which readers do not take a folder for one of this kind. Where
            a folder cannot be replaced at once, this file is removed first and written last.
    """

    word: str
    mark: str


class OpenLocation(Readable, Protocol):
    """An open file: reads at any offset, and knows its size and identity."""

    @property
    def identity(self) -> FileIdentity:
        """Identity of the file when it was opened."""

    @property
    def size(self) -> int:
        """Size of the file in bytes."""

    def check_unchanged(self, since: FileIdentity) -> None:
        """Check that the file has not changed."""


class Ranges(ABC):
    """Random access to many files of one folder, with few of them open, or many requests at a time."""

    @abstractmethod
    def fill(self, parts: Sequence[Part]) -> None:
        """Fill arrays with bytes of files.

        Raises:
            OSError: A file does not exist (FileNotFoundError), is too short, or cannot be read.
        """

    def close(self) -> None:  # noqa: B027 - not all have files to close
        """Close the files. A later `fill` opens them again."""


def _skip_none(_: str) -> bool:
    return False


class Location(ABC):
    """A file or a folder.

    A class for another kind of storage implements the abstract methods. The others are made of them, by
    writing to temporary folders of this machine, and may be replaced by faster ones.

    All methods after the names raise `StoreError` if a store does not answer, or refuses. Methods that write
    files, or copy them to this machine, raise `WriteError` if the disk is full, or fails.

    Attributes:
        has_folders: Whether folders exist by themselves: they can be renamed and locked, and a file in them
            can be mapped. Without folders there are only files, which are written at once, on a condition.
    """

    has_folders: ClassVar[bool]

    # Names. Nothing here reads or writes.

    def __init__(self, path: AnyPath) -> None:
        self._path = path

    @property
    def path(self) -> AnyPath:
        """The path."""
        return self._path

    def __truediv__(self, name: str) -> Self:
        return type(self)(self._path / name)

    @property
    def parent(self) -> Self:
        """Folder of the file; in a store, the key without its last part."""
        return type(self)(self._path.parent)

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.name

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    __str__ = __fspath__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Location) and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)

    # Questions.

    @abstractmethod
    def look_up(self) -> Entry | None:
        """Return the size and the version of the file; None if there is no such file."""

    def exists(self) -> bool:
        """Return whether there is such a file."""
        return self.look_up() is not None

    def find_size(self) -> int:
        """Return the size of the file in bytes; 0 if there is no such file."""
        found = self.look_up()
        return 0 if found is None else found.num_bytes

    @abstractmethod
    def list(
        self, skips: Callable[[str], bool] = _skip_none, folders: MutableSequence[str] | None = None
    ) -> Iterator[Entry]:
        """Yield the files below this folder, by the bytes of their names within each folder.

        Args:
            skips: Whether to leave out a file or a folder, by the last part of its name.
            folders: The relative path of each folder that is read is appended to this list, this folder being
                "". Without folders, nothing is appended.

        Raises:
            PathError: A folder cannot be read, or has a link to a folder above it.
        """

    @abstractmethod
    def list_folders(self, skips: Callable[[str], bool] = _skip_none) -> Sequence[str]:
        """Return the names of the folders directly in this folder, by their bytes."""

    def mark_folders(self, folders: Iterable[str], since_ns: int) -> Sequence[str] | None:  # noqa: ARG002
        """Return one text per folder, which changes when a name is added to the folder or removed from it.

        None if that cannot be known: without folders, or if a folder changed shortly before `since_ns` or
        later, in nanoseconds since 1970. Then a further change may not be visible.
        """
        return None

    def find_existing(self, names: Iterable[str], skips: Callable[[str], bool] = _skip_none) -> set[str]:
        """Return those names, absolute or relative to this folder, that are files in it."""
        known = {each.name for each in self.list(skips)}
        return {name for name in names if posixpath.normpath(name.removeprefix(f"{self}/")) in known}

    # Reading.

    @abstractmethod
    def fetch(
        self, start: int = 0, stop: int | None = None, *, version: str | None = None, most: int | None = None
    ) -> Content:
        """Return bytes of the file, all by default, and the version of the file.

        Args:
            start: Offset of the first byte.
            stop: Exclusive end, which may be larger than the file. Defaults to the end of the file.
            version: Version that the file must have; None for any.
            most: Size of the largest file that is read at all.

        Raises:
            NoSuchPathError: There is no such file.
            ChangedFileError: The file has another version.
            OSError: The file is larger than `most`; `errno` is EFBIG.
        """

    def read(self, *, version: str | None = None, most: int | None = None) -> bytes:
        """Return the whole file; see `fetch`."""
        return bytes(self.fetch(version=version, most=most).data)

    @abstractmethod
    def open(self) -> OpenLocation:
        """Open the file to read it at any offset; a `PathError` if it cannot be opened."""

    @abstractmethod
    def open_ranges(self) -> Ranges:
        """Return random access to the files of this folder."""

    def copy_once(self, make_folder: Callable[[], Path]) -> tuple[Path, Entry | None]:
        """Return a local copy of the file, and the original in its current version; None for a local file.

        Args:
            make_folder: Called before the file is copied; returns the folder for the copy.

        Raises:
            NoSuchPathError: There is no such file.
            ChangedFileError: The file changed while it was copied.
        """
        local = make_folder() / self.name
        data, version = self.fetch()
        with AtomicFile(local) as file:
            file.write(data)
        return local, Entry(self.name, len(data), version)

    @contextmanager
    def copied(self) -> Iterator[Path]:
        """Copy the file to a temporary folder, for libraries that need a path; a local file is not copied."""
        with scratch_folder(is_kept=False) as folder:
            yield self.copy_once(lambda: folder)[0]

    def copy_folder(
        self,
        is_needed: Callable[[str], bool],
        list_needed: Callable[[Path], Iterable[str]],  # noqa: ARG002 - for others
    ) -> Path:
        """Return a local copy of the files in this folder; a local folder is not copied.

        The copy is removed when the process ends. It is the same copy if the files have not changed since.

        Args:
            is_needed: Whether to copy a file, by its path within the folder.
            list_needed: Returns the paths of files to copy, for locations that cannot be listed; some need
                not exist. Called with the copy, again and again until it returns no new path.

        Raises:
            NoSuchPathError: There is no such file in the folder.
            ChangedFileError: The files change again and again while they are copied.
        """
        for attempt in range(_MAX_ATTEMPTS):
            found = [each for each in self.list() if is_needed(each.name)]
            entries, copy = _copies.get(self, ([], Path()))
            if found and entries == found and all(each.version for each in found) and copy.is_dir():
                return copy
            if not found:
                raise NoSuchPathError("no such folder", path=self.path, advice="Check the path.")
            target = make_temporary_folder()
            try:
                self.copy_files(found, target)
            except (ChangedFileError, NoSuchPathError):  # a run that is being trained
                if attempt == _MAX_ATTEMPTS - 1:
                    raise
                continue
            _copies[self] = (found, target)
            return target
        raise RuntimeError("a copy has no attempts")

    def copy_files(self, entries: Iterable[Entry], target: Path) -> None:
        """Copy listed files to a local folder.

        Raises:
            PathError: The name of a file is not a path within the folder.
            NoSuchPathError: A file was deleted.
            ChangedFileError: A file has another version by now.
        """
        for entry in entries:
            local = target / self._check_name(entry.name)
            with AtomicFile(local, overwrite=True, syncs_folder=False) as file:
                file.write((self / entry.name).read(version=entry.version))

    def _check_name(self, name: str) -> str:
        if any(part in ("", ".", "..") for part in name.split("/")):
            advice = "Delete the object."
            raise PathError("the key is not the path of a file", path=(self / name).path, advice=advice)
        return name

    # Writing.

    def refuse_read_only(self, advice: str = "") -> None:  # noqa: B027 - some can always be written
        """Refuse a location that cannot be written, or a whole bucket, for which `advice` names a path."""

    def refuse_output(self, *, overwrite: bool) -> None:
        """Refuse an output file that cannot be written, or exists without `overwrite`."""
        # With `overwrite` too: access is checked before any work is done.
        if self.look_up() is not None and not overwrite:
            raise make_existing(self.path)

    @abstractmethod
    def write(self, data: bytes, *, over: str | None = None, syncs_folder: bool = True) -> bool:
        """Write a small file, at once and completely. Return whether it was written.

        Args:
            data: Content of the file. With `over`, it must differ from the content that any other writer
                writes.
            over: Version of the file that is replaced, `ABSENT` for none; None replaces any. The result is
                False if the file has another version. All writers of the file must pass one.
            syncs_folder: Whether the name of the file survives a loss of power, on a disk.
        """

    @abstractmethod
    def write_file(self, file: Path) -> None:
        """Write a file of any size with the content of a local file; it appears when it is complete."""

    def can_copy(self, num_bytes: int) -> bool:
        """Return whether `copy_from` copies a file of that size."""
        return num_bytes >= 0

    def copy_from(self, source: Self) -> None:
        """Write this file with the content of another one; inside a store, the bytes stay there."""
        self.write(source.read())

    @contextmanager
    def writing(self, *, makes_folder: bool = True) -> Iterator[Path]:  # noqa: ARG002 - for disks
        """Yield a local path for a large temporary file, which is at this location when the context ends.

        `makes_folder`: whether to make the folder of the file on a disk, if it does not exist.
        """
        with scratch_folder(is_kept=False) as folder:
            yield folder / self.name
            self.write_file(folder / self.name)

    @contextmanager
    def creating(self, *, overwrite: bool) -> Iterator[AtomicFile]:
        """Open an output file, which appears at the end, if there was no error; see `refuse_output`.

        If the store fails, a complete file is kept on the disk.
        """
        self.refuse_output(overwrite=overwrite)
        with scratch_folder() as folder:
            local = folder / self.name
            with AtomicFile(local) as file:
                yield file
            self.refuse_output(overwrite=overwrite)
            self.write_file(local)

    def remove(self) -> None:
        """Remove the file, if it exists."""
        self.parent.remove_files([self.name])

    @abstractmethod
    def remove_files(self, names: Iterable[str]) -> None:
        """Remove files of this folder by name, those that exist."""

    def remove_folder(self) -> None:
        """Remove this folder with all files, if it exists."""
        self.remove_files([each.name for each in self.list()])

    def check_folder(self, kind: FolderKind, *, overwrite: bool) -> bool:
        """Return whether an output folder exists and is replaced.

        Raises:
            PathError: It must not be replaced: it exists without `overwrite`, or is anything but a folder of
                the kind or an empty one.
        """
        self.refuse_read_only()
        found = [each.name for each in self.list()]
        if found and kind.mark not in found:
            advice = (
                f"Delete them, if they are from {kind.word} that was interrupted, or choose another folder."
            )
            raise PathError(f"contains objects, but is not {kind.word}", path=self.path, advice=advice)
        if found and not overwrite:
            raise make_existing(self.path)
        return bool(found)

    @contextmanager
    def replacing_folder(self, kind: FolderKind, *, overwrite: bool) -> Iterator[Path]:
        """Yield a local folder for new files, which are in this folder when the context ends without error.

        The folder must be one that `check_folder` allows to replace.
        """
        self.check_folder(kind, overwrite=overwrite)
        with scratch_folder() as made:
            yield made
            if self.check_folder(kind, overwrite=overwrite):
                # Without its mark, so that no reader takes a mixture of two folders for one.
                self.remove_files([kind.mark])
                self.remove_folder()
            files = sorted(path for path in made.rglob("*") if path.is_file())
            for path in sorted(files, key=lambda path: path == made / kind.mark):
                (self / path.relative_to(made).as_posix()).write_file(path)


@contextmanager
def naming_original(copy: Path, folder: AnyPath) -> Iterator[None]:
    """Let errors about files of a copy name the files that they are copies of."""
    try:
        yield
    except PenstockError as error:
        if copy != folder and error.path is not None and Path(error.path).is_relative_to(copy):
            relative = Path(error.path).relative_to(copy).as_posix()
            error.path = str(folder if relative == "." else folder / relative)
        raise
