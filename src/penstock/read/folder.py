"""Folders that hold a data set with a manifest, told from everything else that a caller may name.

In: a path or paths. Out: the data sets among them, and the other paths.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import NoSuchPathError
from penstock.schema.merge import merge_schemas
from penstock.schema.schema import Schema
from penstock.shards.entry import ShardEntry
from penstock.shards.index import INDEX_FOLDER
from penstock.shards.manifest import Manifest, load_manifest
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
