"""Repairs one file.

In: a file and its place below the output folder. Out: a file of its good records there, one of its bad bytes
in the quarantine if there are any, and `MendedFile`.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.errors import PenstockError, WriteError
from penstock.jobs.check.file_check import Fault, FileCheck, Tally, check_file, word_contrast
from penstock.jobs.meter import Meter
from penstock.jobs.placement import QUARANTINE
from penstock.jobs.sieve import Loss, Sifting, make_compressor, sift_file
from penstock.read.options import ReadOptions
from penstock.storage.atomic import AtomicFile
from penstock.storage.open_file import OpenFile


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
