"""Copies of files that hold their good records alone.

In: paths and an output folder. Out: files of the same names and compression, what was damaged under
`quarantine/`, and `Repair`, which names every loss. The input is only read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.jobs.fault import Fault
from penstock.jobs.mend import MendedFile, Mender
from penstock.jobs.meter import Meter, Progress
from penstock.jobs.placement import QUARANTINE, place_files
from penstock.jobs.sieve import Loss
from penstock.read.options import ReadOptions
from penstock.storage.atomic import AtomicFile, refuse_existing
from penstock.storage.paths import PathLike

_ACCOUNT = "losses.jsonl"


@dataclass(frozen=True)
class Repair:
    """What was done.

    Attributes:
        out: The output folder.
        files: What became of each file.
    """

    out: Path
    files: tuple[MendedFile, ...]

    @property
    def num_kept(self) -> int:
        """How many records were kept."""
        return sum(file.num_kept for file in self.files)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What was lost."""
        return tuple(loss for file in self.files for loss in file.losses)

    @property
    def num_bytes_lost(self) -> int:
        """How many bytes were lost."""
        return sum(file.num_bytes_lost for file in self.files)

    @property
    def failures(self) -> tuple[Fault, ...]:
        """Why files could not be repaired."""
        return tuple(file.failure for file in self.files if file.failure is not None)

    @property
    def quarantine(self) -> Path:
        """The folder of what was lost; it is there if anything was."""
        return self.out / QUARANTINE

    def to_json(self) -> dict[str, Any]:
        """Return the account for `json.dumps`."""
        return {
            "files": len(self.files),
            "kept": self.num_kept,
            "lost": len(self.losses),
            "bytes_lost": self.num_bytes_lost,
            "out": str(self.out),
            "losses": [_loss_to_json(loss) for loss in self.losses],
            "failed": [fault.to_json() for fault in self.failures],
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
    places = place_files(paths, folder, overwrite=overwrite)
    account = folder / QUARANTINE / _ACCOUNT
    if not overwrite:
        refuse_existing(account)
    meter = Meter(places, on_progress, num_passes=2)
    mender = Mender(folder, options or ReadOptions(), meter, overwrite=overwrite)
    result = Repair(folder, tuple(mender.mend(path, place) for path, place in places.items()))
    if result.losses:
        with AtomicFile(account, overwrite=overwrite) as file:
            for entry in _list_losses(result.files):
                file.write(json.dumps(entry).encode() + b"\n")
    else:
        account.unlink(missing_ok=True)  # of an earlier repair that is overwritten
    return result


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
    return {**place, "bytes": loss.num_bytes, "what": fault.what}
