"""Repair of TFRecord files: copies that hold only the valid records.

In: paths and an output folder. Out: files with the same names and compression, the damaged bytes in
`quarantine/`, and `Repair`, which lists every loss. The input is not modified.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import PenstockError
from penstock.format.entry import split_of
from penstock.format.manifest import MANIFEST_NAME
from penstock.foundation.wording import count
from penstock.jobs.check.file_check import Fault, Progress, ReadProgress
from penstock.jobs.check.repair_file import QUARANTINE, FileRepairer, Loss, RepairedFile, assign_paths
from penstock.read.dataset_files import DatasetFolder, find_folders
from penstock.settings.groups import ReadOptions
from penstock.storage.atomic import AtomicFile, refuse_existing
from penstock.storage.paths import PathLike, refuse_remote
from penstock.storage.store_path import as_path, take_local_path

_LOSSES_NAME = "losses.jsonl"


@dataclass(frozen=True)
class Repair:
    """Result of a repair.

    Attributes:
        out: Output folder.
        files: Result for each file, and for each shard that a manifest lists but that does not exist.
        bad_manifests: Faults of manifests that could not be read.
        notes: Metadata of the input that the output does not have, and advice.
    """

    out: Path
    files: tuple[RepairedFile, ...]
    bad_manifests: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def num_kept(self) -> int:
        """Number of records that were kept."""
        return sum(file.num_kept for file in self.files)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """All losses."""
        return tuple(loss for file in self.files for loss in file.losses)

    @property
    def num_lost(self) -> int:
        """Number of records that were lost."""
        return sum(file.num_lost for file in self.files)

    @property
    def num_bytes_lost(self) -> int:
        """Number of bytes that were lost."""
        return sum(file.num_bytes_lost for file in self.files)

    @property
    def missing(self) -> tuple[Loss, ...]:
        """Records that a manifest lists but that are not in any file."""
        return tuple(loss for loss in self.losses if loss.fault.record is None)

    @property
    def failures(self) -> tuple[Fault, ...]:
        """Faults of files and manifests that could not be repaired."""
        failed = [file.failure for file in self.files if file.failure is not None]
        return (*self.bad_manifests, *failed)

    @property
    def quarantine(self) -> Path:
        """Folder of the damaged bytes; it exists only if something was lost."""
        return self.out / QUARANTINE

    def to_json(self) -> dict[str, object]:
        """Return the report for `json.dumps`."""
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
    """Write the valid records of files to files of the same names in another folder.

    Records that the manifest of a folder lists but that its files do not hold count as lost.

    `on_progress`: called with the number of bytes read and the total; every file is read twice.

    Example:
        >>> repair("pets/", "repaired/").num_kept
        3
    """
    folder = take_local_path(out, "out")
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    for each in given:
        refuse_remote(as_path(each))
    outputs = assign_paths(given, folder, overwrite=overwrite)
    datasets, errors = _find_datasets(given)
    report = folder / QUARANTINE / _LOSSES_NAME
    if not overwrite:
        refuse_existing(report)
    progress = ReadProgress(outputs, on_progress, num_passes=2)
    repairer = FileRepairer(folder, options or ReadOptions(), progress, overwrite=overwrite)
    repaired = [repairer.repair(path, output) for path, output in outputs.items()]
    files = tuple(_compare_files(repaired, datasets))
    bad_manifests = tuple(Fault.from_error(Path(error.path or ""), error) for error in errors)
    notes = [*_note_metadata(folder, outputs, datasets), *(error.advice for error in errors if error.advice)]
    result = Repair(folder, files, bad_manifests, tuple(notes))
    if result.losses:
        with AtomicFile(report, overwrite=overwrite) as file:
            for entry in _list_losses(result.files):
                file.write(json.dumps(entry).encode() + b"\n")
    else:
        report.unlink(missing_ok=True)  # the report of an earlier repair that is overwritten
    return result


def _find_datasets(given: Iterable[PathLike]) -> tuple[list[DatasetFolder], list[PenstockError]]:
    """Return the folders with a manifest, and the errors of manifests that cannot be read."""
    datasets: list[DatasetFolder] = []
    errors: list[PenstockError] = []
    for path in given:
        try:
            datasets += find_folders([path])[0]
        except PenstockError as error:
            errors.append(error)
    return datasets, errors


def _compare_files(
    files: Iterable[RepairedFile], datasets: Iterable[DatasetFolder]
) -> Iterator[RepairedFile]:
    """Compare the files with the manifests; yield the files, then the shards that do not exist."""
    entries = {
        os.path.realpath(path): (path, entry)
        for dataset in datasets
        for folder in (refuse_remote(dataset.shards_path),)
        for path, entry in ((folder / entry.name, entry) for entry in dataset.manifest.shards())
    }
    for file in files:
        _, entry = entries.pop(os.path.realpath(file.path), (None, None))
        yield file if entry is None else file.compare(entry.num_records)
    for path, entry in entries.values():
        what = f"is missing, with {count(entry.num_records, 'record')} by the manifest"
        loss = Loss(Fault(path, None, None, what), 0, 0, entry.num_records)
        yield RepairedFile(path, Path(entry.name), losses=(loss,))


def _note_metadata(out: Path, files: Iterable[Path], datasets: Iterable[DatasetFolder]) -> Iterator[str]:
    """Yield a note for each manifest of the input whose metadata the output does not have."""
    known = {os.path.realpath(dataset.path): dataset.manifest for dataset in datasets}
    for folder in dict.fromkeys(file.parent for file in files):
        if not (folder / MANIFEST_NAME).exists() or (out / MANIFEST_NAME).exists():
            continue
        manifest = known.get(os.path.realpath(folder))
        # Without a manifest, files named train-… are still the split 'train'.
        keeps_splits = manifest is not None and all(
            split_of(Path(shard.name)) == name
            for name, split in manifest.splits.items()
            for shard in split.shards
        )
        lacking = "roles, statistics and source" if keeps_splits else "roles, splits, statistics and source"
        yield (
            f"{out} has no manifest: {lacking} in {folder / MANIFEST_NAME} are not copied. "
            f"To make a data set with a manifest from the repaired files, run 'penstock convert'."
        )


def _list_losses(files: Iterable[RepairedFile]) -> Iterator[dict[str, object]]:
    for file in files:
        for loss in file.losses:
            has_bytes = loss.num_bytes > 0  # bytes that could not be inflated are not in the quarantine
            yield {
                **_loss_to_json(loss),
                "quarantine": file.bad_path.as_posix() if has_bytes else None,
                "quarantine_offset": loss.bad_offset if has_bytes else None,
            }


def _loss_to_json(loss: Loss) -> dict[str, object]:
    fault = loss.fault
    location = {"file": str(fault.path), "record": fault.record, "offset": fault.offset}
    return {**location, "records": loss.num_records, "bytes": loss.num_bytes, "what": fault.what}
