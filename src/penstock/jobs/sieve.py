"""Parts one file into the records that are good and the bytes that are not.

In: an open file that was checked. Out: good frames and bad bytes, handed to whoever writes them, and losses.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from penstock import _native
from penstock.decode.status import describe_malformed
from penstock.jobs.check import FileCheck, SoundStream
from penstock.jobs.fault import Fault
from penstock.read.damage import Damage
from penstock.read.options import ReadOptions
from penstock.storage.file import OpenFile
from penstock.types import Compression

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
