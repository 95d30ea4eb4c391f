"""Repair of single files: output paths, separation of valid and damaged records, writing.

In: the given paths and an output folder. Out: one output file per input file, never inside the input, and
the damaged bytes in the quarantine folder.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from penstock import _native
from penstock.decode.losses import describe_malformed
from penstock.errors import PathError, PenstockError, WriteError
from penstock.format.entry import group_files
from penstock.jobs.check.file_check import (
    CheckedFile,
    CountedFile,
    Fault,
    FileCheck,
    ReadableBytes,
    ReadProgress,
    RecordCounter,
    check_file,
    word_contrast,
)
from penstock.read.damage import Damage, naming_record
from penstock.settings.groups import ReadOptions
from penstock.storage.atomic import AtomicFile, refuse_existing
from penstock.storage.paths import PathLike, find_local_files, refuse_inside

QUARANTINE = "quarantine"


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
        if output.parts[0] == QUARANTINE:
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


_DEFLATE_LEVEL = 6
# Window bits select the format that zlib writes. Its gzip header has no file name and no time, so that equal
# input gives equal output.
_WINDOW_BITS = {"gzip": 31, "zlib": 15}


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
    """Result of repairing a file.

    Attributes:
        path: Path of the input file.
        output: Path of the repaired file, relative to the output folder.
        num_kept: Number of records that were kept.
        losses: All losses.
        failure: Reason why the file could not be repaired and nothing was written, or None.
    """

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


class FileRepairer:
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
        bad_path = self._out / QUARANTINE / repaired.bad_path
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
