"""Check of one TFRecord file from its first byte to its last, in chunks of bounded size.

In: an open file, compressed or not. Out: `FileCheck`, with the number of its records and all faults.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from penstock import _native
from penstock._native import IndexScanner
from penstock.columns import Compression, Payload
from penstock.decode.losses import describe_malformed
from penstock.errors import CorruptRecordError, PenstockError
from penstock.read.damage import Damage, holds_no_record, naming_record, not_tfrecord, refuse_foreign
from penstock.read.index import check_compression
from penstock.schema.survey import Survey
from penstock.settings.groups import ReadOptions
from penstock.storage.compression import FIRST_BYTES, inflate
from penstock.storage.open_file import FileIdentity, OpenFile, Readable
from penstock.storage.paths import find_local_size, open_path
from penstock.storage.store_path import AnyPath

CHUNK_BYTES = 1 << 20
_TOTALS = ("records", "unparsable", "featureless", "empty", "with_lists")

_REST_BYTES = 1 << 20

Progress: TypeAlias = Callable[[int, int], None]


class CheckedFile(Readable, Protocol):
    """A file that can be checked: of a disk, or of an object store."""

    @property
    def identity(self) -> FileIdentity:
        """Identity of the file when it was opened."""

    def check_unchanged(self, since: FileIdentity) -> None:
        """Check that the file has not changed."""


def compression_of(file: CheckedFile, options: ReadOptions) -> Compression:
    """Return how a file is compressed."""
    return check_compression(file.path, file.read(0, FIRST_BYTES), options.compression)


def read_chunks(file: CheckedFile, compression: Compression) -> Iterator[bytes]:
    """Yield the inflated bytes of a file."""
    if compression != "none":
        yield from inflate(file, compression)
        return
    offset = 0
    while chunk := file.read(offset, CHUNK_BYTES):
        offset += len(chunk)
        yield chunk


@dataclass(frozen=True)
class Fault:
    """A fault in a file and its location.

    Attributes:
        path: Path of the file.
        record: Number of the record, or None if the fault concerns the file as a whole.
        offset: Offset of the record in the (inflated) bytes of the file, or None.
        what: Description of the fault, with the expected and the actual value.
    """

    path: AnyPath
    record: int | None
    offset: int | None
    what: str

    @classmethod
    def from_damage(cls, path: AnyPath, damage: Damage) -> Fault:
        """Return the fault for damage to the frames of a file."""
        what = word_contrast(damage.what, damage.expected, damage.got)
        return cls(path, damage.record, damage.offset, what)

    @classmethod
    def from_error(cls, path: AnyPath, error: OSError | PenstockError) -> Fault:
        """Return the fault for an error that makes a file as a whole unusable."""
        if isinstance(error, PenstockError):
            what = word_contrast(error.what, error.expected, error.got)
            return cls(path, error.record, error.offset, what)
        return cls(path, None, None, f"cannot be read ({error.strerror or error})")

    def to_json(self) -> dict[str, object]:
        """Return the fault for `json.dumps`."""
        return {"file": str(self.path), "record": self.record, "offset": self.offset, "what": self.what}


def word_contrast(what: str, expected: object, got: object) -> str:
    """Return *what: expected X, got Y*, without the parts that are None."""
    if expected is None:
        return what
    return f"{what}: expected {expected}" if got is None else f"{what}: expected {expected}, got {got}"


@dataclass(frozen=True)
class FileCheck:
    """Result of checking a file.

    Attributes:
        path: Path of the file.
        identity: Version of the file that was checked.
        compression: Compression of the file.
        num_records: Number of records, valid or damaged; a damaged stretch counts as one.
        num_valid: Number of records with a valid frame.
        payload: Type of the records.
        faults: All faults, in the order of the file.
    """

    path: AnyPath
    identity: FileIdentity
    compression: Compression
    num_records: int
    num_valid: int
    payload: Payload
    faults: tuple[Fault, ...]


class RecordCounter:
    """Counts the records and fields of several files, and the records of each file separately."""

    def __init__(self) -> None:
        self.core = _native.Survey()
        self._before = dict.fromkeys(_TOTALS, 0)

    def survey(self) -> Survey:
        """Return the counts over all files."""
        return Survey.from_counts(self.core.counts())

    def difference(self) -> Survey:
        """Return the counts added since the last call, without the counts of fields."""
        counts = self.core.counts()
        before, self._before = self._before, {name: counts[name] for name in _TOTALS}
        return Survey(**{name: counts[name] - before[name] for name in _TOTALS}, fields={}, lists={})


class ReadableBytes:
    """The inflated bytes of a file up to the first damage of its compressed stream.

    `failure` is the error that ended the bytes early; it is known when the bytes have been read.
    """

    def __init__(self, file: CheckedFile, compression: Compression) -> None:
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


def check_file(file: CheckedFile, options: ReadOptions, counter: RecordCounter) -> FileCheck:
    """Read a whole file, and return its records and faults.

    `counter`: counter to which the records of the file are added.
    """
    compression = compression_of(file, options)
    first = file.read(0, FIRST_BYTES)
    if compression == "none":
        refuse_foreign(file.path, first)
    walk = _native.CheckScanner(
        counter.core,
        file.identity.size if compression == "none" else None,
        options.max_record_bytes,
        options.allow_trailing_zeros,
    )
    stream = ReadableBytes(file, compression)
    for chunk in stream:
        with naming_record(file.path, walk):
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
    survey = counter.difference()
    faults = [Fault.from_damage(file.path, damage) for damage in damages.values()]
    faults += _list_malformed(file.path, walk, survey)
    if walk.num_damages > len(walk.damages()):  # the core lists a limited number and counts the rest
        more = walk.num_damages - len(walk.damages())
        faults.append(Fault(file.path, None, None, f"{more} more damaged stretches"))
    faults.sort(key=lambda fault: (fault.record is None, fault.record))
    return FileCheck(
        file.path, file.identity, compression, walk.num_records, survey.records, survey.payload, tuple(faults)
    )


def _list_malformed(path: AnyPath, walk: _native.CheckScanner, survey: Survey) -> Iterator[Fault]:
    """Yield a fault for each record that cannot be parsed as the type of the other records."""
    if survey.payload == "other":
        return
    num_listed = 0
    for record, offset, status, in_lists in walk.unparsable():
        num_listed += not in_lists
        if not in_lists or survey.payload == "sequence_example":
            yield Fault(path, record, offset, describe_malformed(status))
    if survey.unparsable > num_listed:  # the core lists a limited number and counts the rest
        yield Fault(path, None, None, f"{survey.unparsable - num_listed} more records are not Examples")


class ReadProgress:
    """Counts the bytes that are read from several files.

    It counts bytes on disk, because the inflated size of a compressed file is not known in advance.
    """

    def __init__(self, paths: Iterable[AnyPath], report: Progress | None, *, num_passes: int = 1) -> None:
        self._report = report
        self._done = 0
        self._total = num_passes * sum(_size(path) for path in paths)

    @contextlib.contextmanager
    def open(self, path: AnyPath) -> Iterator[CountedFile]:
        """Open a file for one pass; when it is closed, all of its bytes count as read."""
        size = _size(path)
        file = CountedFile(path, self)
        if not size:
            size = file.identity.size
            self._total += size
        try:
            yield file
        finally:
            self.advance(max(0, size - file.furthest))
            file.close()

    def advance(self, num_bytes: int) -> None:
        """Count bytes as read."""
        self._done += num_bytes
        if self._report is not None and num_bytes:
            self._report(self._done, self._total)


class CountedFile:
    """A file that reports how many bytes were read (`furthest`), and can compute the hash of its content."""

    def __init__(self, path: AnyPath, progress: ReadProgress) -> None:
        self.path = path
        self._file = open_path(path)
        self.identity = self._file.identity
        self.furthest = 0
        self._read: Callable[[int, int], bytes | memoryview] = self._file.read
        if not isinstance(self._file, OpenFile):
            self._read = self._file.read_ahead()
        self._progress = progress
        self._hash: Any = None
        self._scanner: IndexScanner | None = None

    def begin_hash(self, scanner: IndexScanner | None = None) -> None:
        """Hash the bytes that are read from now on; the file must be read from its start, without gaps.

        `scanner`: gets the same bytes, if it is given.
        """
        self._hash = hashlib.sha256()
        self._scanner = scanner

    def check_unchanged(self, since: FileIdentity) -> None:
        """Check that the file has not changed."""
        self._file.check_unchanged(since)

    def close(self) -> None:
        """Close the file."""
        if isinstance(self._file, OpenFile):
            self._file.close()

    def finish_hash(self) -> str:
        """Return the SHA-256 of the whole file in hex; the bytes that were not read yet are read now."""
        while self.read(self.furthest, _REST_BYTES):
            pass
        return str(self._hash.hexdigest())

    def read(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on; fewer only at the end of the file."""
        data = bytes(self._read(offset, size))
        ahead = offset + len(data) - self.furthest
        if ahead > 0:
            if self._hash is not None:
                self._hash.update(memoryview(data)[-ahead:])
            if self._scanner is not None:
                with naming_record(self.path, self._scanner):
                    self._scanner.feed(memoryview(data)[-ahead:])
            self.furthest += ahead
            self._progress.advance(ahead)
        return data


def _size(path: AnyPath) -> int:
    """Return the size of a file; 0 for one that is known when it is opened, or when opening it fails."""
    try:
        return find_local_size(path, 0) or 0
    except OSError:
        return 0
