"""The folders of shards of a data set in an object store. Loaded when needed, because it needs `obstore`.

In: the folder of a data set. Out: its folders `.shards-TOKEN/` that the manifest does not name, what they
contain, and copies of their shards. Each such folder was written by one run only, and is never written to
again: an unfinished conversion, one that was not committed, or a data set that was replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from penstock.errors import CorruptRecordError, NoSuchPathError
from penstock.shards.combined_index import COMBINED_NAME
from penstock.shards.destination import REJECTS_NAME
from penstock.shards.entry import ShardEntry
from penstock.shards.index import INDEX_FOLDER, INDEX_SUFFIX, decode_index, identify, index_name, tfindex_name
from penstock.shards.manifest import MANIFEST_NAME, Manifest, parse_manifest
from penstock.shards.shard_file import name_files
from penstock.shards.tfds import TFDS_NAMES
from penstock.storage.atomic import write_failure
from penstock.storage.object_store import copy, delete, fetch, list_objects
from penstock.storage.request_threads import call_all
from penstock.storage.store_path import StorePath

REQUEST_NAME: Final = "request.json"
ROWS_NAME: Final = "rows.json"
ANY_SIZE: Final = 1 << 62

_FOLDER = re.compile(r"\.shards-[0-9a-f]{16}")
_MAX_COPIED_BYTES: Final = 5 << 30  # limit of S3 for a copy by one request


@dataclass
class RunFolder:
    """A folder of shards that the manifest does not name.

    Attributes:
        path: Path of the folder.
        sizes: Size of each object in it, by its path in the folder.
    """

    path: StorePath
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether all shards are there: the index of all shards is uploaded last, before the manifest."""
        return COMBINED_NAME in self.sizes

    def list_indexed(self) -> Iterator[str]:
        """Yield the names of the shards whose index is there: an index is uploaded after its shard."""
        for name in self.sizes:
            shard = name.removeprefix(f"{INDEX_FOLDER}/").removesuffix(INDEX_SUFFIX)
            if name == index_name(shard) != COMBINED_NAME and shard in self.sizes:
                yield shard

    def copy_shard(self, name: str, folder: StorePath, local: Path) -> ShardEntry | None:
        """Copy a complete shard to another folder of the store, and its index to the local disk, too.

        Args:
            name: Name of the shard.
            folder: Folder of the store.
            local: Local folder of shards.

        Returns:
            Entry of the shard; None if it is not complete, was removed, or is too large to be copied.

        Raises:
            WriteError: The local disk is full or fails.
            StoreError: The store does not answer, or refuses.
        """
        try:
            data = bytes(fetch(self.path / index_name(name)).data)
            entry = self._check_index(name, data)
            if entry is None or (folder.scheme == "s3" and entry.num_bytes > _MAX_COPIED_BYTES):
                return None
            copied = (name, tfindex_name(name), index_name(name))  # the index last
            for each in copied:
                if each in self.sizes:
                    copy(self.path / each, folder / each)
        except NoSuchPathError:
            return None
        path = local / index_name(name)
        try:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        except OSError as error:
            raise write_failure(path, error) from error
        return entry

    def _check_index(self, name: str, data: bytes) -> ShardEntry | None:
        """Return the entry of a shard with that index; None if they do not match."""
        try:
            header = json.loads(data.partition(b"\n")[0])
            num_bytes, sha256 = header["identity"]
            entry = ShardEntry(name, int(header["records"]), int(num_bytes), str(sha256))
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        found = decode_index(data, identify(entry), ANY_SIZE)
        if found is None or len(found[0]) != entry.num_records + 1 or self.sizes[name] != entry.num_bytes:
            return None
        return entry if found[1] != "none" or tfindex_name(name) in self.sizes else None


