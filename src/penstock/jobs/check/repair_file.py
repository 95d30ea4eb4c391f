"""Where a job that writes one file for each it reads puts them.

In: what the caller named, and an output folder. Out: a place for each file, none of which can harm the input.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from penstock import _native
from penstock.columns import Compression
from penstock.decode.status import describe_malformed
from penstock.errors import PathError, PenstockError, WriteError
from penstock.jobs.check.file_check import Fault, FileCheck, SoundStream, Tally, check_file, word_contrast
from penstock.jobs.check.read_progress import Meter
from penstock.read.damage import Damage
from penstock.read.naming import group_files
from penstock.read.options import ReadOptions
from penstock.storage.atomic import AtomicFile, refuse_existing
from penstock.storage.open_file import OpenFile
from penstock.storage.paths import PathLike, find_files, refuse_inside

QUARANTINE = "quarantine"


def place_files(
    paths: PathLike | Iterable[PathLike], out: Path, *, overwrite: bool = False
) -> dict[Path, Path]:
    """Return each file's place below `out`: its path inside the folder that was named, or else its name.

    Raises:
        NoSuchPathError: A path leads to no file.
        MissingShardError: A file of an `-of-N` set is missing.
        PathError: Two files would take one place, a place is taken already, or `out` is where the input is.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files, named_singly = find_files(given)
    group_files(files, named_singly=named_singly)
    _refuse_input(out, files, given)
    places: dict[Path, Path] = {}
    owners: dict[Path, Path] = {}
    for each in given:
        folder = Path(each)
        for file in find_files(each)[0]:
            place = file.relative_to(folder) if folder.is_dir() else Path(file.name)
            if places.setdefault(file, place) != place:
                raise _collision("named twice", file, f"{places[file]} and {place}")
            if owners.setdefault(place, file) != file:
                raise _collision(f"has the place of {owners[place]}", file, os.fspath(out / place))
    for place in owners:
        if place.parts[0] == QUARANTINE:
            raise PathError("has the name of the quarantine folder", path=place, advice="Rename it.")
        if not overwrite:
            refuse_existing(out / place)
    return places


def _collision(what: str, file: Path, got: str) -> PathError:
    advice = "Give each folder an output folder of its own."
    return PathError(what, path=file, expected="one place for each file", got=got, advice=advice)


def _refuse_input(out: Path, files: Iterable[Path], given: Iterable[PathLike]) -> None:
    if os.path.lexists(out) and not out.is_dir():
        raise PathError("not a folder", path=out, advice="Name a folder for the output.")
    refuse_inside(out, files)
    resolved = out.resolve()
    for each in given:
        folder = Path(each).resolve()
        # Inside the input too: whoever opens the input folder would find the output in it.
        if folder.is_dir() and (resolved == folder or folder in resolved.parents):
            raise PathError(
                "the output folder lies in the folder of the input",
                path=out,
                advice="Choose another output folder.",
            )


_DEFLATE_LEVEL = 6
# What makes zlib write each format. Its gzip header has no name and no time in it: equal input, equal output.
_WINDOW_BITS = {"gzip": 31, "zlib": 15}


@dataclass(frozen=True)
class Loss:
    """What was not kept.

    Attributes:
        fault: Where and why.
        num_bytes: How many bytes; 0 for what could not be inflated.
        bad_offset: Where they begin among all bad bytes of the file.
        num_records: How many records; a damaged stretch counts as one.
    """

    fault: Fault
    num_bytes: int
    bad_offset: int
    num_records: int = 1


@dataclass(frozen=True)
class Sifting:
    """How a file was parted: how many records are good, and what was lost."""

    num_kept: int
    losses: tuple[Loss, ...]

    @property
    def num_bytes_lost(self) -> int:
        """How many bytes were lost."""
        return sum(loss.num_bytes for loss in self.losses)


class Compressor(Protocol):
    """Compresses a stream piece by piece."""

    def compress(self, data: bytes, /) -> bytes:
        """Take more bytes, and return what is ready."""

    def flush(self) -> bytes:
        """Return the rest."""


class _Identity:
    def compress(self, data: bytes, /) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


def make_compressor(compression: Compression) -> Compressor:
    """Return what compresses a file in the same way again; the same bytes give the same bytes."""
    if compression == "none":
        return _Identity()
    return zlib.compressobj(_DEFLATE_LEVEL, zlib.DEFLATED, _WINDOW_BITS[compression])


