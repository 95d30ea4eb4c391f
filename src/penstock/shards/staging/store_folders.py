"""The folders of shards of a data set in an object store.

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
from penstock.format.entry import ShardEntry
from penstock.format.index import (
    COMBINED_NAME,
    INDEX_FOLDER,
    INDEX_SUFFIX,
    decode_index,
    identify,
    index_name,
    tfindex_name,
)
from penstock.format.manifest import MANIFEST_NAME, Manifest, parse_manifest
from penstock.format.tfds import TFDS_NAMES
from penstock.shards.shard_file import name_files
from penstock.shards.staging.destination import REJECTS_NAME
from penstock.storage.atomic import write_failure
from penstock.storage.location import Location
from penstock.storage.request_threads import call_all
from penstock.storage.store_path import AnyPath

REQUEST_NAME: Final = "request.json"
ROWS_NAME: Final = "rows.json"
ANY_SIZE: Final = 1 << 62

_FOLDER = re.compile(r"\.shards-[0-9a-f]{16}")


@dataclass
class RunFolder:
    """A folder of shards that the manifest does not name.

    Attributes:
        at: The folder.
        sizes: Size of each object in it, by its path in the folder.
    """

    at: Location
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

    def copy_shard(self, name: str, folder: Location, local: Path) -> ShardEntry | None:
        """Copy a complete shard to another folder of the store, and its index to the local disk, too.

        Returns:
            Entry of the shard; None if it is not complete, was removed, or is too large to be copied.
        """
        try:
            data = (self.at / index_name(name)).read()
            entry = self._check_index(name, data)
            if entry is None or not folder.can_copy(entry.num_bytes):
                return None
            copied = (name, tfindex_name(name), index_name(name))  # the index last
            for each in copied:
                if each in self.sizes:
                    (folder / each).copy_from(self.at / each)
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


def find_unused(out: Location) -> list[RunFolder]:
    """Return the folders of shards that the manifest of a data set does not name, in a stable order.

    They belong to conversions that are unfinished or still run, and to data sets that were replaced.
    """
    folders: dict[str, RunFolder] = {}
    for each in out.list():
        name, _, rest = each.name.partition("/")
        if _FOLDER.fullmatch(name):
            folders.setdefault(name, RunFolder(out / name)).sizes[rest] = each.num_bytes
    try:
        current = parse_manifest((out / MANIFEST_NAME).read(), (out / MANIFEST_NAME).path).folder
    except NoSuchPathError:
        current = ""
    return [folders[name] for name in sorted(folders) if name != current]


def read_all_json(folders: Sequence[RunFolder], name: str) -> list[Any]:
    """Return the content of a small object of each folder; None where there is none that is valid."""
    calls: list[Callable[[], Any]] = [partial(_read_json, folder.at / name) for folder in folders]
    return list(call_all(calls))


def _read_json(file: Location) -> Any:
    try:
        return json.loads(file.read())
    except (NoSuchPathError, ValueError, RecursionError):
        return None


def remove_folders(folders: Iterable[Location]) -> None:
    """Remove folders of shards; the request is removed last, so that the rest can be found again."""
    for folder in folders:
        names = [each.name for each in folder.list()]
        folder.remove_files(sorted(names, key=lambda name: name.rpartition("/")[2] == REQUEST_NAME))


def clean_leftovers(out: Location) -> None:
    """Remove what unfinished conversions and replaced data sets left in a folder."""
    remove_folders(each.at for each in find_unused(out))


def remove_plain(out: Location, replaced: Manifest) -> None:
    """Remove the files of a replaced data set that are next to its manifest: it was copied from a disk."""
    if not replaced.folder:
        names = [name for shard in replaced.shards() for name in name_files(shard)]
        out.remove_files([*names, REJECTS_NAME, *TFDS_NAMES])


class Missing(NamedTuple):
    """A file of a data set that is not in the store, or has another size there.

    Attributes:
        path: Path of the file.
        expected: Expected content.
        got: Actual content.
    """

    path: AnyPath
    expected: str
    got: str


def find_missing(folder: Location, shards: Iterable[ShardEntry], *, with_indexes: bool) -> Missing | None:
    """Return the first shard that is missing or has another size, by one listing; None if all are there.

    `with_indexes`: whether the index of each shard must be there, too.
    """
    sizes = {each.name: each.num_bytes for each in folder.list()}
    for shard in shards:
        if sizes.get(shard.name) != shard.num_bytes:
            got = f"{sizes[shard.name]} bytes" if shard.name in sizes else "no object"
            return Missing((folder / shard.name).path, f"{shard.num_bytes} bytes", got)
        if with_indexes and index_name(shard.name) not in sizes:
            return Missing((folder / index_name(shard.name)).path, "the index of a shard", "no object")
    return None


def check_objects(out: Location, manifest: Manifest) -> None:
    """Compare the sizes of the shards of a finished data set with its manifest."""
    folder = out / manifest.folder if manifest.folder else out
    missing = find_missing(folder, manifest.shards(), with_indexes=False)
    if missing is not None:
        raise CorruptRecordError(
            "the shard is missing, or was changed after it was written",
            path=missing.path,
            expected=missing.expected,
            got=missing.got,
            advice=f"Run 'penstock verify {out}', or replace the data set: `overwrite=True`.",
        )