def find_unused(out: StorePath) -> list[RunFolder]:
    """Return the folders of shards that the manifest of a data set does not name, in a stable order.

    They belong to conversions that are unfinished or still run, and to data sets that were replaced.
    """
    folders: dict[str, RunFolder] = {}
    for each in list_objects(out):
        name, _, rest = each.path.relative_to(out).partition("/")
        if _FOLDER.fullmatch(name):
            folders.setdefault(name, RunFolder(out / name)).sizes[rest] = each.num_bytes
    try:
        current = parse_manifest(bytes(fetch(out / MANIFEST_NAME).data), out / MANIFEST_NAME).folder
    except NoSuchPathError:
        current = ""
    return [folders[name] for name in sorted(folders) if name != current]


def read_all_json(folders: Sequence[RunFolder], name: str) -> list[Any]:
    """Return the content of a small object of each folder; None where there is none that is valid."""
    calls: list[Callable[[], Any]] = [partial(_read_json, folder.path / name) for folder in folders]
    return list(call_all(calls))


def _read_json(path: StorePath) -> Any:
    try:
        return json.loads(bytes(fetch(path).data))
    except (NoSuchPathError, ValueError, RecursionError):
        return None


def remove_folders(folders: Iterable[StorePath]) -> None:
    """Remove folders of shards; the request is removed last, so that the rest can be found again.

    Raises:
        StoreError: The store does not answer, or refuses.
    """
    for folder in folders:
        paths = [each.path for each in list_objects(folder)]
        paths.sort(key=lambda path: path.name == REQUEST_NAME)
        if paths:
            delete(paths)


def clean_leftovers(out: StorePath) -> None:
    """Remove what unfinished conversions and replaced data sets left in a folder.

    Raises:
        StoreError: The store does not answer, or refuses.
    """
    remove_folders(each.path for each in find_unused(out))


def remove_plain(out: StorePath, replaced: Manifest) -> None:
    """Remove the files of a replaced data set that are next to its manifest: it was copied from a disk.

    Raises:
        StoreError: The store does not answer, or refuses.
    """
    if not replaced.folder:
        names = [name for shard in replaced.shards() for name in name_files(shard)]
        delete([out / name for name in (*names, REJECTS_NAME, *TFDS_NAMES)])


class Missing(NamedTuple):
    """A file of a data set that is not in the store, or has another size there.

    Attributes:
        path: Path of the file.
        expected: What should be there.
        got: What is there.
    """

    path: StorePath
    expected: str
    got: str


def find_missing(folder: StorePath, shards: Iterable[ShardEntry], *, with_indexes: bool) -> Missing | None:
    """Return the first shard that is missing or has another size, by one listing; None if all are there.

    Args:
        folder: Folder of the shards.
        shards: Entries of the shards.
        with_indexes: Whether the index of each shard must be there, too.

    Raises:
        StoreError: The store does not answer, or refuses.
    """
    sizes = {each.path.relative_to(folder): each.num_bytes for each in list_objects(folder)}
    for shard in shards:
        if sizes.get(shard.name) != shard.num_bytes:
            got = f"{sizes[shard.name]} bytes" if shard.name in sizes else "no object"
            return Missing(folder / shard.name, f"{shard.num_bytes} bytes", got)
        if with_indexes and index_name(shard.name) not in sizes:
            return Missing(folder / index_name(shard.name), "the index of a shard", "no object")
    return None


def check_objects(out: StorePath, manifest: Manifest) -> None:
    """Compare the sizes of the shards of a finished data set with its manifest.

    Raises:
        CorruptRecordError: A shard is missing, or has another size.
    """
    folder = out / manifest.folder if manifest.folder else out
    missing = find_missing(folder, manifest.shards(), with_indexes=False)
    if missing is not None:
        raise CorruptRecordError(
            "the shard is missing, or was changed after it was written",
            path=missing.path,
            expected=missing.expected,
            got=missing.got,
            advice=f"Run 'penstock verify {out}', or replace the data set: --overwrite, in Python "
            "overwrite=True.",
        )
