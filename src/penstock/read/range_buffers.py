"""Frames of records in objects of a store: which ranges to request, ahead of their use, and their buffers.

In: where frames are that are read soon, and then the frames that are read. Out: buffers for the core. Frames
that are near to each other are read by one request; a buffer is released when all its frames were read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.foundation.process import ProcessLock
from penstock.storage.request_threads import RANGE_BYTES, request_threads, wait

# To read this many unneeded bytes takes less time than another request.
GAP_BYTES: Final = 256 << 10
_MAX_ADDRESS: Final = 0.99 * 2**63  # computed in floats
_LEAST_KEPT: Final = 256 << 20
_ANNOUNCES_KEPT: Final = 3  # windows of a loader: the current one, the next, and one that is not quite done


class RangeFile(Protocol):
    """An object of a store, read by ranges."""

    def fetch(self, start: int, stop: int) -> memoryview:
        """Return a range of bytes by one request."""


class Frames(NamedTuple):
    """Frames of several objects, in any order.

    Attributes:
        begins: Address of each frame: its offset, if all objects were concatenated with gaps between them.
        ends: Exclusive end of each frame.
    """

    begins: NDArray[np.int64]
    ends: NDArray[np.int64]


class Piece:
    """A range of an object, requested or read.

    Attributes:
        start: Address of the first byte.
        stop: Exclusive end.
        offset: Offset of the first byte in its object.
        future: Future of the bytes.
        num_left: Number of announced frames in it that were not read yet.
        number: Number by which it is held.
    """

    __slots__ = ("future", "num_left", "number", "offset", "start", "stop")

    def __init__(
        self, number: int, start: int, stop: int, offset: int, num_frames: int, future: Future[memoryview]
    ) -> None:
        self.number = number
        self.start = start
        self.stop = stop
        self.offset = offset
        self.future = future
        self.num_left = num_frames

    @property
    def num_bytes(self) -> int:
        """Number of bytes."""
        return self.stop - self.start

    @property
    def has_arrived(self) -> bool:
        """Whether the bytes are in memory."""
        return self.future.done() and not self.future.cancelled() and self.future.exception() is None


class _Pieces(NamedTuple):
    """Numbers of pieces in the order of their starts; the pieces may overlap.

    The pieces themselves are not kept here, as this would keep the bytes of released ones in memory.

    Attributes:
        numbers: Number of each piece.
        starts: Start of each piece.
        furthest: Of each piece, the index here of the one with the largest stop among it and those before it.
        stops: Stops of these.
    """

    numbers: list[int]
    starts: NDArray[np.int64]
    furthest: NDArray[np.int64]
    stops: NDArray[np.int64]

    @classmethod
    def sort(cls, found: Iterable[Piece]) -> _Pieces:
        """Return pieces in order."""
        pieces = sorted(found, key=lambda piece: piece.start)
        starts = np.array([piece.start for piece in pieces], np.int64)
        own = np.array([piece.stop for piece in pieces], np.int64)
        stops = np.maximum.accumulate(own)
        furthest = np.maximum.accumulate(np.where(own == stops, np.arange(len(pieces)), 0))
        return cls([piece.number for piece in pieces], starts, furthest, stops)


class RangeBuffers:
    """Buffers with ranges of objects; safe to use from several threads."""

    def __init__(self, find_file: Callable[[int], RangeFile], sizes: NDArray[np.int64]) -> None:
        """Compute the addresses of objects; `find_file` is called when an object is read."""
        # One search serves all objects: each has a range of addresses as long as it is. Gaps between them
        # keep frames of two objects from being joined.
        gap = GAP_BYTES + 1
        if len(sizes) and float(np.sum(sizes, dtype=np.float64)) + gap * len(sizes) > _MAX_ADDRESS:
            raise OverflowError("all objects together have 8 EiB or more")
        self._find_file = find_file
        self._sizes = sizes
        self._starts = np.zeros(len(sizes), np.int64)
        np.cumsum(sizes[:-1] + gap, out=self._starts[1:])
        self._lock = ProcessLock()
        self._pieces: OrderedDict[int, Piece] = OrderedDict()  # by number, oldest first
        self._next_number = 0
        self._sorted: _Pieces | None = None  # None if pieces came since, or one was found that is released
        self._num_bytes = 0
        self._largest_announce = 0

    def locate(
        self, numbers: NDArray[np.int64], begins: NDArray[np.uint64], sizes: NDArray[np.uint64]
    ) -> Frames:
        """Return frames by the numbers of their objects, their offsets and their sizes."""
        ends = begins + sizes
        if np.any(ends > self._sizes[numbers].astype(np.uint64)) or np.any(ends < begins):
            raise ValueError("a frame ends after its object")  # its address would be in the next object
        starts = self._starts[numbers]
        return Frames(starts + begins.astype(np.int64), starts + ends.astype(np.int64))

    def announce(self, frames: Frames) -> None:
        """Request frames that are read soon."""
        with self._lock:
            before = self._num_bytes
            known, at = self._find(frames)
            self._count(known, at)
            self._request_rest(frames, at, is_urgent=False)
            self._largest_announce = max(self._largest_announce, self._num_bytes - before)
            self._drop_oldest()

    def take(self, frames: Frames) -> tuple[list[Piece], NDArray[np.int64]]:
        """Return pieces with frames that are read now, and the number of the piece of each frame."""
        with self._lock:
            known, at = self._find(frames)
            if self._request_rest(frames, at, is_urgent=True):
                known, at = self._find(frames)
            used, which, counts = np.unique(at, return_inverse=True, return_counts=True)
            if used[0] < 0:
                raise RuntimeError("a requested range does not cover its frames")
            chosen = [self._pieces[known.numbers[i]] for i in used.tolist()]
            self._release(chosen, counts)
        return chosen, which

    def take_ready(self, frames: Frames) -> tuple[list[Piece], NDArray[np.int64]] | None:
        """Return the same as `take` if the bytes of all frames have arrived; otherwise take nothing."""
        with self._lock:
            known, at = self._find(frames)
            used, which, counts = np.unique(at, return_inverse=True, return_counts=True)
            if used[0] < 0:
                return None
            chosen = [self._pieces[known.numbers[i]] for i in used.tolist()]
            if not all(piece.has_arrived for piece in chosen):
                return None
            self._release(chosen, counts)
        return chosen, which

    def wait_for(self, piece: Piece) -> memoryview:
        """Return the bytes of a piece."""
        try:
            return wait(piece.future)
        except CancelledError:  # released by another iteration before the request was sent
            return self._fetch(piece.start, piece.stop)
        except BaseException:
            with self._lock:
                self._forget(piece)  # the next attempt sends another request
            raise

    def clear(self) -> None:
        """Release all buffers, and give up requests that were not sent yet."""
        with self._lock:
            for piece in self._pieces.values():
                piece.future.cancel()
            self._pieces.clear()
            self._sorted = None
            self._num_bytes = 0

    def _fetch(self, start: int, stop: int) -> memoryview:
        number, first = self._find_object(start)
        return self._find_file(number).fetch(start - first, stop - first)

    def _find_object(self, address: int) -> tuple[int, int]:
        """Return the number of the object with an address, and the address of its first byte."""
        number = int(np.searchsorted(self._starts, address, side="right")) - 1
        return number, int(self._starts[number])

    def _find(self, frames: Frames) -> tuple[_Pieces, NDArray[np.int64]]:
        """Return all pieces, and the index among them of the one that covers each frame, or -1."""
        known = self._sorted
        while True:
            if known is None:
                known = self._sorted = _Pieces.sort(self._pieces.values())
            at = np.searchsorted(known.starts, frames.begins, side="right") - 1
            if known.numbers:
                is_covered = (at >= 0) & (known.stops[at] >= frames.ends)
                at = np.where(is_covered, known.furthest[at], -1)
            # Released pieces are seldom needed again: their numbers stay in the sorted list until then.
            if all(known.numbers[i] in self._pieces for i in set(at.tolist()) if i >= 0):
                return known, at
            known = None

    def _request_rest(self, frames: Frames, at: NDArray[np.int64], *, is_urgent: bool) -> bool:
        """Request frames that no piece covers; return whether there are any."""
        rest = np.flatnonzero(at < 0)
        if not len(rest):
            return False
        rest = rest[np.argsort(frames.begins[rest], kind="stable")]
        begins, ends = frames.begins[rest], frames.ends[rest]
        for first, last in cut_ranges(begins, ends):
            start, stop = int(begins[first]), int(ends[first:last].max())
            future = request_threads().submit(partial(self._fetch, start, stop), is_urgent=is_urgent)
            offset = start - self._find_object(start)[1]
            piece = Piece(self._next_number, start, stop, offset, last - first, future)
            self._next_number += 1
            self._pieces[piece.number] = piece
            self._num_bytes += piece.num_bytes
        self._sorted = None
        return True

    def _release(self, pieces: Sequence[Piece], counts: NDArray[np.int64]) -> None:
        """Count frames of pieces as read; a piece is forgotten with the last one."""
        for piece, num_frames in zip(pieces, counts.tolist(), strict=True):
            piece.num_left -= num_frames
            if piece.num_left <= 0:
                self._forget(piece)

    def _forget(self, piece: Piece) -> None:
        if self._pieces.pop(piece.number, None) is not None:
            self._num_bytes -= piece.num_bytes

    def _count(self, known: _Pieces, at: NDArray[np.int64]) -> None:
        """Add announced frames to the frames left of each piece."""
        indexes, counts = np.unique(at[at >= 0], return_counts=True)
        for i, num_frames in zip(indexes.tolist(), counts.tolist(), strict=True):
            self._pieces[known.numbers[i]].num_left += num_frames

    def _drop_oldest(self) -> None:
        """Release the oldest buffers beyond the limit: buffers of an abandoned iteration."""
        limit = max(_LEAST_KEPT, _ANNOUNCES_KEPT * self._largest_announce)
        while self._num_bytes > limit:
            oldest = next(iter(self._pieces.values()))
            oldest.future.cancel()
            self._forget(oldest)


def cut_ranges(begins: NDArray[np.int64], ends: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the first and exclusive last frame of ranges for one request: near and not too large."""
    breaks = np.flatnonzero(begins[1:] - ends[:-1] > GAP_BYTES) + 1
    bounds = [0, *breaks.tolist(), len(begins)]
    found = []
    for first, stop in pairwise(bounds):
        total = int(ends[stop - 1] - begins[first])
        # Equal parts: a short last one would take as long as the others.
        num_parts = max(1, -(-total // RANGE_BYTES))
        limits = begins[first] + np.arange(1, num_parts) * (total / num_parts)
        cuts = first + np.searchsorted(begins[first:stop], limits)
        edges = sorted({first, stop, *cuts.tolist()})
        found += list(pairwise(edges))
    return found
