"""Copies of files that hold their good records alone.

In: paths and an output folder. Out: files of the same names and compression, what was damaged under
`quarantine/`, and `Repair`, which names every loss. The input is only read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError
from penstock.foundation.wording import count
from penstock.jobs.check.file_check import Fault
from penstock.jobs.check.read_progress import Meter, Progress
from penstock.jobs.check.repair_file import QUARANTINE, Loss, MendedFile, Mender, place_files
from penstock.read.listing import DatasetFolder, find_folders
from penstock.read.naming import split_of
from penstock.read.options import ReadOptions
from penstock.shards.manifest import MANIFEST_NAME
from penstock.storage.atomic import AtomicFile, refuse_existing
from penstock.storage.paths import PathLike

_ACCOUNT = "losses.jsonl"


@dataclass(frozen=True)
class Repair:
    """What was done.

    Attributes:
        out: The output folder.
        files: What became of each file, and of each shard that a manifest lists and that does not exist.
        bad_manifests: Why manifests could not be read.
        notes: What the output lacks besides records.
    """

    out: Path
    files: tuple[MendedFile, ...]
    bad_manifests: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def num_kept(self) -> int:
        """How many records were kept."""
        return sum(file.num_kept for file in self.files)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What was lost."""
        return tuple(loss for file in self.files for loss in file.losses)

    @property
    def num_lost(self) -> int:
        """How many records were lost."""
        return sum(file.num_lost for file in self.files)

    @property
    def num_bytes_lost(self) -> int:
        """How many bytes were lost."""
        return sum(file.num_bytes_lost for file in self.files)

    @property
    def missing(self) -> tuple[Loss, ...]:
        """Records that a manifest lists, and that are in no file."""
        return tuple(loss for loss in self.losses if loss.fault.record is None)

    @property
    def failures(self) -> tuple[Fault, ...]:
        """Why files, manifests among them, could not be repaired."""
        failed = [file.failure for file in self.files if file.failure is not None]
        return (*self.bad_manifests, *failed)

    @property
    def quarantine(self) -> Path:
        """The folder of what was lost; it is there if anything was."""
        return self.out / QUARANTINE

    def to_json(self) -> dict[str, Any]:
        """Return the account for `json.dumps`."""
        return {
            "files": len(self.files),
            "kept": self.num_kept,
            "lost": self.num_lost,
            "bytes_lost": self.num_bytes_lost,
            "out": str(self.out),
            "losses": [_loss_to_json(loss) for loss in self.losses],
            "failed": [fault.to_json() for fault in self.failures],
            "notes": list(self.notes),
        }


def repair(
    paths: PathLike | Iterable[PathLike],
    out: PathLike,
    options: ReadOptions | None = None,
    *,
    overwrite: bool = False,
    on_progress: Progress | None = None,
) -> Repair:
    """Write the good records of files to files of the same names in another folder.

    Records that the manifest of a folder lists, and that its files do not have, count as lost.

    Args:
        paths: A file, several, a glob, or a folder.
        out: The folder to write to.
        options: How to read.
        overwrite: Whether files that are there already may be replaced.
        on_progress: Is told how far it has come; every file is read twice.

    Raises:
        NoSuchPathError: A path leads to no file.
        MissingShardError: A file of an `-of-N` set is missing.
        PathError: A file is there already, or the output would be among the input.
        WriteError: The disk is full, or fails.

    Example:
        >>> repair("pets/", "mended/").num_kept
        3
    """
    folder = Path(out)
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    places = place_files(given, folder, overwrite=overwrite)
    datasets, errors = _find_datasets(given)
    account = folder / QUARANTINE / _ACCOUNT
    if not overwrite:
        refuse_existing(account)
    meter = Meter(places, on_progress, num_passes=2)
    mender = Mender(folder, options or ReadOptions(), meter, overwrite=overwrite)
    mended = [mender.mend(path, place) for path, place in places.items()]
    files = tuple(_compare_files(mended, datasets))
    bad_manifests = tuple(Fault.from_error(Path(error.path or ""), error) for error in errors)
    notes = [*_note_metadata(folder, places, datasets), *(error.advice for error in errors if error.advice)]
    result = Repair(folder, files, bad_manifests, tuple(notes))
    if result.losses:
        with AtomicFile(account, overwrite=overwrite) as file:
            for entry in _list_losses(result.files):
                file.write(json.dumps(entry).encode() + b"\n")
    else:
        account.unlink(missing_ok=True)  # of an earlier repair that is overwritten
    return result


def _find_datasets(given: Iterable[PathLike]) -> tuple[list[DatasetFolder], list[PenstockError]]:
    """Return the folders with a manifest, and why other manifests cannot be read."""
    datasets: list[DatasetFolder] = []
    errors: list[PenstockError] = []
    for path in given:
        try:
            datasets += find_folders([path])[0]
        except PenstockError as error:
            errors.append(error)
    return datasets, errors


def _compare_files(files: Iterable[MendedFile], datasets: Iterable[DatasetFolder]) -> Iterator[MendedFile]:
    """Yield the files, compared with the manifests, and then the shards that do not exist."""
    entries = {
        os.path.realpath(path): (path, entry)
        for dataset in datasets
        for shards in dataset.splits().values()
        for path, entry in shards
    }
    for file in files:
        _, entry = entries.pop(os.path.realpath(file.path), (None, None))
        yield file if entry is None else file.compare(entry.num_records)
    for path, entry in entries.values():
        what = f"is missing, with {count(entry.num_records, 'record')} by the manifest"
        loss = Loss(Fault(path, None, None, what), 0, 0, entry.num_records)
        yield MendedFile(path, Path(entry.name), losses=(loss,))


def _note_metadata(out: Path, files: Iterable[Path], datasets: Iterable[DatasetFolder]) -> Iterator[str]:
    """Yield what the manifests of the input hold, and the output does not."""
    known = {os.path.realpath(dataset.path): dataset.manifest for dataset in datasets}
    for folder in dict.fromkeys(file.parent for file in files):
        if not (folder / MANIFEST_NAME).exists() or (out / MANIFEST_NAME).exists():
            continue
        manifest = known.get(os.path.realpath(folder))
        # Files named train-… are the split 'train' without a manifest, too.
        keeps_splits = manifest is not None and all(
            split_of(Path(shard.name)) == name
            for name, split in manifest.splits.items()
            for shard in split.shards
        )
        lacking = "roles, statistics and source" if keeps_splits else "roles, splits, statistics and source"
        yield (
            f"{out} has no manifest: {lacking} in {folder / MANIFEST_NAME} are not carried over. "
            f"'penstock convert' makes a data set with a manifest from the repaired files."
        )


def _list_losses(files: Iterable[MendedFile]) -> Iterator[dict[str, Any]]:
    for file in files:
        for loss in file.losses:
            has_bytes = loss.num_bytes > 0  # what could not be inflated has none
            yield {
                **_loss_to_json(loss),
                "quarantine": file.bad_place.as_posix() if has_bytes else None,
                "quarantine_offset": loss.bad_offset if has_bytes else None,
            }


def _loss_to_json(loss: Loss) -> dict[str, Any]:
    fault = loss.fault
    place = {"file": str(fault.path), "record": fault.record, "offset": fault.offset}
    return {**place, "records": loss.num_records, "bytes": loss.num_bytes, "what": fault.what}
