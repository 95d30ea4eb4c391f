"""Repair of TFRecord files: copies that hold only the valid records.

In: paths and an output folder. Out: files with the same names and compression, never inside the input; the
damaged bytes in `quarantine/`, and `Repair`, which lists every loss. The input is not modified.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from penstock import _native
from penstock.decode.losses import describe_malformed
from penstock.errors import PathError, PenstockError, WriteError
from penstock.format.entry import group_files, split_of
from penstock.format.manifest import MANIFEST_NAME
from penstock.foundation.wording import count
from penstock.jobs.check.file_check import (
    CheckedFile,
    CountedFile,
    Fault,
    FileCheck,
    Progress,
    ReadableBytes,
    ReadProgress,
    RecordCounter,
    check_file,
    word_contrast,
)
from penstock.read.damage import Damage, naming_record
from penstock.read.dataset_files import DatasetFolder, find_folders
from penstock.settings.groups import ReadOptions
from penstock.storage.atomic import AtomicFile, refuse_existing
from penstock.storage.paths import PathLike, find_local_files, refuse_inside, refuse_remote
from penstock.storage.store_path import as_path, take_local_path

_QUARANTINE = "quarantine"
_LOSSES_NAME = "losses.jsonl"
_DEFLATE_LEVEL = 6
# Window bits select the format that zlib writes. Its gzip header has no file name and no time, so that equal
# input gives equal output.
_WINDOW_BITS = {"gzip": 31, "zlib": 15}


def assign_paths(
    paths: PathLike | Iterable[PathLike], out: Path, *, overwrite: bool = False
) -> dict[Path, Path]:
    """Return the output path of each file, relative to `out`.

    Files of a given folder keep their path inside that folder; other files keep their name.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files, named_singly = find_local_files(given)
    group_files(files, named_singly=named_singly)
    _refuse_input(out, files, given)
    outputs: dict[Path, Path] = {}
    owners: dict[Path, Path] = {}
    for each in given:
        folder = Path(each)
        for file in find_local_files(each)[0]:
            output = file.relative_to(folder) if folder.is_dir() else Path(file.name)
            if outputs.setdefault(file, output) != output:
                raise _collision("is given twice", file, f"{outputs[file]} and {output}")
            if owners.setdefault(output, file) != file:
                what = f"has the same output path as {owners[output]}"
                raise _collision(what, file, os.fspath(out / output))
    for output in owners:
        if output.parts[0] == _QUARANTINE:
            advice = "Rename it."
            raise PathError("has the name of the quarantine folder", path=output, advice=advice)
        if not overwrite:
            refuse_existing(out / output)
    return outputs


def _collision(what: str, file: Path, got: str) -> PathError:
    advice = "Repair each input folder into its own output folder."
    return PathError(what, path=file, expected="one output path per file", got=got, advice=advice)


def _refuse_input(out: Path, files: Iterable[Path], given: Iterable[PathLike]) -> None:
    if os.path.lexists(out) and not out.is_dir():
        raise PathError("is not a folder", path=out, advice="Choose a folder for the output.")
    refuse_inside(out, files)
    resolved = out.resolve()
    for each in given:
        folder = Path(each).resolve()
        # Opening the input folder later must not find the output in it.
        if folder.is_dir() and (resolved == folder or folder in resolved.parents):
            raise PathError(
                "the output folder is inside the input folder",
                path=out,
                advice="Choose another output folder.",
            )


@dataclass(frozen=True)
class Loss:
    """Bytes or records that were not kept.

    Attributes:
        fault: Location and reason of the loss.
        num_bytes: Number of bytes; 0 for bytes that could not be inflated.
        bad_offset: Offset of the bytes in the quarantine file.
        num_records: Number of records; a damaged stretch counts as one.
    """

    fault: Fault
    num_bytes: int
    bad_offset: int
    num_records: int = 1


def _separate_records(
    file: CheckedFile,
    check: FileCheck,
    options: ReadOptions,
    keep: Callable[[bytes], None],
    reject: Callable[[bytes], None],
) -> tuple[int, tuple[Loss, ...]]:
    """Separate the valid records of a file from its damaged bytes; return their number, and the losses.

    `keep`: called with the valid frames, in order. `reject`: called with the damaged bytes, in order.
    """
    walk = _native.RepairScanner(
        file.identity.size if check.compression == "none" else None,
        options.max_record_bytes,
        options.allow_trailing_zeros,
        check.payload in ("example", "sequence_example"),
        check.payload == "sequence_example",
    )
    found: list[tuple[_native.Damage, int]] = []

    def pass_on() -> None:
        good, bad, losses = walk.take()
        found.extend(losses)
        if good:
            keep(good)
        if bad:
            reject(bad)

    stream = ReadableBytes(file, check.compression)
    for chunk in stream:
        with naming_record(file.path, walk):
            walk.feed(chunk)
            pass_on()
    walk.finish()
    pass_on()
    file.check_unchanged(check.identity)
    num_records = walk.num_good + len(found)
    return walk.num_good, tuple(_name_losses(file, stream, found, num_records))


