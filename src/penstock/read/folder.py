"""Folders that hold a data set with a manifest, told from everything else that a caller may name.

In: a path or paths. Out: the data sets among them, and the other paths.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import NoSuchPathError
from penstock.read.naming import group_files
from penstock.schema.merge import merge_schemas
from penstock.schema.schema import Schema
from penstock.shards.entry import ShardEntry
from penstock.shards.index import INDEX_FOLDER
from penstock.shards.manifest import Manifest, load_manifest
from penstock.storage.paths import PathLike, find_files

_BESIDE_SHARDS = (".tfindex", ".json", ".jsonl")


@dataclass(frozen=True)
class DatasetFolder:
    """A folder, and what its manifest says."""

    path: Path
    manifest: Manifest

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
        manifest = _manifest_of(path)
        if manifest is None:
            rest.append(path)
        else:
            folders.setdefault(os.path.realpath(path), DatasetFolder(Path(path), manifest))
    return list(folders.values()), rest


def find_groups(
    paths: PathLike | Iterable[PathLike],
) -> tuple[list[DatasetFolder], dict[str, list[Path]]]:
    """Return the folders with a manifest among what was named, and all files by split.

    Raises:
        ManifestError: A folder has a manifest that is none.
        NoSuchPathError: A path leads to no file.
        MissingShardError: A file of an `-of-N` set is missing.
    """
    folders, rest = find_folders(paths)
    groups: dict[str, list[Path]] = {}
    for folder in folders:
        for name, shards in folder.splits().items():
            groups.setdefault(name, []).extend(path for path, _ in shards)
    if rest or not folders:
        files, named_singly = find_files(rest)
        for name, group in group_files(files, named_singly=named_singly).items():
            groups.setdefault(name, []).extend(group)
    return folders, groups


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
