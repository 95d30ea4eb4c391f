"""Publication on a disk: a hidden folder that gets the name of the data set.

In: the output folder. Out: `.NAME.partial` next to it, with the data set in `data/`, the journal for resuming
in `journal.jsonl`, and the process that writes in `owner.json`. At the end `data/` is renamed to the output
folder in one step.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import BusyError, PathError, WriteError
from penstock.format.entry import ShardEntry
from penstock.format.index import INDEX_FOLDER
from penstock.format.manifest import Manifest
from penstock.shards.request import check_shards
from penstock.shards.shard_file import is_complete, name_files
from penstock.shards.staging.destination import check_folder, find_staging, refuse_folder
from penstock.shards.staging.journal import JOURNAL_NAME, Journal
from penstock.shards.staging.lock import OWNER_NAME, WriterLock
from penstock.shards.staging.publication import NewShards, ShardFolder
from penstock.storage.atomic import (
    AtomicFile,
    exchange,
    refuse_existing,
    restore_folder,
    sync_folder,
    write_failure,
)
from penstock.storage.store_path import AnyPath

_DATA, _SCRATCH, _ASIDE = "data", "scratch", "old"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_OWN_NAMES = {OWNER_NAME, JOURNAL_NAME, _DATA, _SCRATCH, _ASIDE}


@dataclass(frozen=True)
class DiskDelivery:
    """Delivery by a folder that all machines see.

    Attributes:
        shared: Folder in which each call writes its shards to a new folder.
    """

    shared: Path

    def write(self, work: Callable[[ShardFolder], Iterable[ShardEntry]]) -> NewShards:
        """Call a function that writes shards to a new folder; see `Delivery.write`."""
        folder = self.shared / f"shards-{secrets.token_hex(8)}"
        folder.mkdir()
        return NewShards(folder.name, list(work(ShardFolder(folder))), [])


class DiskPublication:
    """The publication of a data set on a disk; see `Publication`."""

    shards_folder = ""

    def __init__(self, out: Path, *, overwrite: bool = False, resume: bool = False) -> None:
        """Check the output folder; nothing is written yet.

        `overwrite`: whether an existing data set may be replaced. It is kept until the new one is complete.
        `resume`: whether to keep the shards that an earlier run completed.
        """
        self.out: AnyPath = out
        self._out = out
        self._hidden = find_staging(out)
        self.folder: AnyPath = self._hidden / _DATA
        self._overwrite = overwrite
        self._resume = resume
        self._lock: WriterLock | None = None
        self._journal: Journal | None = None
        check_folder(out, overwrite=overwrite)

    @property
    def is_open(self) -> bool:
        """Whether this process has locked the output folder."""
        return self._lock is not None

    @property
    def local(self) -> Path:
        """The hidden folder, whose files get no other name."""
        return self._hidden / _DATA

    @property
    def scratch(self) -> Path:
        """Folder on the same disk for temporary files."""
        folder = self._hidden / _SCRATCH
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise write_failure(folder, error) from error
        return folder

    def make_shared(self) -> AnyPath:
        """Return a new folder that all machines must see."""
        folder = self.scratch / f"shared-{secrets.token_hex(8)}"
        try:
            folder.mkdir()
        except OSError as error:
            raise write_failure(folder, error) from error
        return folder

    def make_delivery(self, shared: AnyPath) -> DiskDelivery:
        """Return the delivery by a shared folder."""
        return DiskDelivery(Path(shared))

    def open(self) -> Journal:
        """Lock the output folder for this process; see `Publication.open`."""
        try:
            self._out.parent.mkdir(parents=True, exist_ok=True)
            _refuse_foreign(self._hidden)
            self._lock = WriterLock(self._hidden)
        except (BusyError, PathError):
            raise
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise write_failure(self._hidden, error) from error
            raise refuse_folder(self._out, error) from error
        try:
            self._journal = self._prepare()
        except BaseException:
            self.close((), is_published=False)
            raise
        return self._journal

    def _prepare(self) -> Journal:
        restore_folder(self._hidden / _ASIDE, self._out)
        check_folder(self._out, overwrite=self._overwrite)
        journal = Journal(self._hidden, resume=self._resume)
        _drop_incomplete(journal.shards, self.local)
        try:
            _clear(self._hidden, keep=self._name_kept(journal))
            self.local.mkdir(exist_ok=True)
            if self._out.exists():  # the new folder has the permissions of the old one
                self.local.chmod(stat.S_IMODE(self._out.stat().st_mode))
            for folder in (self._hidden, self._out.parent):
                sync_folder(folder)
        except OSError as error:
            journal.close()
            raise write_failure(self._hidden, error) from error
        return journal

    def begin(self, request: Mapping[str, Any]) -> None:
        """Record the request in the journal."""
        if self._journal is not None:
            self._journal.begin(request)

    def recover(self, num_rows: int, digest: str) -> Iterable[ShardEntry]:  # noqa: ARG002
        """Return nothing: the journal has the complete shards."""
        return ()

    def add(self, entry: ShardEntry) -> None:
        """Do nothing: a complete shard has its name."""

    def adopt(self, shared: AnyPath, new: NewShards, number: int) -> None:
        """Move a complete shard from a folder on the same disk."""
        folder, entry = Path(shared) / new.folder, new.entries[number]
        try:
            for name in reversed(name_files(entry)):  # the shard itself last
                if name == entry.name or (folder / name).exists():  # not all shards have all indexes
                    (self.local / name).parent.mkdir(exist_ok=True)
                    (folder / name).replace(self.local / name)
            for each in (self.local / INDEX_FOLDER, self.local):
                sync_folder(each)
        except OSError as error:
            raise write_failure(self.local / entry.name, error) from error

    def release(self, shared: AnyPath, new: NewShards) -> None:
        """Remove the folder of the shards that were adopted."""
        shutil.rmtree(Path(shared) / new.folder, ignore_errors=True)

    def write(self, name: str, data: bytes) -> None:
        """Write another file of the data set."""
        with AtomicFile(self.local / name, syncs_folder=False) as file:
            file.write(data)

    def publish(self) -> None:
        """Flush all names to disk and rename the folder; see `Publication.publish`."""
        if self._lock is None:
            raise WriteError("is already closed", path=self.out)
        replaces = check_folder(self._out, overwrite=self._overwrite)
        try:
            _sync_tree(self.local)
            if replaces:
                exchange(self.local, self._out, self._hidden / _ASIDE)
            else:
                self.local.rename(self._out)  # also replaces an empty folder
        except OSError as error:
            if not replaces:
                refuse_existing(self._out)
            raise write_failure(self._out, error) from error
        try:
            for folder in (self._out.parent, self._hidden):
                sync_folder(folder)
        except OSError as error:
            raise write_failure(self._out, error) from error

    def close(self, shards: Collection[str], *, is_published: bool) -> None:
        """Release the folder; see `Publication.close`."""
        if self._lock is None:
            return
        lock, self._lock = self._lock, None
        journal = self._journal
        with contextlib.suppress(OSError):
            if journal is not None:
                journal.close()
                is_worth = not is_published and (shards or journal.failure)
                _clear(self._hidden, keep=self._name_kept(journal) if is_worth else {OWNER_NAME})
        lock.release()
        with contextlib.suppress(OSError):
            self._hidden.rmdir()  # if nothing is left in it

    def _name_kept(self, journal: Journal) -> set[str]:
        names = (name for shard in journal.shards.values() for name in name_files(shard))
        return {OWNER_NAME, JOURNAL_NAME, *(f"{_DATA}/{name}" for name in names)}

    @classmethod
    def check_finished(
        cls,
        out: AnyPath,
        manifest: Manifest,
        request: Mapping[str, Any],
        *,
        clean: bool,  # noqa: ARG003 - also without it
    ) -> None:
        """Compare all bytes of the shards, and remove what a killed run left; see `Publication`."""
        check_shards(Path(out), manifest)
        cls._clear_leftover(Path(out), request)

    @classmethod
    def _clear_leftover(cls, out: Path, request: Mapping[str, Any]) -> None:
        """Remove the hidden folder of a run that was killed after its data set was complete.

        The hidden folder of a different request is kept.
        """
        if not find_staging(out).exists():
            return
        left = cls(out, overwrite=True, resume=True)
        journal = left.open()
        is_own = journal.begun in (None, request)
        left.close(journal.shards, is_published=False)
        if is_own:
            cleared = cls(out, overwrite=True)  # without `resume`, which clears it
            cleared.close(cleared.open().shards, is_published=False)


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
