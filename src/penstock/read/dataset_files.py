"""The files of a data set by split, each with its entry in a manifest, if any.

In: a path or several. Out: a `Listing`. Shards named without their folder are looked up in the manifest of
that folder, so that they are read in the same way as with the folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from penstock.columns import Compression
from penstock.errors import NoSuchPathError
from penstock.format.entry import ShardEntry, group_files
from penstock.format.index import INDEX_FOLDER
from penstock.format.manifest import MANIFEST_NAME, Manifest, load_manifest
from penstock.foundation.wording import count
from penstock.schema.comparison import merge_schemas
from penstock.schema.schema import Schema
from penstock.storage.paths import (
    PathLike,
    find_files,
    find_folder,
    find_local_files,
    find_local_size,
    find_matches,
    find_real_path,
    locate,
)
from penstock.storage.store_path import (
    AnyPath,
    as_path,
)

_COMPANION_SUFFIXES = (".tfindex", ".json", ".jsonl")

_UNLISTED = "skipped: the file is not in the manifest"
_UNUSED = "not used: it does not list all given files, so the schema is inferred"


class File(NamedTuple):
    """A file of a data set.

    Attributes:
        folder: Folder of the file.
        name: Name of the file.
        entry: Entry of the file in a manifest, if any.
        compression: Compression that the manifest declares, if any.
    """

    folder: AnyPath
    name: str
    entry: ShardEntry | None = None
    compression: Compression | None = None

    @property
    def path(self) -> AnyPath:
        """Path of the file; it is made only when it is needed, as there may be many files."""
        return self.folder / self.name


def list_parents(files: Iterable[File]) -> set[AnyPath]:
    """Return the folders of files; files of a data set have the same object as their folder."""
    return set({id(file.folder): file.folder for file in files}.values())


@dataclass(frozen=True)
class DatasetFolder:
    """A folder with a manifest.

    Attributes:
        path: Path of the folder.
        manifest: Manifest of the folder.
        is_whole: Whether the caller named the folder, rather than some of its shards.
    """

    path: AnyPath
    manifest: Manifest
    is_whole: bool = True

    @property
    def shards_path(self) -> AnyPath:
        """Path of the folder with the shards: this folder, or the one that the manifest names."""
        return self.path / self.manifest.folder if self.manifest.folder else self.path

    def splits(self) -> dict[str, list[File]]:
        """Return the shards of each split."""
        folder, compression = self.shards_path, self.manifest.compression
        make = partial(tuple.__new__, File)  # in one call, without a Python function per file
        return {
            name: [make((folder, shard.name, shard, compression)) for shard in split.shards]
            for name, split in self.manifest.splits.items()
        }

    def find_unlisted(self) -> list[Path]:
        """Return the files of the folder that have a TFRecord name and are not in the manifest."""
        if not locate(self.path).has_folders:
            return []  # listing takes a request per thousand objects
        known = {shard.name for shard in self.manifest.shards()}
        known.add(self.manifest.folder)
        others = set(os.listdir(self.path)) - known  # noqa: PTH208 - many names, and no paths are needed
        # Usually there are only the files of the data set, and no closer check is needed.
        if all(name == INDEX_FOLDER or name.endswith(_COMPANION_SUFFIXES) for name in others):
            return []
        try:
            files, _ = find_local_files(self.path)
        except NoSuchPathError:
            return []
        mine = [file for file in files if file.parent == self.path]
        return [file for file in mine if file.name not in known]


def find_folders(
    paths: PathLike | Iterable[PathLike],
) -> tuple[list[DatasetFolder], PathLike | list[PathLike]]:
    """Return the folders with a manifest, each once, and the remaining paths; patterns may match folders."""
    folders: dict[str, DatasetFolder] = {}
    rest: list[PathLike] = []
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    elif not isinstance(paths, Iterable) or isinstance(paths, bytes | bytearray):
        return [], paths  # `find_files` rejects it
    for path in paths:
        matches = find_matches(path)
        candidates: Sequence[PathLike] = matches or [path]
        manifests = [(each, _manifest_of(each)) for each in candidates]
        found = [(each, manifest) for each, manifest in manifests if manifest is not None]
        for each, manifest in found:
            folder = as_path(each)
            folders.setdefault(find_real_path(folder), DatasetFolder(folder, manifest))
        named = {each for each, _ in found}
        if not found or any(not each.is_dir() for each in matches):
            rest.append(path)  # of a pattern, `find_files` takes only the files
        else:
            rest.extend(each for each in matches if each not in named)
    return list(folders.values()), rest


def declared_schema(folders: Sequence[DatasetFolder]) -> Schema | None:
    """Return the schema that the manifests declare; None if there is no manifest."""
    if len(folders) < 2:
        return folders[0].manifest.schema if folders else None
    schemas = [folder.manifest.schema for folder in folders]
    return Schema(merge_schemas(schemas, [str(folder.path) for folder in folders]))


def _manifest_of(path: PathLike) -> Manifest | None:
    # `find_files` rejects values that are not paths; a PathLike may hold bytes.
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    folder = find_folder(name) if isinstance(name, str) else None
    return None if folder is None else load_manifest(folder)


_Groups: TypeAlias = dict[str, dict[str, File]]  # files by split and real path


@dataclass(frozen=True)
class Listing:
    """Files by split.

    Attributes:
        groups: Files of each split.
        folders: Folders whose manifests describe files of the listing, all of their shards or some.
        is_described: Whether manifests describe all files.
        notes: Remarks by file name.
    """

    groups: dict[str, list[File]]
    folders: Sequence[DatasetFolder] = ()
    is_described: bool = False
    notes: dict[str, str] = field(default_factory=dict)

    def paths(self) -> dict[str, list[AnyPath]]:
        """Return the paths of the files of each split."""
        return {name: [file.path for file in files] for name, files in self.groups.items()}


def list_files(paths: PathLike | Iterable[PathLike]) -> Listing:
    """Find files and group them into splits, using manifests if these describe all files."""
    folders, rest = find_folders(paths)
    notes = {file.name: _UNLISTED for folder in folders for file in folder.find_unlisted()}
    if folders and not rest:  # no file is named twice: the folders are different ones
        listed: dict[str, list[File]] = {}
        for folder in folders:
            for name, files in folder.splits().items():
                listed.setdefault(name, []).extend(files)
        return Listing(listed, folders, True, notes)
    groups: _Groups = {}
    for folder in folders:
        real = find_real_path(folder.shards_path)
        for name, files in folder.splits().items():
            group = groups.setdefault(name, {})
            group.update({f"{real}/{file.name}": file for file in files})
    known = {path for group in groups.values() for path in group}
    bare = {
        name: {real: path for path in paths if (real := find_real_path(path)) not in known}
        for name, paths in _group_bare(rest).items()
    }
    neighbours = _NeighbourManifests()
    for real, path in (file for files in bare.values() for file in files.items()):
        neighbours.look_up(path, real)
    if neighbours.num_unlisted:
        added: _Groups = {
            name: {real: File(path.parent, path.name) for real, path in files.items()}
            for name, files in bare.items()
        }
        notes |= neighbours.notes()
    else:
        added = neighbours.groups()
        folders = [*folders, *neighbours.folders()]
    for name, files_of_split in added.items():
        if files_of_split:
            groups.setdefault(name, {}).update(files_of_split)
    found = {name: list(files.values()) for name, files in groups.items()}
    return Listing(found, folders, not neighbours.num_unlisted, notes)


class _NeighbourManifests:
    """The manifests in the folders of files that were named without their folder."""

    def __init__(self) -> None:
        self.num_unlisted = 0
        self._folders: dict[str, DatasetFolder | None] = {}
        self._entries: dict[str, dict[str, tuple[str, ShardEntry]]] = {}
        self._shards: dict[str, dict[str, File]] = {}
        self._used: dict[str, DatasetFolder] = {}
        self._misfits: dict[str, str] = {}

    def look_up(self, path: AnyPath, real: str) -> None:
        """Look up a file in the manifest of its folder; a file of another size counts as not listed."""
        at = find_real_path(path.parent)
        if at not in self._folders:
            manifest = load_manifest(path.parent)
            self._folders[at] = None
            self._entries[at] = {}
            if manifest is not None:
                self._folders[at] = DatasetFolder(path.parent, manifest, is_whole=False)
                self._entries[at] = {
                    each.name: (name, each)
                    for name, split in manifest.splits.items()
                    for each in split.shards
                }
        folder, listed = self._folders[at], self._entries[at].get(path.name)
        # The size of an object is checked when it is first read.
        size = None if listed is None else find_local_size(path, listed[1].num_bytes)
        if folder is None or listed is None or size is None:
            self.num_unlisted += 1
            return
        split, entry = listed
        if size != entry.num_bytes:
            self.num_unlisted += 1
            sizes = f"which lists {count(entry.num_bytes, 'byte')}, but the file has {size}"
            self._misfits[path.name] = f"read without its manifest, {sizes}"
            return
        self._used[at] = folder
        compression = folder.manifest.compression
        self._shards.setdefault(split, {})[real] = File(path.parent, path.name, entry, compression)

    def groups(self) -> _Groups:
        """Return the listed files by split, in the order of the manifests."""
        names = dict.fromkeys(name for folder in self._used.values() for name in folder.manifest.splits)
        return {name: self._shards[name] for name in names if name in self._shards}

    def folders(self) -> list[DatasetFolder]:
        """Return the folders of the listed files."""
        return list(self._used.values())

    def notes(self) -> dict[str, str]:
        """Return the remarks for the case that the manifests are not used."""
        unused = (str(folder.path / MANIFEST_NAME) for folder in self._used.values())
        return {**dict.fromkeys(unused, _UNUSED), **self._misfits}


def _group_bare(rest: PathLike | Iterable[PathLike]) -> dict[str, list[AnyPath]]:
    try:
        files, named_singly = find_files(rest)
    except NoSuchPathError as error:
        raise _explain_missing(error) from None
    return dict(group_files(files, named_singly=named_singly))


def _explain_missing(error: NoSuchPathError) -> NoSuchPathError:
    """Add advice to the error for a missing path if a conversion to it is unfinished."""
    path = Path(error.path or "")  # of a URL, there is no such folder
    if (
        error.path is None or not os.path.isdir(path.parent / f".{path.name}.partial")  # noqa: PTH112 - False for a long name
    ):
        return error
    advice = "A conversion to this path is unfinished: wait for it, or continue it: `resume=True`."
    return NoSuchPathError(error.what, path=error.path, advice=advice)
