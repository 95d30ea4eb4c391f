"""A window on the inflated bytes of a compressed file that moves forward only.

In: a compressed file. Out: its inflated bytes from one place to another, held no longer than they are needed.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.errors import CorruptRecordError
from penstock.storage.compression import inflate
from penstock.storage.open_file import Readable
from penstock.types import Compression


def inflate_soundly(file: Readable, compression: Compression) -> Iterator[bytes]:
    """Yield what can be inflated, and end in silence where that ends: the index knows the damage already."""
    try:
        yield from inflate(file, compression)
    except CorruptRecordError:
        return


class InflatedWindow:
    """The inflated bytes from `start` to `stop`; reading moves both forward."""

    def __init__(self, file: Readable, compression: Compression) -> None:
        self._chunks = inflate_soundly(file, compression)
        self._bytes = bytearray()
        self._held_from = 0
        self.start = 0
        self.stop = 0

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes from `start`, not before `self.start`, to `stop`; fewer if the stream ends."""
        while self._held_from + len(self._bytes) < stop:
            if self._held_from + len(self._bytes) <= start:  # nothing of this is wanted
                self._held_from += len(self._bytes)
                self._bytes.clear()
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._bytes += chunk
        if start > self._held_from:
            del self._bytes[: start - self._held_from]
            self._held_from = start
        self.start, self.stop = start, stop
        return bytes(memoryview(self._bytes)[: stop - start])

    def is_at_end(self) -> bool:
        """Tell whether the stream ends where the last read stopped."""
        while self._held_from + len(self._bytes) <= self.stop:
            chunk = next(self._chunks, None)
            if chunk is None:
                return True
            self._bytes += chunk
        return False
