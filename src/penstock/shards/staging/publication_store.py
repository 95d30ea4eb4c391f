"""Publication in an object store: the manifest, by one conditional write.

In: the folder of the data set. Out: the shards and other files in `.shards-TOKEN/` below it, each uploaded
when it is whole; at the end the manifest, by one conditional write. Every run has a separate folder, also one
that resumes another: it copies the complete shards. `clean` removes leftovers.
"""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.errors import (
    BusyError,
    ChangedFileError,
    CorruptRecordError,
    ManifestError,
    MissingShardError,
    NoSuchPathError,
    OptionError,
    PathError,
    PenstockError,
    StoreError,
    WriteError,
)
from penstock.format.entry import ShardEntry
from penstock.format.index import COMBINED_NAME, decode_index, identify, index_name, iter_combined
from penstock.format.manifest import MANIFEST_NAME, Manifest, parse_manifest
from penstock.shards.request import refuse_difference
from penstock.shards.shard_file import ShardFile, name_files
from penstock.shards.staging.journal import Journal
from penstock.shards.staging.publication import NewShards, ShardFolder
from penstock.shards.staging.store_folders import (
    ANY_SIZE,
    REQUEST_NAME,
    ROWS_NAME,
    RunFolder,
    check_objects,
    clean_leftovers,
    find_missing,
    find_unused,
    read_all_json,
    remove_folders,
    remove_plain,
)
from penstock.storage.atomic import write_failure
from penstock.storage.location import ABSENT, Location
from penstock.storage.paths import locate
from penstock.storage.request_threads import call_all
from penstock.storage.store_path import AnyPath

_SHARED: Final = "shared-"  # beginning of the names of folders that an interrupted run may leave


