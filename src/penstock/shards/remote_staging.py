"""A data set that is being written to an object store. Loaded when needed, because it needs `obstore`.

In: the folder of the data set in a store. Out: the shards and other files in `.shards-TOKEN/` below it, each
uploaded when it is whole; at the end the manifest, by one conditional write. A folder that no manifest names
is what an unfinished conversion left, or an earlier version: `resume` continues it, `clean` removes it.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BusyError, CorruptRecordError, NoSuchPathError, PathError, StoreError, WriteError
from penstock.shards.combined_index import COMBINED_NAME, iter_combined
from penstock.shards.entry import ShardEntry
from penstock.shards.index import INDEX_FOLDER, LONGEST_HEADER, decode_index, identify, index_name
from penstock.shards.journal import Journal
from penstock.shards.manifest import MANIFEST_NAME, Manifest, ManifestCompression, parse_manifest
from penstock.shards.request import refuse_difference
from penstock.shards.shard_file import ShardFile, name_files
from penstock.shards.staging import Staging
from penstock.storage.atomic import write_failure
from penstock.storage.object_store import delete, fetch, list_objects, look_up, put, put_file, put_if
from penstock.storage.store_path import StorePath

_REQUEST: Final = "request.json"
_ROWS: Final = "rows.json"
_SHARED: Final = "shared-"  # beginning of the names of folders that an interrupted run may leave
_FOLDER = re.compile(r"\.shards-[0-9a-f]{16}")
_ANY_SIZE: Final = 1 << 62


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
        self._shards: dict[str, ShardEntry] = {}
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
        """Record the request, or find the unfinished conversion that had the same one.

        Raises:
            OptionError: `resume` is set, and all unfinished conversions had other requests.
        """
        form = json.loads(json.dumps(request))
        others = list_unfinished(self._target)
        if self._resume and others:
            known = {folder: _read_json(folder / _REQUEST) for folder in others}
            same = [folder for folder, begun in known.items() if begun == form]
            if same:
                self._token = same[0].name.partition("-")[2]
                self._find_complete()
                others.remove(same[0])
            elif not self._cleans:
                begun = next((each for each in known.values() if each is not None), None)
                if begun is not None:
                    refuse_difference(
                        begun,
                        form,
                        what="the conversion to resume was started with a different",
                        path=self._target,
                        advice="Use the same options, or remove --resume (in Python resume=True).",
                    )
        if self._cleans:
            _remove(others)
        put(self.folder / _REQUEST, json.dumps(form).encode())
        self.journal.begin(request)

    def _find_complete(self) -> None:
        """Note the shards of an unfinished conversion: an index is uploaded after its shard."""
        sizes = {each.path.relative_to(self.folder): each.num_bytes for each in list_objects(self.folder)}
        if left := [self.folder / name for name in sizes if name.startswith(_SHARED)]:
            delete(left)
        for name in [name for name in sizes if name.startswith(f"{INDEX_FOLDER}/") and name != COMBINED_NAME]:
            try:
                line = bytes(fetch(self.folder / name, 0, LONGEST_HEADER).data).partition(b"\n")[0]
                header = json.loads(line)
                num_bytes, sha256 = header["identity"]
                shard = name.removeprefix(f"{INDEX_FOLDER}/").removesuffix(".idx")
                entry = ShardEntry(shard, int(header["records"]), int(num_bytes), str(sha256))
            except (ValueError, KeyError, TypeError):
                continue
            is_whole = sizes.get(shard) == entry.num_bytes
            is_indexed = header.get("compression") != "none" or name_files(entry)[2] in sizes
            if is_whole and is_indexed:
                self.journal.shards[shard] = entry
        rows = _read_json(self.folder / _ROWS)
        if rows is not None:
            self.journal._rows = (int(rows["rows"]), str(rows["digest"]))

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
        if not put_if(self._target / MANIFEST_NAME, self._manifest, self._etag):
            raise BusyError(
                "another conversion has written this data set in the meantime",
                path=self._target,
                advice="Open that one, or replace it with --overwrite (in Python: overwrite=True).",
            )
        self._is_committed = True
        if self._cleans:
            _remove(list_unfinished(self._target))
        self.close()

    def _read_sizes(self, shard: ShardEntry) -> NDArray[Any]:
        """Return the sizes of the frames of a shard, from its index."""
        local = self._local / "data" / index_name(shard.name)
        remote = self.folder / index_name(shard.name)
        data = local.read_bytes() if local.exists() else bytes(fetch(remote).data)
        found = decode_index(data, identify(shard), _ANY_SIZE)
        if found is None:
            raise CorruptRecordError(
                "the index of a shard is damaged",
                path=remote,
                advice="Run the conversion again with --clean.",
            )
        return np.diff(found[0])

    def close(self) -> None:
        """Remove the local files. Complete shards that were not committed are kept for a resumed run."""
        if self._work is None:
            return
        work, self._work = self._work, None
        self.journal.close()
        shutil.rmtree(work, ignore_errors=True)
        if not self._is_committed and not self.journal.shards:
            try:
                _remove([self.folder])
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
        """Record that the source was read completely; in a resumed run its content must be the same."""
        super().add_rows(num_rows, digest)
        self._staging.write(_ROWS, json.dumps({"rows": num_rows, "digest": digest}).encode())


def list_unfinished(out: StorePath) -> list[StorePath]:
    """Return the folders of shards that the manifest of a data set does not name, in a stable order."""
    folders = {each.path.relative_to(out).partition("/")[0] for each in list_objects(out)}
    try:
        current = parse_manifest(bytes(fetch(out / MANIFEST_NAME).data), out / MANIFEST_NAME).folder
    except NoSuchPathError:
        current = ""
    return [out / name for name in sorted(folders) if _FOLDER.fullmatch(name) and name != current]


def _remove(folders: list[StorePath]) -> None:
    """Remove folders of shards; the request goes last, so that the rest can be found again."""
    for folder in folders:
        paths = [each.path for each in list_objects(folder)]
        paths.sort(key=lambda path: path.name == _REQUEST)
        if paths:
            delete(paths)


def clean_leftovers(out: StorePath) -> None:
    """Remove what unfinished conversions and replaced data sets left in a folder.

    Raises:
        StoreError: The store does not answer, or refuses.
    """
    _remove(list_unfinished(out))


def check_objects(out: StorePath, manifest: Manifest) -> None:
    """Compare the sizes of the shards of a finished data set with its manifest.

    Raises:
        CorruptRecordError: A shard is missing, or has another size.
    """
    folder = out / manifest.folder if manifest.folder else out
    sizes = {each.path.name: each.num_bytes for each in list_objects(folder)}
    for shard in manifest.shards():
        if sizes.get(shard.name) != shard.num_bytes:
            raise CorruptRecordError(
                "the shard is missing, or was changed after it was written",
                path=folder / shard.name,
                expected=f"{shard.num_bytes} bytes",
                got=sizes.get(shard.name, "no object"),
                advice=f"Run 'penstock verify {out}', or replace the data set: --overwrite, in Python "
                "overwrite=True.",
            )


def _read_json(path: StorePath) -> Any:
    """Return the content of a small object; None if there is none that is valid."""
    try:
        return json.loads(bytes(fetch(path).data))
    except (NoSuchPathError, ValueError):
        return None
