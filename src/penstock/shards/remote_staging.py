"""A data set that is being written to an object store. Loaded when needed, because it needs `obstore`.

In: the folder of the data set in a store. Out: the shards and other files in `.shards-TOKEN/` below it, each
uploaded when it is whole; at the end the manifest, by one conditional write. Every run has a folder of its
own, also one that resumes another: it copies the complete shards. `clean` removes what is left.
"""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Mapping
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
    StoreError,
    WriteError,
)
from penstock.shards.combined_index import COMBINED_NAME, iter_combined
from penstock.shards.entry import ShardEntry
from penstock.shards.index import decode_index, identify, index_name
from penstock.shards.journal import Journal
from penstock.shards.manifest import MANIFEST_NAME, Manifest, ManifestCompression, parse_manifest
from penstock.shards.remote_folders import (
    ANY_SIZE,
    REQUEST_NAME,
    ROWS_NAME,
    RunFolder,
    clean_leftovers,
    find_missing,
    find_unused,
    read_all_json,
    remove_folders,
    remove_plain,
)
from penstock.shards.request import refuse_difference
from penstock.shards.shard_file import ShardFile, name_files
from penstock.shards.staging import Staging
from penstock.storage.atomic import write_failure
from penstock.storage.object_store import fetch, look_up, put, put_file, put_if
from penstock.storage.request_threads import call_all
from penstock.storage.store_path import StorePath

_SHARED: Final = "shared-"  # beginning of the names of folders that an interrupted run may leave


