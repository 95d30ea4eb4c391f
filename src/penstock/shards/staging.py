"""The hidden folder in which a data set is written until it is complete.

In: the output folder. Out: `.NAME.partial` next to it, with the data set in `data/`, the journal for resuming
in `journal.jsonl`, and the process that writes in `owner.json`. At the end `data/` is renamed to the output
folder in one step.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import stat
import warnings
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

from penstock.errors import BusyError, PathError, WriteError
from penstock.shards.destination import check_folder, find_staging, refuse_folder, resolve_folder
from penstock.shards.entry import ShardEntry
from penstock.shards.index import INDEX_FOLDER
from penstock.shards.journal import JOURNAL_NAME, Journal
from penstock.shards.lock import OWNER_NAME, WriterLock
from penstock.shards.manifest import ManifestCompression
from penstock.shards.shard_file import ShardFile, is_complete, name_files
from penstock.storage.atomic import AtomicFile, refuse_existing, sync_folder, write_failure
from penstock.storage.paths import PathLike
from penstock.storage.store_path import AnyPath

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
# The C library, the kernel or the file system (NFS, some overlays) does not support it.
_NOT_SUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


def exchange(new: Path, old: Path, aside: Path) -> None:
    """Give the folder `new` the name of `old`; afterwards the old folder is at `new` or at `aside`.

    `aside` is used only where two names cannot be exchanged in one step. Then, for a moment, no folder has
    the name of `old`; after a crash at that moment, `restore_folder` restores it.

    Raises:
        OSError: The folders cannot be renamed; both keep their names.
    """
    if _exchange_names(new, old):
        return
    old.rename(aside)
    try:
        new.rename(old)
    except BaseException:
        aside.rename(old)
        raise


def restore_folder(aside: Path, old: Path) -> None:
    """Restore the name of a folder after a crash, unless something else has that name now."""
    with contextlib.suppress(OSError):
        aside.rename(old)  # an empty folder is replaced, anything else is not


def _exchange_names(one: Path, other: Path) -> bool:
    """Exchange two names and return True; return False, with nothing done, if that is not supported."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    code = renameat2(
        ctypes.c_int(_AT_FDCWD),
        ctypes.c_char_p(os.fsencode(one)),
        ctypes.c_int(_AT_FDCWD),
        ctypes.c_char_p(os.fsencode(other)),
        ctypes.c_uint(_RENAME_EXCHANGE),
    )
    if code == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_SUPPORTED:
        return False
    raise OSError(number, os.strerror(number), os.fspath(other))


_DATA, _SCRATCH, _ASIDE = "data", "scratch", "old"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_OWN_NAMES = {OWNER_NAME, JOURNAL_NAME, _DATA, _SCRATCH, _ASIDE}


