"""A whole file from its first byte to its last, inflated if need be, in pieces of bounded size.

In: an open file. Out: chunks of plain bytes, for the walks that read everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import _native
from penstock.columns import Compression, Payload
from penstock.decode.status import describe_malformed
from penstock.errors import CorruptRecordError, PenstockError
from penstock.read.damage import Damage
from penstock.read.index import check_compression, holds_no_record, not_tfrecord, refuse_foreign
from penstock.read.options import ReadOptions
from penstock.schema.survey import Survey
from penstock.storage.compression import FIRST_BYTES, inflate
from penstock.storage.open_file import FileIdentity, OpenFile

CHUNK_BYTES = 1 << 20


def compression_of(file: OpenFile, options: ReadOptions) -> Compression:
    """Return how a file is compressed.

    Raises:
        CorruptRecordError: It is not compressed as the options say.
    """
    return check_compression(file.path, file.read(0, FIRST_BYTES), options.compression)


def read_chunks(file: OpenFile, compression: Compression) -> Iterator[bytes]:
    """Yield the bytes of a file.

    Raises:
        CorruptRecordError: The compressed stream is damaged; everything before the damage was yielded.
    """
    if compression != "none":
        yield from inflate(file, compression)
        return
    offset = 0
    while chunk := file.read(offset, CHUNK_BYTES):
        offset += len(chunk)
        yield chunk


@dataclass(frozen=True)
class Fault:
    """A fault and its place.

    Attributes:
        path: The file.
        record: Number of the record, or None where the file as a whole is concerned.
        offset: The byte where the record begins, in the inflated bytes of a compressed file; or None.
        what: What is wrong, and what was expected and found instead.
    """

    path: Path
    record: int | None
    offset: int | None
    what: str

    @classmethod
    def from_damage(cls, path: Path, damage: Damage) -> Fault:
        """Name damage of a file's frames."""
        what = word_contrast(damage.what, damage.expected, damage.got)
        return cls(path, damage.record, damage.offset, what)

    @classmethod
    def from_error(cls, path: Path, error: OSError | PenstockError) -> Fault:
        """Name why a file as a whole cannot be used."""
        if isinstance(error, PenstockError):
            what = word_contrast(error.what, error.expected, error.got)
            return cls(path, error.record, error.offset, what)
        return cls(path, None, None, f"cannot be read ({error.strerror or error})")

    def to_json(self) -> dict[str, Any]:
        """Return the fault for `json.dumps`."""
        return {"file": str(self.path), "record": self.record, "offset": self.offset, "what": self.what}


def word_contrast(what: str, expected: object, got: object) -> str:
    """Write *what: expected X, got Y*, as far as there is an X and a Y."""
    if expected is None:
        return what
    return f"{what}: expected {expected}" if got is None else f"{what}: expected {expected}, got {got}"


_TOTALS = ("records", "unparsable", "featureless", "empty", "with_lists")


@dataclass(frozen=True)
class FileCheck:
    """What a file was found to be.

    Attributes:
        path: The file.
        identity: Which version of it was looked at.
        compression: How it is compressed.
        num_records: Its records, sound or damaged; a damaged stretch counts as one.
        num_sound: Those whose frame is sound.
        payload: What its records are.
        faults: All that is wrong, in the order of the file.
    """

    path: Path
    identity: FileIdentity
    compression: Compression
    num_records: int
    num_sound: int
    payload: Payload
    faults: tuple[Fault, ...]


class Tally:
    """Counts the records of files in one survey, and tells what each file adds to it."""

    def __init__(self) -> None:
        self.counter = _native.Survey()
        self._before = dict.fromkeys(_TOTALS, 0)

    def survey(self) -> Survey:
        """Return the counts over all files."""
        return Survey.from_counts(self.counter.counts())

    def difference(self) -> Survey:
        """Return what came since the last call, without the counts of fields."""
        counts = self.counter.counts()
        before, self._before = self._before, {name: counts[name] for name in _TOTALS}
        return Survey(**{name: counts[name] - before[name] for name in _TOTALS}, fields={}, lists={})


class SoundStream:
    """The bytes of a file as far as they can be had.

    Attributes:
        failure: Why they end before their end, or None; known once they were read.
        num_bytes: How many they are so far.
    """

    def __init__(self, file: OpenFile, compression: Compression) -> None:
        self.failure: CorruptRecordError | None = None
        self.num_bytes = 0
        self._file = file
        self._compression = compression

    def __iter__(self) -> Iterator[bytes]:
        try:
            for chunk in read_chunks(self._file, self._compression):
                self.num_bytes += len(chunk)
                yield chunk
        except CorruptRecordError as failure:
            self.failure = failure


def check_file(file: OpenFile, options: ReadOptions, tally: Tally) -> FileCheck:
    """Read a file from end to end.

    Args:
        file: The file.
        options: How to read it.
        tally: Counts the records, beside those of other files that were counted before.

    Raises:
        NotTFRecordError: It is no TFRecord.
        CorruptRecordError: It is not compressed as the options say.
        ChangedFileError: Somebody writes to it.
    """
    compression = compression_of(file, options)
    first = file.read(0, FIRST_BYTES)
    if compression == "none":
        refuse_foreign(file.path, first)
    walk = _native.CheckScanner(
        tally.counter,
        file.identity.size if compression == "none" else None,
        options.max_record_bytes,
        options.allow_trailing_zeros,
    )
    stream = SoundStream(file, compression)
    for chunk in stream:
        walk.feed(chunk)
    walk.finish()
    file.check_unchanged(file.identity)
    damages = {each[0]: Damage.from_core(each) for each in walk.damages()}
    if stream.failure is None and holds_no_record(walk.num_records - walk.num_damages, damages):
        raise not_tfrecord(file.path, first, damages)
    if stream.failure is not None:
        last = damages.get(walk.num_records - 1)
        damage = Damage.from_stream(stream.failure, last, walk.num_records, stream.num_bytes)
        damages[damage.record] = damage
    survey = tally.difference()
    faults = [Fault.from_damage(file.path, damage) for damage in damages.values()]
    faults += _list_malformed(file.path, walk, survey)
    if walk.num_damages > len(walk.damages()):  # the core lists so many and counts the rest
        more = walk.num_damages - len(walk.damages())
        faults.append(Fault(file.path, None, None, f"{more} more damaged stretches"))
    faults.sort(key=lambda fault: (fault.record is None, fault.record))
    return FileCheck(
        file.path, file.identity, compression, walk.num_records, survey.records, survey.payload, tuple(faults)
    )


def _list_malformed(path: Path, walk: _native.CheckScanner, survey: Survey) -> Iterator[Fault]:
    """Yield the records that are not what the others are."""
    if survey.payload == "other":
        return
    num_listed = 0
    for record, offset, status, in_lists in walk.unparsable():
        num_listed += not in_lists
        if not in_lists or survey.payload == "sequence_example":
            yield Fault(path, record, offset, describe_malformed(status))
    if survey.unparsable > num_listed:  # the core lists so many and counts the rest
        yield Fault(path, None, None, f"{survey.unparsable - num_listed} more records are no Examples")
