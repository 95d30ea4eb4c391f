"""All files that a caller means, by split, each with what a manifest says of it.

In: a path or paths. Out: a `Listing`. Shards that are named without their folder are looked up in the
manifest that lies beside them: they hold the same as when the folder is named.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from penstock.errors import NoSuchPathError
from penstock.foundation.wording import count
from penstock.read.naming import group_files
from penstock.schema.merge import merge_schemas
from penstock.schema.schema import Schema
from penstock.shards.entry import ShardEntry
from penstock.shards.index import INDEX_FOLDER
from penstock.shards.manifest import MANIFEST_NAME, Manifest, load_manifest
from penstock.storage.paths import PathLike, find_files, find_matches

_BESIDE_SHARDS = (".tfindex", ".json", ".jsonl")


@dataclass(frozen=True)
class DatasetFolder:
    """A folder, and what its manifest says.

    Attributes:
        path: The folder.
        manifest: What is in it.
        is_whole: Whether all of it was named, and not some of its shards.
    """

    path: Path
    manifest: Manifest
    is_whole: bool = True

    def splits(self) -> dict[str, list[tuple[Path, ShardEntry]]]:
        """Return the shards of each split: where they should be, and what they should be."""
        return {
            name: [(self.path / shard.name, shard) for shard in split.shards]
            for name, split in self.manifest.splits.items()
        }

    def strangers(self) -> list[Path]:
        """Return the files of the folder that are named like TFRecords and not in the manifest."""
        known = {shard.name for shard in self.manifest.shards()}
        with os.scandir(self.path) as entries:
            others = {entry.name for entry in entries} - known
        # Mostly there is nothing but the files that belong to a data set; then nobody needs to look closer.
        if all(name == INDEX_FOLDER or name.endswith(_BESIDE_SHARDS) for name in others):
            return []
        try:
            files, _ = find_files(self.path)
        except NoSuchPathError:
            return []
        return [file for file in files if file.parent == self.path and file.name not in known]


def find_folders(
    paths: PathLike | Iterable[PathLike],
) -> tuple[list[DatasetFolder], PathLike | list[PathLike]]:
    """Part the folders with a manifest from what else was named; a folder that was named twice counts once.

    A glob may match such folders, too.

    Raises:
        ManifestError: A folder has a manifest that is none.
    """
    folders: dict[str, DatasetFolder] = {}
    rest: list[PathLike] = []
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    elif not isinstance(paths, Iterable) or isinstance(paths, bytes | bytearray):
        return [], paths  # for whoever finds files to refuse
    for path in paths:
        matches = find_matches(path)
        candidates: Sequence[PathLike] = matches or [path]
        manifests = [(each, _manifest_of(each)) for each in candidates]
        found = [(each, manifest) for each, manifest in manifests if manifest is not None]
        for each, manifest in found:
            folders.setdefault(os.path.realpath(each), DatasetFolder(Path(each), manifest))
        named = {each for each, _ in found}
        if not found or any(not each.is_dir() for each in matches):
            rest.append(path)  # of a pattern, whoever finds files takes the files alone
        else:
            rest.extend(each for each in matches if each not in named)
    return list(folders.values()), rest


def declared_schema(folders: Sequence[DatasetFolder]) -> Schema | None:
    """Return what the manifests say that all records hold; None where there is no manifest.

    Raises:
        SchemaError: They do not go together; the message shows the difference.
    """
    if len(folders) < 2:
        return folders[0].manifest.schema if folders else None
    return merge_schemas(
        [folder.manifest.schema for folder in folders], [str(folder.path) for folder in folders]
    )


def _manifest_of(path: PathLike) -> Manifest | None:
    # Whoever finds files refuses what is no path; a PathLike may hold bytes.
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str) or not os.path.isdir(name):  # noqa: PTH112 - Path.is_dir raises for a long name
        return None
    return load_manifest(Path(name))


File: TypeAlias = tuple[Path, ShardEntry | None]
"""A file, and what a manifest says of it."""

_Groups: TypeAlias = dict[str, dict[str, File]]  # files by split and real path

_STRANGER = "left out: the file is not in the manifest"
_UNUSED = "not used: it does not list all files that were named, and the schema is inferred"


@dataclass(frozen=True)
class Listing:
    """Files by split.

    Attributes:
        groups: The files.
        folders: The folders whose manifests say what is in them; of some, perhaps, only a few shards.
        is_described: Whether all files are in a manifest, which then says what they hold.
        notes: What is to be known of a file, by its name.
    """

    groups: dict[str, list[File]]
    folders: Sequence[DatasetFolder] = ()
    is_described: bool = False
    notes: dict[str, str] = field(default_factory=dict)

    def paths(self) -> dict[str, list[Path]]:
        """Return the files of each split without what is said of them."""
        return {name: [path for path, _ in files] for name, files in self.groups.items()}


def list_files(paths: PathLike | Iterable[PathLike]) -> Listing:
    """Find files and group them into splits, by their manifests where all that is named has such.

    Raises:
        ManifestError: A folder has a manifest that is none.
        NoSuchPathError: A path leads to no file.
        MissingShardError: A file of an `-of-N` set is missing.
    """
    folders, rest = find_folders(paths)
    groups: _Groups = {}
    for folder in folders:
        real = os.path.realpath(folder.path)
        for name, files in folder.splits().items():
            group = groups.setdefault(name, {})
            group.update({f"{real}{os.sep}{path.name}": (path, entry) for path, entry in files})
    notes = {file.name: _STRANGER for folder in folders for file in folder.strangers()}
    if folders and not rest:
        return Listing(_strip(groups), folders, True, notes)
    known = {path for group in groups.values() for path in group}
    bare = {
        name: {real: path for path in paths if (real := os.path.realpath(path)) not in known}
        for name, paths in _group_bare(rest).items()
    }
    beside = _Beside()
    for real, path in (file for files in bare.values() for file in files.items()):
        beside.look_up(path, real)
    if beside.num_strangers:
        added: _Groups = {
            name: {real: (path, None) for real, path in files.items()} for name, files in bare.items()
        }
        notes |= beside.notes()
    else:
        added = beside.groups()
        folders = [*folders, *beside.folders()]
    for name, files_of_split in added.items():
        if files_of_split:
            groups.setdefault(name, {}).update(files_of_split)
    return Listing(_strip(groups), folders, not beside.num_strangers, notes)


def _strip(groups: _Groups) -> dict[str, list[File]]:
    return {name: list(files.values()) for name, files in groups.items()}


class _Beside:
    """The manifests that lie beside files which were named without their folder."""

    def __init__(self) -> None:
        self.num_strangers = 0
        self._folders: dict[str, DatasetFolder | None] = {}
        self._entries: dict[str, dict[str, tuple[str, ShardEntry]]] = {}
        self._shards: dict[str, dict[str, File]] = {}
        self._used: dict[str, DatasetFolder] = {}
        self._misfits: dict[str, str] = {}

    def look_up(self, path: Path, real: str) -> None:
        """Look for a file in the manifest of its folder; one of another size is not the one listed there."""
        at = os.path.realpath(path.parent)
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
        if folder is None or listed is None or not path.is_file():
            self.num_strangers += 1
            return
        split, entry = listed
        size = path.stat().st_size
        if size != entry.num_bytes:
            self.num_strangers += 1
            says = f"that says {count(entry.num_bytes, 'byte')}, and it has {size}"
            self._misfits[path.name] = f"read without its manifest: {says}"
            return
        self._used[at] = folder
        self._shards.setdefault(split, {})[real] = (path, entry)

    def groups(self) -> _Groups:
        """Return the files that were found, by split, in the order of the manifests."""
        names = dict.fromkeys(name for folder in self._used.values() for name in folder.manifest.splits)
        return {name: self._shards[name] for name in names if name in self._shards}

    def folders(self) -> list[DatasetFolder]:
        """Return the folders that they were found in."""
        return list(self._used.values())

    def notes(self) -> dict[str, str]:
        """Return what is to be said where the manifests are not used after all."""
        unused = (str(folder.path / MANIFEST_NAME) for folder in self._used.values())
        return {**dict.fromkeys(unused, _UNUSED), **self._misfits}


def _group_bare(rest: PathLike | Iterable[PathLike]) -> dict[str, list[Path]]:
    try:
        files, named_singly = find_files(rest)
    except NoSuchPathError as error:
        raise _explain_missing(error) from None
    return dict(group_files(files, named_singly=named_singly))


def _explain_missing(error: NoSuchPathError) -> NoSuchPathError:
    """Say of a path that leads nowhere if a conversion to it did not end."""
    place = Path(error.path or "")
    if error.path is None or not (place.parent / f".{place.name}.partial").is_dir():
        return error
    advice = "A conversion to it has not ended: wait for it, or run it again with resume."
    return NoSuchPathError(error.what, path=error.path, advice=advice)
