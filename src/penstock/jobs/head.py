"""The first sound records of some files, decoded.

In: files and their schema. Out: samples, or payloads where the records are no Examples. Reads no further than
it must, and passes over damage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from penstock import _native
from penstock.decode.plan import DecodePlan
from penstock.decode.sample import Sample, iterate_samples
from penstock.jobs.check import SoundStream
from penstock.read.chunks import compression_of
from penstock.read.options import ReadOptions
from penstock.schema.schema import Schema
from penstock.storage.file import OpenFile
from penstock.types import Payload

_FRAME_BYTES = 16
_HEADER_BYTES = 12


def read_frames(paths: Iterable[Path], options: ReadOptions, payload: Payload) -> Iterator[bytes]:
    """Yield whole frames of sound records, file by file."""
    is_example = payload in ("example", "sequence_example")
    for path in paths:
        file = OpenFile(path)
        compression = compression_of(file, options)
        walk = _native.RepairScanner(
            file.identity.size if compression == "none" else None,
            options.max_record_bytes,
            options.allow_trailing_zeros,
            is_example,
            payload == "sequence_example",
        )
        for chunk in SoundStream(file, compression):
            walk.feed(chunk)
            yield from _part_frames(walk.take()[0])


def read_head(
    paths: Iterable[Path], options: ReadOptions, payload: Payload, num_records: int, enough_bytes: int
) -> list[bytes]:
    """Return the first frames: so many, and more up to some bytes.

    Args:
        paths: The files.
        options: How to read them.
        payload: What their records are.
        num_records: How many frames are wanted.
        enough_bytes: While they take less than this, up to a hundred frames come even if fewer are wanted.
    """
    frames: list[bytes] = []
    num_bytes = 0
    for frame in islice(read_frames(paths, options, payload), max(num_records, 100)):
        if len(frames) >= num_records and num_bytes + len(frame) > enough_bytes:
            break
        frames.append(frame)
        num_bytes += len(frame)
    return frames


def decode_frames(frames: list[bytes], schema: Schema) -> list[Sample]:
    """Return the samples of frames; those that do not fit the schema are left out."""
    plan = DecodePlan(schema)
    while frames:
        bounds = np.cumsum([0, *map(len, frames)]).astype(np.uint64)
        segment = (-1, b"".join(frames), 0, bounds[:-1], np.diff(bounds), None)
        columns, faults = plan.decode([segment])
        if not faults:
            return list(iterate_samples(columns, schema=schema, num_rows=len(frames)))
        bad = {fault[0] for fault in faults}
        frames = [frame for row, frame in enumerate(frames) if row not in bad]
    return []


def payload_of(frame: bytes) -> bytes:
    """Return what a frame holds."""
    return frame[_HEADER_BYTES : len(frame) - _FRAME_BYTES + _HEADER_BYTES]


def _part_frames(frames: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(frames):
        end = at + _FRAME_BYTES + int.from_bytes(frames[at : at + 8], "little")
        yield frames[at:end]
        at = end
