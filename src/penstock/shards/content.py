"""The content of a source, as one digest over all rows exactly as they are written.

In: encoded rows in the order of the source, the rejected rows, and the description of the source. Out:
`Content`, which does not depend on block boundaries or the number of workers, and distinguishes 0.0 and -0.0.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from penstock.encode.file_check import FileThreads
from penstock.encode.raw_rows import RowBlock
from penstock.foundation.process import count_cores
from penstock.foundation.thread_pool import OrderedResults
from penstock.settings.conversion import ConvertOptions
from penstock.shards.rejected_rows import Rejects
from penstock.shards.row_work import RowWork, WorkedRows
from penstock.shards.sha256 import digest_parts, digest_pieces

_PIECE_BYTES: Final = 1 << 20
_MAX_PENDING: Final = 32  # pairs of pieces in flight: they keep the block alive that they are cut from


@dataclass(frozen=True)
class Content:
    """The content of a source.

    Attributes:
        num_rows: Number of rows that are written.
        digest: SHA-256 of all rows, of the rejected ones, and of the description of the source, in hex.
    """

    num_rows: int
    digest: str


@dataclass(frozen=True)
class HashedSpan:
    """Consecutive bytes of a stream, hashed where they are, as far as that is possible without the others.

    Attributes:
        num_bytes: Number of bytes of the span.
        head: Bytes before the first boundary of two pieces.
        digests: Concatenated digests of the complete pieces.
        tail: Bytes of the last piece, which is not complete.
    """

    num_bytes: int
    head: bytes
    digests: bytes
    tail: bytes

    @classmethod
    def of(cls, data: memoryview, offset: int) -> HashedSpan:
        """Hash the bytes of a stream from an offset on."""
        start = min(len(data), -offset % _PIECE_BYTES)
        stop = start + (len(data) - start) // _PIECE_BYTES * _PIECE_BYTES
        ends = range(start + _PIECE_BYTES, stop + 1, _PIECE_BYTES)
        digests = digest_pieces([data[end - _PIECE_BYTES : end] for end in ends])
        return cls(len(data), bytes(data[:start]), digests, bytes(data[stop:]))


class ContentDigest:
    """Digest of the rows so far; fed by one thread, in the order of the source."""

    def __init__(self, pool: ThreadPoolExecutor | None = None) -> None:
        """Create a digest of no rows.

        `pool`: threads that hash; None hashes in the calling thread. The digest is the same.
        """
        self._num_rows = 0
        self._pool = pool
        self._hashes: dict[str, _StreamHash] = {}

    def add(self, worked: WorkedRows) -> None:
        """Add the rows of the next block, whose arrays must not change afterwards."""
        self._num_rows += len(worked.rows)
        for name, stream in worked.streams.items():
            if name not in self._hashes:
                self._hashes[name] = _StreamHash(self._pool)
            if len(stream):
                data = stream if isinstance(stream, bytes) else np.ascontiguousarray(stream).reshape(-1).data
                self._hashes[name].update(memoryview(data).cast("B"))

    def add_spans(self, num_rows: int, spans: Mapping[str, HashedSpan]) -> None:
        """Add the next rows, whose streams were hashed elsewhere."""
        self._num_rows += num_rows
        for name, span in spans.items():
            if name not in self._hashes:
                self._hashes[name] = _StreamHash(self._pool)
            if span.num_bytes:
                self._hashes[name].add_span(span)

    def finish(self, rejects: Rejects, source: Sequence[Mapping[str, Any]]) -> Content:
        """Return the content."""
        form = {
            "streams": {name: each.finish() for name, each in sorted(self._hashes.items())},
            "rejects": rejects.to_json(),
            "rejected": hashlib.sha256(rejects.lines()).hexdigest(),
            "source": list(source),
        }
        text = json.dumps(form, sort_keys=True)
        return Content(self._num_rows, hashlib.sha256(text.encode()).hexdigest())


class _StreamHash:
    """SHA-256 of the SHA-256 digests of pieces of equal size, which are hashed in pairs, by any thread.

    Pieces are cut by their offset in the stream, independently of the sizes of updates.
    """

    def __init__(self, pool: ThreadPoolExecutor | None) -> None:
        self._pieces = None if pool is None else OrderedResults[bytes](pool, _MAX_PENDING)
        self._outer = hashlib.sha256()
        self._open: list[memoryview] = []  # parts of the piece that is not complete
        self._num_open_bytes = 0

    def update(self, data: memoryview) -> None:
        """Add bytes, which must not change afterwards."""
        start = min(len(data), -self._num_open_bytes % _PIECE_BYTES)
        self._add_open(data[:start])
        stop = start + (len(data) - start) // _PIECE_BYTES * _PIECE_BYTES
        for first in range(start, stop, 2 * _PIECE_BYTES):
            ends = range(first + _PIECE_BYTES, min(first + 2 * _PIECE_BYTES, stop) + 1, _PIECE_BYTES)
            self._submit(digest_pieces, [data[end - _PIECE_BYTES : end] for end in ends])
        self._add_open(data[stop:])

    def add_span(self, span: HashedSpan) -> None:
        """Add bytes whose complete pieces are already hashed."""
        self._add_open(memoryview(span.head))
        self._drain()
        self._outer.update(span.digests)
        self._add_open(memoryview(span.tail))

    def finish(self) -> str:
        """Return the digest in hex; no bytes can be added afterwards."""
        self._close_piece()
        self._drain()
        return self._outer.hexdigest()

    def _submit(self, digest: Callable[[list[memoryview]], bytes], parts: list[memoryview]) -> None:
        for digests in [digest(parts)] if self._pieces is None else self._pieces.submit(digest, parts):
            self._outer.update(digests)

    def _drain(self) -> None:
        """Take the digests of all pieces that were submitted."""
        for digests in self._pieces.drain() if self._pieces is not None else ():
            self._outer.update(digests)

    def _add_open(self, part: memoryview) -> None:
        """Add bytes to the piece that is not complete."""
        if len(part):
            self._open.append(part)
            self._num_open_bytes += len(part)
            if self._num_open_bytes == _PIECE_BYTES:
                self._close_piece()

    def _close_piece(self) -> None:
        self._submit(digest_parts, self._open)
        self._open, self._num_open_bytes = [], 0


def read_content(
    work: RowWork,
    blocks: Iterable[RowBlock],
    options: ConvertOptions,
    describe: Callable[[], Sequence[Mapping[str, Any]]],
    on_rows: Callable[[int, int, int], None],
) -> tuple[Content, Sequence[Mapping[str, Any]]]:
    """Read a source completely and encode all rows as in a conversion, without writing them.

    `options`: options for rows that do not fit, and the number of threads. `describe`: returns the
    description of the source; called after the last row. `on_rows`: called after each block with the numbers
    of rows, bytes and rejected rows so far.

    Returns:
        The content, and the description of the source.
    """
    num_threads = options.num_threads or count_cores()
    pool = ThreadPoolExecutor(num_threads, thread_name_prefix="penstock")
    helpers = ThreadPoolExecutor(num_threads, thread_name_prefix="penstock-ahead")
    threads = FileThreads(helpers, num_threads - 1) if num_threads > 1 else None
    digest, rejects = ContentDigest(pool), Rejects(options)
    num_rows = num_bytes = 0
    results = OrderedResults[WorkedRows](pool, num_threads + 1)

    def add(worked: WorkedRows) -> None:
        nonlocal num_rows, num_bytes
        rejects.add(worked.block, worked.faults)
        digest.add(worked)
        num_rows += len(worked.rows)
        num_bytes += worked.block.num_bytes
        on_rows(num_rows, num_bytes, rejects.count)

    try:
        for block in blocks:
            for worked in results.submit(work, block, threads):
                add(worked)
        for worked in results.drain():
            add(worked)
        source = describe()
        return digest.finish(rejects, source), source
    finally:
        for each in (pool, helpers):
            each.shutdown(wait=True, cancel_futures=True)