class Staging:
    """A data set that is being written. Without a commit, `with` keeps complete shards for a resumed run.

    Attributes:
        out: Output folder.
        folder: Folder in which the files are written.
        journal: Journal of the shards that are complete; set when the staging is entered.

    Example:
        >>> with Staging("toys") as staging:
        ...     staging.begin({"seed": 7})
        ...     with staging.shard("train-00000-of-00001.tfrecord") as shard:
        ...         entry = staging.finish(shard)
        ...     staging.write("penstock.json", b"{}")
        ...     staging.commit()
    """

    journal: Journal

    def __init__(self, out: PathLike, *, overwrite: bool = False, resume: bool = False) -> None:
        """Check the output folder; nothing is written yet.

        Args:
            out: Output folder. Links are resolved.
            overwrite: Whether an existing data set may be replaced. It is kept until the new one is complete.
            resume: Whether to keep the shards that an earlier run completed.

        Raises:
            PathError: The folder exists and may not be replaced, or cannot be written.
        """
        self.out = resolve_folder(out)
        self.folder = self._hidden / _DATA
        self._overwrite = overwrite
        self._resume = resume
        self._lock: WriterLock | None = None
        self._is_committed = False
        check_folder(self.out, overwrite=overwrite)

    @property
    def shards_folder(self) -> str:
        """Name of the folder of the shards next to the manifest; "" if they are in the same folder."""
        return ""

    @property
    def _hidden(self) -> Path:
        return find_staging(self.out)

    @property
    def scratch(self) -> Path:
        """Folder on the same disk for temporary files.

        Raises:
            WriteError: The disk is full or fails.
        """
        folder = self._hidden / _SCRATCH
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise write_failure(folder, error) from error
        return folder

    def make_shared(self) -> AnyPath:
        """Return a new folder for temporary files that processes on other machines read and write.

        Raises:
            WriteError: The disk is full or fails.
        """
        folder = self.scratch / f"shared-{secrets.token_hex(8)}"
        try:
            folder.mkdir()
        except OSError as error:
            raise write_failure(folder, error) from error
        return folder

    def __enter__(self) -> Staging:
        """Lock the output folder for this process.

        Raises:
            BusyError: Another process is writing to the folder.
            PathError: The folder cannot be created, or was created by another process in the meantime.
            WriteError: The disk is full or fails.
        """
        try:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            _refuse_foreign(self._hidden)
            self._lock = WriterLock(self._hidden)
        except (BusyError, PathError):
            raise
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise write_failure(self._hidden, error) from error
            raise refuse_folder(self.out, error) from error
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise
        return self

    def _prepare(self) -> None:
        restore_folder(self._hidden / _ASIDE, self.out)
        check_folder(self.out, overwrite=self._overwrite)
        journal = Journal(self._hidden, resume=self._resume)
        _drop_incomplete(journal.shards, self.folder)
        try:
            _clear(self._hidden, keep=self._name_kept(journal))
            self.folder.mkdir(exist_ok=True)
            if self.out.exists():  # the new folder has the permissions of the old one
                self.folder.chmod(stat.S_IMODE(self.out.stat().st_mode))
            for folder in (self._hidden, self.out.parent):
                sync_folder(folder)
        except OSError as error:
            journal.close()
            raise write_failure(self._hidden, error) from error
        self.journal = journal

    def begin(self, request: Mapping[str, Any]) -> None:
        """Record the request: all that affects the output, as JSON. A resumed run must have the same request.

        Raises:
            OptionError: The request differs; the error names the path of the difference.
        """
        self.journal.begin(request)

    def shard(
        self, name: str, compression: ManifestCompression = "none", *, planned_bytes: int = 0
    ) -> ShardFile:
        """Create a shard; see `ShardFile`."""
        return ShardFile(self.folder, name, compression, planned_bytes=planned_bytes)

    def finish(self, shard: ShardFile) -> ShardEntry:
        """Commit a shard, so that a resumed run reuses it.

        Raises:
            WriteError: The disk is full or fails.
        """
        entry = shard.commit()
        self.journal.add_shard(entry)
        return entry

    def adopt(self, folder: Path, entry: ShardEntry) -> None:
        """Move a complete shard that another process wrote to a folder on the same disk, and record it.

        Args:
            folder: Folder of the shard and its indexes.
            entry: Entry of the shard.

        Raises:
            WriteError: The disk is full or fails, or the shard is not there.
        """
        try:
            for name in reversed(name_files(entry)):  # the shard itself last
                if name == entry.name or (folder / name).exists():  # not all shards have all indexes
                    (self.folder / name).parent.mkdir(exist_ok=True)
                    (folder / name).replace(self.folder / name)
            for each in (self.folder / INDEX_FOLDER, self.folder):
                sync_folder(each)
        except OSError as error:
            raise write_failure(self.folder / entry.name, error) from error
        self.journal.add_shard(entry)

    def adopt_uploaded(self, entry: ShardEntry, index: bytes) -> None:  # noqa: ARG002
        """Record a shard that another machine uploaded; only for object stores."""
        raise WriteError("is not in an object store", path=self.out)

    def write(self, name: str, data: bytes) -> None:
        """Write another file of the data set.

        Raises:
            WriteError: The disk is full or fails.
        """
        with AtomicFile(self.folder / name, syncs_folder=False) as file:
            file.write(data)

    def commit(self) -> None:
        """Flush all names to disk and give the data set its final name. A second call does nothing.

        Raises:
            PathError: The output folder was created by another process.
            WriteError: The disk is full or fails, or the staging is closed.
        """
        if self._is_committed:
            return
        if self._lock is None:
            raise WriteError("is already closed", path=self.out)
        replaces = check_folder(self.out, overwrite=self._overwrite)
        try:
            _sync_tree(self.folder)
            if replaces:
                exchange(self.folder, self.out, self._hidden / _ASIDE)
            else:
                self.folder.rename(self.out)  # also replaces an empty folder
        except OSError as error:
            if not replaces:
                refuse_existing(self.out)
            raise write_failure(self.out, error) from error
        try:
            for folder in (self.out.parent, self._hidden):
                sync_folder(folder)
        except OSError as error:
            raise write_failure(self.out, error) from error
        self._is_committed = True
        self.close()

    def close(self) -> None:
        """Release the folder. Complete shards that were not committed are kept for a resumed run."""
        if self._lock is None:
            return
        lock, self._lock = self._lock, None
        journal: Journal | None = getattr(self, "journal", None)
        with contextlib.suppress(OSError):
            if journal is not None:
                journal.close()
                is_worth = not self._is_committed and (journal.shards or journal.failure)
                _clear(self._hidden, keep=self._name_kept(journal) if is_worth else {OWNER_NAME})
        lock.release()
        with contextlib.suppress(OSError):
            self._hidden.rmdir()  # if nothing is left in it

    def _name_kept(self, journal: Journal) -> set[str]:
        names = (name for shard in journal.shards.values() for name in name_files(shard))
        return {OWNER_NAME, JOURNAL_NAME, *(f"{_DATA}/{name}" for name in names)}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_lock", None) is not None:
            what = f"{self.out}: neither committed nor closed: no data set was written"
            warnings.warn(what, ResourceWarning, source=self, stacklevel=1)
            self.close()