def sift_file(
    file: OpenFile,
    check: FileCheck,
    options: ReadOptions,
    keep: Callable[[bytes], None],
    reject: Callable[[bytes], None],
) -> Sifting:
    """Part a file.

    Args:
        file: The file.
        check: What it was found to be.
        options: How to read it.
        keep: Takes the good frames, in order.
        reject: Takes the bad bytes, in order.

    Raises:
        ChangedFileError: It is no longer what was checked.
    """
    walk = _native.RepairScanner(
        file.identity.size if check.compression == "none" else None,
        options.max_record_bytes,
        options.allow_trailing_zeros,
        check.payload in ("example", "sequence_example"),
        check.payload == "sequence_example",
    )
    found: list[tuple[_native.Damage, int]] = []

    def hand_over() -> None:
        good, bad, losses = walk.take()
        found.extend(losses)
        if good:
            keep(good)
        if bad:
            reject(bad)

    stream = SoundStream(file, check.compression)
    for chunk in stream:
        walk.feed(chunk)
        hand_over()
    walk.finish()
    hand_over()
    file.check_unchanged(check.identity)
    num_records = walk.num_good + len(found)
    return Sifting(walk.num_good, tuple(_name_losses(file, stream, found, num_records)))


def _name_losses(
    file: OpenFile, stream: SoundStream, found: list[tuple[_native.Damage, int]], num_records: int
) -> Iterator[Loss]:
    bad_offset = 0
    last = None
    for each, status in found:
        damage = Damage.from_core(each)
        if stream.failure is not None and damage.is_cut:
            last = damage  # it is the last: nothing follows what the end of the stream cuts
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
class MendedFile:
    """What became of a file.

    Attributes:
        path: The file.
        place: Where its good records are, below the output folder.
        num_kept: How many they are.
        losses: What was lost.
        failure: Why it could not be repaired and nothing was written, or None.
    """

    path: Path
    place: Path
    num_kept: int = 0
    losses: tuple[Loss, ...] = ()
    failure: Fault | None = None

    @property
    def num_lost(self) -> int:
        """How many records were lost."""
        return sum(loss.num_records for loss in self.losses)

    @property
    def num_bytes_lost(self) -> int:
        """How many bytes were lost."""
        return sum(loss.num_bytes for loss in self.losses)

    def compare(self, num_records: int) -> MendedFile:
        """Return the same file; the records that it should have, and has not, are lost.

        Args:
            num_records: How many records the manifest lists.
        """
        num_found = self.num_kept + self.num_lost
        if self.failure is not None or num_found >= num_records:
            return self
        what = word_contrast("number of records, by the manifest", num_records, num_found)
        loss = Loss(Fault(self.path, None, None, what), 0, 0, num_records - num_found)
        return replace(self, losses=(*self.losses, loss))

    @property
    def bad_place(self) -> Path:
        """Where its bad bytes are, below the quarantine folder."""
        return name_bad(self.place)


def name_bad(place: Path) -> Path:
    """Return the place in the quarantine for the bad bytes of the file with this place in the output."""
    return place.with_name(f"{place.name}.bad")


class Mender:
    """Repairs files into one folder.

    Each is read twice: the first pass tells what its records are, and so which of them are bad; the second
    parts them.
    """

    def __init__(self, out: Path, options: ReadOptions, meter: Meter, *, overwrite: bool) -> None:
        self._out = out
        self._options = options
        self._meter = meter
        self._overwrite = overwrite

    def mend(self, path: Path, place: Path) -> MendedFile:
        """Repair a file, or say why that cannot be.

        Raises:
            WriteError: The disk is full, or fails.
        """
        try:
            with self._meter.open(path) as file:
                check = check_file(file, self._options, Tally())
            with self._meter.open(path) as file:
                file.check_unchanged(check.identity)
                sifting = self._part(file, check, place)
        except WriteError:
            raise
        except (PenstockError, OSError) as error:
            return MendedFile(path, place, failure=Fault.from_error(path, error))
        return MendedFile(path, place, sifting.num_kept, sifting.losses)

    def _part(self, file: OpenFile, check: FileCheck, place: Path) -> Sifting:
        compressor = make_compressor(check.compression)
        bad_path = self._out / QUARANTINE / name_bad(place)
        bad: AtomicFile | None = None
        # Left in reverse: the bad bytes are in their place before the good ones are.
        with ExitStack() as stack:
            good = stack.enter_context(AtomicFile(self._out / place, overwrite=self._overwrite))

            def reject(data: bytes) -> None:
                nonlocal bad
                if bad is None:
                    bad = stack.enter_context(AtomicFile(bad_path, overwrite=self._overwrite))
                bad.write(data)

            def keep(frames: bytes) -> None:
                good.write(compressor.compress(frames))

            sifting = sift_file(file, check, self._options, keep, reject)
            good.write(compressor.flush())
            if bad is not None and sifting.num_bytes_lost < bad.num_bytes:
                bad.truncate(sifting.num_bytes_lost)  # zeros at the end, which are allowed and no loss
            if sifting.num_bytes_lost == 0:
                if bad is not None:
                    bad.discard()
                bad_path.unlink(missing_ok=True)  # of an earlier repair that is overwritten
        return sifting