class StorePublication:
    """The publication of a data set in an object store; see `Publication`.

    Complete shards stay in the store if it is not published, for a resumed run.
    """

    def __init__(
        self, out: Location, *, overwrite: bool = False, resume: bool = False, clean: bool = False
    ) -> None:
        """Check the output folder; nothing is written yet.

        `overwrite`: whether an existing data set may be replaced. Its shards are kept for its readers.
        `resume`: whether to keep the shards that an earlier run completed. `clean`: whether to remove what
        other conversions left, and the shards of the replaced data set.
        """
        out.refuse_read_only(f"Choose a folder in it: {out}/data.")
        self._target = out
        self._manifest_file = out / MANIFEST_NAME
        self.out = out.path
        self._overwrite = overwrite
        self._resume = resume
        self._cleans = clean
        self._work: Path | None = None
        self._journal: Journal | None = None
        self.shards_folder = f".shards-{secrets.token_hex(8)}"
        self._shards = out / self.shards_folder
        self.folder = self._shards.path
        self._manifest = b""
        self._is_begun = False
        self._may_be_named = False
        self._earlier: list[RunFolder] = []  # with the same request
        self._resumed: list[RunFolder] = []  # unfinished, with the same content
        self._copied: set[str] = set()
        found = self._manifest_file.look_up()
        self._replaced = ABSENT if found is None else found.version or ABSENT
        if found is not None and not overwrite:
            advice = "Choose another folder, or overwrite it: `overwrite=True`."
            raise PathError("already exists", path=self.out, advice=advice)

    @property
    def is_open(self) -> bool:
        """Whether there are local files."""
        return self._work is not None

    @property
    def _temporary(self) -> Path:
        if self._work is None:
            raise WriteError("is already closed", path=self.out)
        return self._work

    @property
    def local(self) -> Path:
        """Local folder of the shards that are not uploaded yet, and of the indexes of all shards."""
        return self._temporary / "data"

    @property
    def scratch(self) -> Path:
        """Local folder for temporary files."""
        folder = self._temporary / "scratch"
        folder.mkdir(exist_ok=True)
        return folder

    def make_shared(self) -> AnyPath:
        """Return a new folder of the store."""
        return (self._shards / f"{_SHARED}{secrets.token_hex(8)}").path

    def make_delivery(self, shared: AnyPath) -> StoreDelivery:  # noqa: ARG002
        """Return the delivery by uploads."""
        return StoreDelivery(self._shards)

    def open(self) -> Journal:
        """Make a local folder; the store shows earlier runs when the request is known."""
        try:
            self._work = Path(tempfile.mkdtemp(prefix="penstock-"))
            (self._work / "data").mkdir()
            self._journal = Journal(self._work, resume=False)
        except OSError as error:
            self.close((), is_published=False)
            if isinstance(error, PenstockError):
                raise
            raise write_failure(Path(tempfile.gettempdir()), error) from error
        return self._journal

    def begin(self, request: Mapping[str, Any]) -> None:
        """Record the request in a new folder, and find earlier runs that had the same one."""
        form = json.loads(json.dumps(request))
        others = find_unused(self._target)
        if self._resume and others:
            known = list(zip(others, read_all_json(others, REQUEST_NAME), strict=True))
            self._earlier = [folder for folder, begun in known if begun == form]
            unfinished = [begun for folder, begun in known if begun is not None and not folder.is_complete]
            if unfinished and not self._earlier and not self._cleans:
                refuse_difference(
                    unfinished[0],
                    form,
                    what="the conversion to resume was started with a different",
                    path=self.out,
                    advice="Use the same options, or leave out `resume=True`.",
                )
        self._claim(json.dumps(form).encode())
        if self._cleans:
            remove_folders(each.at for each in others if each not in self._earlier)
        if self._journal is not None:
            self._journal.begin(request)

    def _claim(self, request: bytes) -> None:
        """Write the request, and check that the store refuses to write it again.

        Of two writers, one can be refused only by a store that checks conditions. Some ignore them.
        """
        self._is_begun = True
        file = self._shards / REQUEST_NAME
        is_written = file.write(request, over=ABSENT)
        is_replaced = file.write(b"", over=ABSENT) or (
            self._replaced and file.write(b"", over=self._replaced)
        )
        if not is_written or is_replaced:
            raise StoreError(
                "the store does not check the conditions of writes, so that two conversions could replace "
                "each other's data",
                path=self.out,
                expected="a write that is refused, because the object exists",
                got="an object that was replaced",
                advice="Use a store with conditional writes (If-None-Match, If-Match), or write to a disk.",
            )

    def recover(self, num_rows: int, digest: str) -> Iterable[ShardEntry]:
        """Record the content of the source, and copy the complete shards of earlier runs with the same one.

        Only a run with the same request and content has the same shards. They are copied inside the store,
        so that no run ever writes to the folder of another one, which may still run.
        """
        own = {"rows": num_rows, "digest": digest}
        found = list(zip(self._earlier, read_all_json(self._earlier, ROWS_NAME), strict=True))
        same = [folder for folder, rows in found if rows == own]
        changed = [
            rows
            for folder, rows in found
            if isinstance(rows, dict) and rows != own and not folder.is_complete
        ]
        if changed and not same:
            raise OptionError(
                "the source has changed since the conversion to resume was started",
                path=self.out,
                field="source",
                expected=f"{changed[0].get('rows')} rows (digest {changed[0].get('digest')})",
                got=f"{num_rows} rows (digest {digest})",
                advice="Leave out `resume=True` to start again.",
            )
        self.write(ROWS_NAME, json.dumps(own).encode())
        places = {name: folder for folder in same for name in folder.list_indexed()}
        calls = [
            partial(folder.copy_shard, name, self._shards, self.local) for name, folder in places.items()
        ]
        copied = set()
        for entry in call_all(calls):
            if entry is not None:
                copied.add(entry.name)
                yield entry
        self._copied = copied
        self._resumed = [folder for folder, rows in found if rows in (None, own) and not folder.is_complete]

    def add(self, entry: ShardEntry) -> None:
        """Upload a complete shard; its index comes last, and shows that it is complete."""
        upload_shard(self.local, self._shards, entry)

    def adopt(self, shared: AnyPath, new: NewShards, number: int) -> None:  # noqa: ARG002
        """Keep the index of a complete shard that was uploaded, for the index of all shards."""
        entry, index = new.entries[number], new.indexes[number]
        path = self.local / index_name(entry.name)
        try:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(index)
        except OSError as error:
            raise write_failure(path, error) from error

    def release(self, shared: AnyPath, new: NewShards) -> None:
        """Do nothing: the shards are where they belong."""

    def write(self, name: str, data: bytes) -> None:
        """Write another file of the data set; the manifest is kept for `publish`."""
        if name == MANIFEST_NAME:
            self._manifest = data
        else:
            (self._shards / name).write(data)

    def publish(self) -> None:
        """Upload the index of all shards, and then the manifest, unless another one is there."""
        shards = list(parse_manifest(self._manifest).shards())
        combined = self._temporary / "all.idx"
        try:
            with combined.open("wb") as file:
                for part in iter_combined(shards, self._read_sizes):
                    file.write(part)
        except OSError as error:
            if isinstance(error, StoreError | PathError):
                raise
            raise write_failure(combined, error) from error
        (self._shards / COMBINED_NAME).write_file(combined)
        replaced = self._read_replaced() if self._cleans else None
        self._check_shards(shards)
        self._may_be_named = True  # from now on, also if the answer is lost
        if not self._manifest_file.write(self._manifest, over=self._replaced):
            self._may_be_named = False
            raise self._refuse_lost()
        if self._cleans:
            clean_leftovers(self._target)
            if replaced is not None:
                remove_plain(self._target, replaced)
        else:
            self._remove_resumed()

    def _check_shards(self, shards: Iterable[ShardEntry]) -> None:
        """Compare the shards in the store with the manifest: another process may have removed them."""
        missing = find_missing(self._shards, shards, with_indexes=True)
        if missing is None:
            return
        found = self._manifest_file.look_up()
        if (ABSENT if found is None else found.version or ABSENT) != self._replaced:
            raise self._refuse_lost()  # the other conversion has removed what it replaced
        raise MissingShardError(
            "was removed or changed before the data set was complete",
            path=missing.path,
            expected=missing.expected,
            got=missing.got,
            advice="Run the conversion again, while no other one runs with `clean=True`.",
        )

    def _refuse_lost(self) -> BusyError | NoSuchPathError:
        """Return the error for a manifest that is no longer the one that was there at the beginning."""
        if self._replaced and not self._manifest_file.exists():
            return NoSuchPathError(
                "the manifest of the data set to replace was removed in the meantime",
                path=self._manifest_file.path,
                advice="Run the conversion again with `resume=True`.",
            )
        return BusyError(
            "another conversion has written this data set in the meantime",
            path=self.out,
            advice="Open that one, or replace it: `overwrite=True`.",
        )

    def _read_replaced(self) -> Manifest | None:
        """Return the manifest of the data set that is replaced; None if there is none that is valid."""
        if not self._replaced:
            return None
        file = self._manifest_file
        try:
            return parse_manifest(file.read(version=self._replaced), file.path)
        except (NoSuchPathError, ChangedFileError, ManifestError):
            return None

    def _remove_resumed(self) -> None:
        """Remove the folders of the runs that this one continued.

        None of them can be committed any more: the manifest has changed since they began.
        """
        try:
            remove_folders(each.at for each in self._resumed)
        except (StoreError, PathError) as error:
            what = f"{self.out}: the data set is complete, but an earlier run's files are left: {error}"
            warnings.warn(f"{what} Remove them with `clean=True`.", stacklevel=2)

    def _read_sizes(self, shard: ShardEntry) -> NDArray[Any]:
        """Return the sizes of the frames of a shard, from its index on the local disk."""
        path = self.local / index_name(shard.name)
        found = decode_index(path.read_bytes(), identify(shard), ANY_SIZE)
        if found is None:
            raise CorruptRecordError(
                "the index of a shard is damaged",
                path=(self._shards / index_name(shard.name)).path,
                advice="Run the conversion again with `clean=True`.",
            )
        return np.diff(found[0])

    def close(self, shards: Collection[str], *, is_published: bool) -> None:
        """Remove the local files; see `Publication.close`.

        The folder of this run in the store is removed if it has no shard that earlier runs do not have.
        """
        if self._work is None:
            return
        work, self._work = self._work, None
        if self._journal is not None:
            self._journal.close()
        shutil.rmtree(work, ignore_errors=True)
        is_kept = is_published or self._may_be_named or not self._copied.issuperset(shards)
        if self._is_begun and not is_kept:
            try:
                remove_folders([self._shards])
            except (StoreError, PathError):
                return  # the error that ended the conversion matters more

    @classmethod
    def check_finished(
        cls,
        out: AnyPath,
        manifest: Manifest,
        request: Mapping[str, Any],  # noqa: ARG003 - the other folders show theirs
        *,
        clean: bool,
    ) -> None:
        """Compare the sizes of the shards, and clean; `penstock verify` reads all bytes."""
        check_objects(locate(out), manifest)
        if clean:
            clean_leftovers(locate(out))