class RemoteStaging(Staging):
    """A data set that is being written to an object store.

    Complete shards stay in the store if it is not committed, for a resumed run.
    """

    def __init__(
        self, out: StorePath, *, overwrite: bool = False, resume: bool = False, clean: bool = False
    ) -> None:
        """Check the output folder; nothing is written yet.

        Args:
            out: Folder of the data set.
            overwrite: Whether an existing data set may be replaced. Its shards are kept for its readers.
            resume: Whether to keep the shards that an earlier run completed.
            clean: Whether to remove what other conversions left, and the shards of the replaced data set.

        Raises:
            PathError: There is a data set, and it may not be replaced, or the store cannot be written to.
            StoreError: The store does not answer, or refuses.
        """
        if not out.is_writable:
            advice = "Pass a path that begins with s3://, gs:// or az://, or a local one."
            raise PathError("cannot be written: HTTPS is read-only", path=out, advice=advice)
        if not out.key:
            raise PathError("is a whole bucket", path=out, advice=f"Choose a folder in it: {out}/data.")
        self._target = out
        self._overwrite = overwrite
        self._resume = resume
        self._cleans = clean
        self._is_committed = False
        self._work: Path | None = None
        self._token = secrets.token_hex(8)
        self._manifest = b""
        self._is_begun = False
        self._may_be_named = False
        self._earlier: list[RunFolder] = []  # with the same request
        self._resumed: list[RunFolder] = []  # unfinished, with the same content
        self._copied: set[str] = set()
        found = look_up(out / MANIFEST_NAME)
        self._etag = None if found is None else found.etag
        if found is not None and not overwrite:
            advice = "Choose another folder, or overwrite it with --overwrite (in Python: overwrite=True)."
            raise PathError("already exists", path=out, advice=advice)

    @property
    def out(self) -> StorePath:  # type: ignore[override]
        """Folder of the data set."""
        return self._target

    @property
    def folder(self) -> StorePath:  # type: ignore[override]
        """Folder of the shards."""
        return self._target / self.shards_folder

    @property
    def shards_folder(self) -> str:
        """Name of the folder of the shards, for the manifest."""
        return f".shards-{self._token}"

    @property
    def _local(self) -> Path:
        if self._work is None:
            raise WriteError("is already closed", path=self._target)
        return self._work

    @property
    def scratch(self) -> Path:
        """Local folder for temporary files."""
        folder = self._local / "scratch"
        folder.mkdir(exist_ok=True)
        return folder

    def make_shared(self) -> StorePath:
        """Return a new folder of the store for temporary files that other machines read and write."""
        return self.folder / f"{_SHARED}{secrets.token_hex(8)}"

    def __enter__(self) -> RemoteStaging:
        try:
            self._work = Path(tempfile.mkdtemp(prefix="penstock-"))
            (self._work / "data").mkdir()
        except OSError as error:
            raise write_failure(Path(tempfile.gettempdir()), error) from error
        self.journal = _RemoteJournal(self._work, self)
        return self

    def begin(self, request: Mapping[str, Any]) -> None:
        """Record the request in a new folder, and find earlier runs that had the same one.

        Raises:
            OptionError: `resume` is set, and all unfinished conversions had other requests.
            StoreError: The store ignores the conditions of writes, does not answer, or refuses.
        """
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
                    path=self._target,
                    advice="Use the same options, or remove --resume (in Python resume=True).",
                )
        self._claim(json.dumps(form).encode())
        if self._cleans:
            remove_folders(each.path for each in others if each not in self._earlier)
        self.journal.begin(request)

    def _claim(self, request: bytes) -> None:
        """Write the request, and check that the store refuses to write it again.

        Of two writers, one can be refused only by a store that checks conditions. Some ignore them.
        """
        self._is_begun = True
        path = self.folder / REQUEST_NAME
        is_written = put_if(path, request, None)
        is_replaced = put_if(path, b"", None) or (self._etag is not None and put_if(path, b"", self._etag))
        if not is_written or is_replaced:
            raise StoreError(
                "the store does not check the conditions of writes, so that two conversions could replace "
                "each other's data",
                path=self._target,
                expected="a write that is refused, because the object exists",
                got="an object that was replaced",
                advice="Use a store with conditional writes (If-None-Match, If-Match), or write to a disk.",
            )

    def add_rows(self, num_rows: int, digest: str) -> None:
        """Record the content of the source, and copy the complete shards of earlier runs with the same one.

        Only a run with the same request and content has the same shards. They are copied inside the store,
        so that no run ever writes to the folder of another one, which may still run.

        Args:
            num_rows: Number of rows that are written.
            digest: Digest of the content of the source, in hex.

        Raises:
            OptionError: The source has changed since the conversion to resume was started.
            StoreError: The store does not answer, or refuses.
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
                path=self._target,
                field="source",
                expected=f"{changed[0].get('rows')} rows (digest {changed[0].get('digest')})",
                got=f"{num_rows} rows (digest {digest})",
                advice="Remove --resume (in Python resume=True) to start again.",
            )
        self.write(ROWS_NAME, json.dumps(own).encode())
        places = {name: folder for folder in same for name in folder.list_indexed()}
        calls = [
            partial(folder.copy_shard, name, self.folder, self._local / "data")
            for name, folder in places.items()
        ]
        for entry in call_all(calls):
            if entry is not None:
                self.journal.add_shard(entry)
        self._copied = set(self.journal.shards)
        self._resumed = [folder for folder, rows in found if rows in (None, own) and not folder.is_complete]

    def shard(
        self, name: str, compression: ManifestCompression = "none", *, planned_bytes: int = 0
    ) -> ShardFile:
        """Create a shard on the local disk."""
        return ShardFile(self._local / "data", name, compression, planned_bytes=planned_bytes)

    def finish(self, shard: ShardFile) -> ShardEntry:
        """Upload a complete shard; its index comes last, and shows that it is complete.

        Raises:
            WriteError: The local disk is full or fails.
            StoreError: The store does not answer, or refuses.
        """
        entry = shard.commit()
        upload_shard(self._local / "data", self.folder, entry)
        self.journal.add_shard(entry)
        return entry

    def adopt_uploaded(self, entry: ShardEntry, index: bytes) -> None:
        """Record a complete shard that another machine uploaded to the folder of the shards.

        Args:
            entry: Entry of the shard.
            index: Content of its index, which the index of all shards is made of.

        Raises:
            WriteError: The local disk is full or fails.
        """
        path = self._local / "data" / index_name(entry.name)
        try:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(index)
        except OSError as error:
            raise write_failure(path, error) from error
        self.journal.add_shard(entry)

    def write(self, name: str, data: bytes) -> None:
        """Write another file of the data set; the manifest is kept for `commit`."""
        if name == MANIFEST_NAME:
            self._manifest = data
        else:
            put(self.folder / name, data)

    def commit(self) -> None:
        """Upload the index of all shards, and then the manifest, unless another one is there.

        Raises:
            BusyError: Another conversion has written the data set in the meantime.
            MissingShardError: Another process has removed shards of this conversion.
            NoSuchPathError: The manifest of the data set to replace was removed in the meantime.
            StoreError: The store does not answer, or refuses.
        """
        if self._is_committed:
            return
        shards = list(parse_manifest(self._manifest).shards())
        combined = self._local / "all.idx"
        try:
            with combined.open("wb") as file:
                for part in iter_combined(shards, self._read_sizes):
                    file.write(part)
        except OSError as error:
            if isinstance(error, StoreError | PathError):
                raise
            raise write_failure(combined, error) from error
        put_file(self.folder / COMBINED_NAME, combined)
        replaced = self._read_replaced() if self._cleans else None
        self._check_shards(shards)
        self._may_be_named = True  # from now on, also if the answer is lost
        if not put_if(self._target / MANIFEST_NAME, self._manifest, self._etag):
            self._may_be_named = False
            raise self._refuse_lost()
        self._is_committed = True
        if self._cleans:
            clean_leftovers(self._target)
            if replaced is not None:
                remove_plain(self._target, replaced)
        else:
            self._remove_resumed()
        self.close()

    def _check_shards(self, shards: Iterable[ShardEntry]) -> None:
        """Compare the shards in the store with the manifest: another process may have removed them."""
        missing = find_missing(self.folder, shards, with_indexes=True)
        if missing is None:
            return
        found = look_up(self._target / MANIFEST_NAME)
        if (None if found is None else found.etag) != self._etag:
            raise self._refuse_lost()  # the other conversion has removed what it replaced
        raise MissingShardError(
            "was removed or changed before the data set was complete",
            path=missing.path,
            expected=missing.expected,
            got=missing.got,
            advice="Run the conversion again, while no other one runs with --clean (in Python: clean=True).",
        )

    def _refuse_lost(self) -> BusyError | NoSuchPathError:
        """Return the error for a manifest that is no longer the one that was there at the beginning."""
        if self._etag is not None and look_up(self._target / MANIFEST_NAME) is None:
            return NoSuchPathError(
                "the manifest of the data set to replace was removed in the meantime",
                path=self._target / MANIFEST_NAME,
                advice="Run the conversion again with --resume (in Python: resume=True).",
            )
        return BusyError(
            "another conversion has written this data set in the meantime",
            path=self._target,
            advice="Open that one, or replace it with --overwrite (in Python: overwrite=True).",
        )

    def _read_replaced(self) -> Manifest | None:
        """Return the manifest of the data set that is replaced; None if there is none that is valid."""
        if self._etag is None:
            return None
        path = self._target / MANIFEST_NAME
        try:
            return parse_manifest(bytes(fetch(path, etag=self._etag).data), path)
        except (NoSuchPathError, ChangedFileError, ManifestError):
            return None

    def _remove_resumed(self) -> None:
        """Remove the folders of the runs that this one continued.

        None of them can be committed any more: the manifest has changed since they began.
        """
        try:
            remove_folders(each.path for each in self._resumed)
        except (StoreError, PathError) as error:
            what = f"{self._target}: the data set is complete, but an earlier run's files are left: {error}"
            warnings.warn(f"{what} Remove them with --clean (in Python: clean=True).", stacklevel=2)

    def _read_sizes(self, shard: ShardEntry) -> NDArray[Any]:
        """Return the sizes of the frames of a shard, from its index on the local disk."""
        path = self._local / "data" / index_name(shard.name)
        found = decode_index(path.read_bytes(), identify(shard), ANY_SIZE)
        if found is None:
            raise CorruptRecordError(
                "the index of a shard is damaged",
                path=self.folder / index_name(shard.name),
                advice="Run the conversion again with --clean.",
            )
        return np.diff(found[0])

    def close(self) -> None:
        """Remove the local files. Complete shards that were not committed are kept for a resumed run.

        The folder of this run in the store is removed if it has no shard that earlier runs do not have.
        """
        if self._work is None:
            return
        work, self._work = self._work, None
        self.journal.close()
        shutil.rmtree(work, ignore_errors=True)
        is_kept = self._is_committed or self._may_be_named or not self._copied.issuperset(self.journal.shards)
        if self._is_begun and not is_kept:
            try:
                remove_folders([self.folder])
            except (StoreError, PathError):
                return  # the error that ended the conversion matters more

    def __del__(self) -> None:
        if getattr(self, "_work", None) is not None:
            self.close()


def upload_shard(local: Path, folder: StorePath, entry: ShardEntry) -> None:
    """Upload a complete shard; its index comes last, and shows that it is complete. The index stays on disk.

    Args:
        local: Folder of the shard and its indexes.
        folder: Folder of the store.
        entry: Entry of the shard.

    Raises:
        WriteError: The local disk fails.
        StoreError: The store does not answer, or refuses.
    """
    data, index, text = (local / name for name in name_files(entry))
    try:
        put_file(folder / entry.name, data)
        data.unlink()
        if text.exists():
            put_file(folder / text.name, text)
            text.unlink()
        put_file(folder / index_name(entry.name), index)
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise write_failure(data, error) from error


class _RemoteJournal(Journal):
    """The journal of a conversion to a store: the store has what a resumed run needs."""

    def __init__(self, folder: Path, staging: RemoteStaging) -> None:
        super().__init__(folder, resume=False)
        self._staging = staging

    def add_rows(self, num_rows: int, digest: str) -> None:
        """Record that the source was read completely, and take the shards of earlier runs."""
        super().add_rows(num_rows, digest)
        self._staging.add_rows(num_rows, digest)