def _name_losses(
    file: CheckedFile, stream: ReadableBytes, found: list[tuple[_native.Damage, int]], num_records: int
) -> Iterator[Loss]:
    bad_offset = 0
    last = None
    for each, status in found:
        damage = Damage.from_core(each)
        if stream.failure is not None and damage.is_cut:
            last = damage  # always the last one: the stream ends inside this record
            break
        fault = Fault.from_damage(file.path, damage)
        if status:
            fault = Fault(file.path, damage.record, damage.offset, describe_malformed(status))
        yield Loss(fault, damage.size, bad_offset)
        bad_offset += damage.size
    if stream.failure is not None:
        damage = Damage.from_stream(stream.failure, last, num_records, stream.num_bytes)
        yield Loss(Fault.from_damage(file.path, damage), damage.size, bad_offset)


@dataclass(frozen=True)
class RepairedFile:
    """Result of repairing a file into `output`, a relative path; with `failure`, nothing was written."""

    path: Path
    output: Path
    num_kept: int = 0
    losses: tuple[Loss, ...] = ()
    failure: Fault | None = None

    @property
    def num_lost(self) -> int:
        """Number of records that were lost."""
        return sum(loss.num_records for loss in self.losses)

    @property
    def num_bytes_lost(self) -> int:
        """How many bytes were lost."""
        return sum(loss.num_bytes for loss in self.losses)

    def compare(self, num_records: int) -> RepairedFile:
        """Return the same result, with the records that the manifest lists and the file lacks as a loss."""
        num_found = self.num_kept + self.num_lost
        if self.failure is not None or num_found >= num_records:
            return self
        what = word_contrast("number of records, by the manifest", num_records, num_found)
        loss = Loss(Fault(self.path, None, None, what), 0, 0, num_records - num_found)
        return replace(self, losses=(*self.losses, loss))

    @property
    def bad_path(self) -> Path:
        """Path of the damaged bytes, relative to the quarantine folder."""
        return self.output.with_name(f"{self.output.name}.bad")


class _FileRepairer:
    """Repairs files into one folder.

    Each file is read twice: the first pass finds the type of the records, which decides which of them are
    damaged; the second pass separates them.
    """

    def __init__(self, out: Path, options: ReadOptions, progress: ReadProgress, *, overwrite: bool) -> None:
        self._out = out
        self._options = options
        self._progress = progress
        self._overwrite = overwrite

    def repair(self, path: Path, output: Path) -> RepairedFile:
        """Repair a file; a file that cannot be repaired is returned with its `failure`."""
        try:
            with self._progress.open(path) as file:
                check = check_file(file, self._options, RecordCounter())
            with self._progress.open(path) as file:
                file.check_unchanged(check.identity)
                return self._separate(file, check, RepairedFile(path, output))
        except WriteError:
            raise
        except (PenstockError, OSError) as error:
            return RepairedFile(path, output, failure=Fault.from_error(path, error))

    def _separate(self, file: CountedFile, check: FileCheck, repaired: RepairedFile) -> RepairedFile:
        compressor = None
        if check.compression != "none":
            compressor = zlib.compressobj(_DEFLATE_LEVEL, zlib.DEFLATED, _WINDOW_BITS[check.compression])
        bad_path = self._out / _QUARANTINE / repaired.bad_path
        bad: AtomicFile | None = None
        # Contexts exit in reverse order: the damaged bytes are stored before the valid records.
        with ExitStack() as stack:
            good = stack.enter_context(AtomicFile(self._out / repaired.output, overwrite=self._overwrite))

            def reject(data: bytes) -> None:
                nonlocal bad
                if bad is None:
                    bad = stack.enter_context(AtomicFile(bad_path, overwrite=self._overwrite))
                bad.write(data)

            def keep(frames: bytes) -> None:
                good.write(frames if compressor is None else compressor.compress(frames))

            num_kept, losses = _separate_records(file, check, self._options, keep, reject)
            if compressor is not None:
                good.write(compressor.flush())
            repaired = replace(repaired, num_kept=num_kept, losses=losses)
            if bad is not None and repaired.num_bytes_lost < bad.num_bytes:
                bad.truncate(repaired.num_bytes_lost)  # trailing zeros, which are allowed and not a loss
            if repaired.num_bytes_lost == 0:
                if bad is not None:
                    bad.discard()
                bad_path.unlink(missing_ok=True)  # a file of an earlier repair that is overwritten
        return repaired


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
        return self.out / _QUARANTINE

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
    report = folder / _QUARANTINE / _LOSSES_NAME
    if not overwrite:
        refuse_existing(report)
    progress = ReadProgress(outputs, on_progress, num_passes=2)
    repairer = _FileRepairer(folder, options or ReadOptions(), progress, overwrite=overwrite)
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