def clear_leftover(out: Path, request: Mapping[str, Any]) -> None:
    """Remove the hidden folder of a run that was killed after its data set was complete.

    The hidden folder of a different request is kept.

    Args:
        out: Folder of the data set.
        request: Request that the data set was made by.

    Raises:
        BusyError: Another process is writing to the folder.
        PathError: The folder cannot be cleared.
    """
    if not find_staging(out).exists():
        return
    with Staging(out, overwrite=True, resume=True) as staging:
        is_own = staging.journal.begun in (None, request)
    if is_own:
        with Staging(out, overwrite=True):
            pass  # entering without `resume` clears it


def _refuse_foreign(hidden: Path) -> None:
    """Refuse a hidden folder that contains files that no conversion wrote."""
    if not os.path.lexists(hidden):
        return
    what = ""
    if hidden.is_symlink() or not hidden.is_dir():
        what = "not a folder"
    elif foreign := sorted(path.name for path in hidden.iterdir() if path.name not in _OWN_NAMES):
        what = f"contains {foreign[0]!r}, which was not written by a conversion"
    if what:
        raise PathError(what, path=hidden, advice="Remove it, or choose another output folder.")


def _drop_incomplete(shards: dict[str, ShardEntry], folder: Path) -> None:
    """Remove the entries of shards whose files are missing or differ."""
    entries = list(shards.values())
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for entry, is_there in zip(
            entries, pool.map(lambda each: is_complete(folder, each), entries), strict=True
        ):
            if not is_there:
                del shards[entry.name]


def _clear(folder: Path, keep: Collection[str]) -> None:
    """Remove all files below a folder except `keep`, and then all empty folders."""
    for where, folders, files in os.walk(folder, topdown=False):
        for name in files:
            path = Path(where) / name
            if path.relative_to(folder).as_posix() not in keep:
                path.unlink(missing_ok=True)  # a process of a killed run may remove it too
        for name in folders:
            path = Path(where) / name
            if path.is_symlink():
                path.unlink()
            else:
                with contextlib.suppress(OSError):
                    path.rmdir()


def _sync_tree(folder: Path) -> None:
    """Flush the names of all files below a folder to disk; each file was flushed before it got its name."""
    for where, _, _ in os.walk(folder):
        sync_folder(Path(where))
