"""Frames of records in objects of a store: which ranges to request, ahead of their use, and their buffers.

In: where frames are that are read soon, and then the frames that are read. Out: buffers for the core. Frames
that are near to each other are read by one request; a buffer is released when all its frames were read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
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
_LEAST_KEPT: Final = 256 << 20
_ANNOUNCES_KEPT: Final = 3  # windows of a loader: the current one, the next, and one that is not quite done


class RangeFile(Protocol):
    """An object of a store, read by ranges."""

    def fetch(self, start: int, stop: int) -> memoryview:
        """Return a range of bytes by one request."""


class Frames(NamedTuple):
    """Frames of one object, in ascending order.

    Attributes:
        number: Number of the object.
        begins: Offset of each frame.
        ends: Exclusive end of each frame.
    """

    number: int
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]


class Piece:
    """A range of an object, requested or read.

    Attributes:
        number: Number of the object.
        start: Offset of the first byte.
        stop: Exclusive end.
        future: Future of the bytes.
        num_left: Number of announced frames in it that were not read yet.
    """

    __slots__ = ("future", "num_left", "number", "start", "stop")

    def __init__(self, number: int, start: int, stop: int, future: Future[memoryview]) -> None:
        self.number = number
        self.start = start
        self.stop = stop
        self.future = future
        self.num_left = 0


class _Pieces(NamedTuple):
    """Pieces of an object, which may overlap.

    Attributes:
        pieces: The pieces in the order of their starts.
        starts: Start of each piece.
        furthest: Of each piece, the number of the one with the largest stop among it and those before it.
        stops: Stops of these.
    """

    pieces: list[Piece]
    starts: NDArray[np.int64]
    furthest: NDArray[np.int64]
    stops: NDArray[np.int64]


_NO_NUMBERS: Final = np.empty(0, np.int64)
_NONE: Final = _Pieces([], _NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS)


class RangeBuffers:
    """Buffers with ranges of objects; safe to use from several threads."""

    def __init__(self, files: Sequence[RangeFile]) -> None:
        self._files = files
        self._lock = ProcessLock()
        self._pieces: OrderedDict[tuple[int, int, int], Piece] = OrderedDict()  # oldest first
        self._of_object: dict[int, _Pieces] = {}
        self._num_bytes = 0
        self._largest_announce = 0

    def announce(self, frames: Sequence[Frames]) -> None:
        """Request frames that are read soon."""
        with self._lock:
            before = self._num_bytes
            for each in frames:
                pieces, at = self._find(each)
                _count(pieces, at, 1)
                self._request_rest(each, at, is_urgent=False)
            self._largest_announce = max(self._largest_announce, self._num_bytes - before)
            self._drop_oldest()

    def take(self, frames: Frames) -> tuple[list[Piece], NDArray[np.int64]]:
        """Return pieces with frames that are read now, and the number of the piece of each frame.

        `wait_for` gives the bytes of a piece. Frames that were not announced are requested.
        """
        with self._lock:
            pieces, at = self._find(frames)
            if self._request_rest(frames, at, is_urgent=True):
                pieces, at = self._find(frames)
            used, which = np.unique(at, return_inverse=True)
            if used[0] < 0:
                raise RuntimeError("a requested range does not cover its frames")
            _count(pieces, at, -1)
            chosen = [pieces[i] for i in used.tolist()]
            for piece in chosen:
                if piece.num_left <= 0:
                    self._forget(piece)
        return chosen, which

    def wait_for(self, piece: Piece) -> memoryview:
        """Return the bytes of a piece.

        Raises:
            ChangedFileError: The object is another version.
            StoreError: The store does not answer, or refuses.
        """
        try:
            return wait(piece.future)
        except CancelledError:  # released by another iteration before the request was sent
            return self._files[piece.number].fetch(piece.start, piece.stop)
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
            self._of_object.clear()
            self._num_bytes = 0

    def _find(self, frames: Frames) -> tuple[list[Piece], NDArray[np.int64]]:
        """Return the pieces of an object, and the number of the one that covers each frame, or -1."""
        known = self._of_object.get(frames.number, _NONE)
        at = np.searchsorted(known.starts, frames.begins, side="right") - 1
        if known.pieces:
            is_covered = (at >= 0) & (known.stops[at] >= frames.ends)
            at = np.where(is_covered, known.furthest[at], -1)
        return known.pieces, at

    def _request_rest(self, frames: Frames, at: NDArray[np.int64], *, is_urgent: bool) -> bool:
        """Request frames that no piece covers; return whether there are any."""
        is_rest = at < 0
        if not is_rest.any():
            return False
        self._request(
            Frames(frames.number, frames.begins[is_rest], frames.ends[is_rest]), is_urgent=is_urgent
        )
        return True

    def _request(self, frames: Frames, *, is_urgent: bool) -> None:
        """Request ranges that cover frames; each counts its frames."""
        file = self._files[frames.number]
        pieces = list(self._of_object.get(frames.number, _NONE).pieces)
        for first, last in cut_ranges(frames.begins, frames.ends):
            start, stop = int(frames.begins[first]), int(frames.ends[first:last].max())
            future = request_threads().submit(partial(file.fetch, start, stop), is_urgent=is_urgent)
            piece = Piece(frames.number, start, stop, future)
            piece.num_left = last - first
            old = self._pieces.pop((frames.number, start, stop), None)
            if old is not None:
                self._num_bytes -= stop - start
                pieces.remove(old)
            self._pieces[frames.number, start, stop] = piece
            self._num_bytes += stop - start
            pieces.append(piece)
        self._set_pieces(frames.number, pieces)

    def _set_pieces(self, number: int, pieces: list[Piece]) -> None:
        pieces.sort(key=lambda piece: piece.start)
        starts = np.array([piece.start for piece in pieces], np.int64)
        own = np.array([piece.stop for piece in pieces], np.int64)
        stops = np.maximum.accumulate(own)
        furthest = np.maximum.accumulate(np.where(own == stops, np.arange(len(pieces)), 0))
        self._of_object[number] = _Pieces(pieces, starts, furthest, stops)

    def _forget(self, piece: Piece) -> None:
        key = (piece.number, piece.start, piece.stop)
        if self._pieces.get(key) is not piece:
            return
        del self._pieces[key]
        self._num_bytes -= piece.stop - piece.start
        rest = [each for each in self._of_object[piece.number].pieces if each is not piece]
        if rest:
            self._set_pieces(piece.number, rest)
        else:
            del self._of_object[piece.number]

    def _drop_oldest(self) -> None:
        """Release the oldest buffers beyond the limit: those of an iteration that was given up."""
        limit = max(_LEAST_KEPT, _ANNOUNCES_KEPT * self._largest_announce)
        while self._num_bytes > limit:
            oldest = next(iter(self._pieces.values()))
            oldest.future.cancel()
            self._forget(oldest)


def _count(pieces: Sequence[Piece], at: NDArray[np.int64], step: int) -> None:
    """Add to the number of frames that are left of each piece."""
    numbers, counts = np.unique(at[at >= 0], return_counts=True)
    for number, num_frames in zip(numbers.tolist(), counts.tolist(), strict=True):
        pieces[number].num_left += step * num_frames


def cut_ranges(begins: NDArray[np.int64], ends: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Group frames into ranges for one request each: near to each other, and together not too large.

    Args:
        begins: Offset of each frame, in ascending order.
        ends: Exclusive end of each frame.

    Returns:
        First frame and exclusive last frame of each range.
    """
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