@dataclass(frozen=True)
class StoreDelivery:
    """Delivery by uploads to the folder of the shards.

    Attributes:
        folder: Folder of the shards.
    """

    folder: Location

    def write(self, work: Callable[[ShardFolder], Iterable[ShardEntry]]) -> NewShards:
        """Call a function that writes shards to a temporary folder, and upload them; see `Delivery.write`."""
        with tempfile.TemporaryDirectory(prefix="penstock-shards-") as temporary:
            entries = list(work(_UploadFolder(Path(temporary), self.folder)))
            indexes = [(Path(temporary) / index_name(entry.name)).read_bytes() for entry in entries]
            return NewShards("", entries, indexes)


class _UploadFolder(ShardFolder):
    """A folder whose shards are uploaded when they are complete."""

    def __init__(self, folder: Path, target: Location) -> None:
        super().__init__(folder)
        self._target = target

    def finish(self, shard: ShardFile) -> ShardEntry:
        """Commit a shard, and upload it."""
        entry = super().finish(shard)
        upload_shard(self.folder, self._target, entry)
        return entry


def upload_shard(local: Path, folder: Location, entry: ShardEntry) -> None:
    """Upload a complete shard; its index comes last, as a sign of that, and stays on the disk."""
    data, index, text = (local / name for name in name_files(entry))
    try:
        (folder / entry.name).write_file(data)
        data.unlink()
        if text.exists():
            (folder / text.name).write_file(text)
            text.unlink()
        (folder / index_name(entry.name)).write_file(index)
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise write_failure(data, error) from error
