"""One object of a store, read by ranges, and always the same version of it.

In: a `StorePath`. Out: its bytes at any offset, or all of them in order, read ahead by several requests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from itertools import groupby
from types import ModuleType
from typing import Final

from penstock.errors import ChangedFileError, NoSuchPathError, StoreError, importing
from penstock.foundation.process import ProcessLock
from penstock.storage.cache import CHUNK_BYTES, CachedObject, RangeCache
from penstock.storage.object_version import NoRangesError, refuse_other_version
from penstock.storage.open_file import FileIdentity
from penstock.storage.request_threads import RANGE_BYTES, call_all, request_threads, wait
from penstock.storage.store_path import StorePath

_RANGES_AHEAD: Final = 8


def load_store(path: StorePath) -> ModuleType:
    """Return `storage.object_store`, which needs `obstore`."""
    with importing(f"{path.scheme}://", "cloud"):
        from penstock.storage import object_store  # noqa: PLC0415 - obstore, which only stores need

    return object_store


class RemoteFile:
    """An object of a store; safe to use from several threads.

    The first answer determines the version of the object. A later answer for another version is an error.
    An object whose server gives no version can only be read from front to back, by one request.

    Attributes:
        path: Path of the object.
        size: Size of the object.
    """

    def __init__(self, path: StorePath, size: int | None = None, etag: str | None = None) -> None:
        """Open an object; without a size, the store is asked for it now."""
        self.path = path
        self._store = load_store(path)
        self._etag = etag
        self._has_version = True  # as far as is known
        if size is None:
            found = self._store.look_up(path)
            if found is None:
                raise NoSuchPathError("no such object", path=path, advice="Check the path.")
            size, self._etag = found.num_bytes, found.etag
            self._has_version = found.etag is not None
        self.size = size
        self._lock = ProcessLock()
        self._cached: CachedObject | None = None
        self._is_served = False  # whether bytes of the cache were returned

    @property
    def identity(self) -> FileIdentity:
        """Size of the object; modification times of objects cannot be compared with times of files."""
        return FileIdentity(self.size, 0, 0)

    @property
    def version(self) -> str:
        """Version of the object that was read, or "" if the store has no versions."""
        return self._etag or ""

    def check_unchanged(self, since: FileIdentity) -> None:
        """Do nothing: each request demands the version of the object that was read first."""

    def use_cache(self, cache: RangeCache | None, version: str) -> None:
        """Read and keep chunks in a cache, if a `version` identifies the content of the object."""
        if cache is not None and version:
            self._cached = cache.find_object(self.path, self.size, version)

    def fetch(self, start: int, stop: int) -> memoryview:
        """Return a range of bytes by one request, or from the cache."""
        if start >= stop:
            return memoryview(b"")
        if self._cached is None:
            return self._request(start, stop)
        try:
            return self._fetch_cached(self._cached, start, stop)
        except ChangedFileError:
            self._cached.drop()  # it would demand its version again when the object is opened next
            with self._lock:
                if self._is_served:
                    raise
                self._etag = None
            return self._fetch_cached(self._cached, start, stop)

    def _fetch_cached(self, cached: CachedObject, start: int, stop: int) -> memoryview:
        """Return a range of bytes; chunks that are not in the cache are requested and added."""
        numbers = range(start // CHUNK_BYTES, (stop - 1) // CHUNK_BYTES + 1)
        found = {number: chunk for number in numbers if (chunk := self._find_chunk(cached, number))}
        parts = [found[number] for number in numbers if number in found]
        if len(found) < len(numbers):
            parts = []
            for is_found, group in groupby(numbers, found.__contains__):
                run = list(group)
                parts += [found[n] for n in run] if is_found else self._request_chunks(cached, run)
        if found:
            self._is_served = True
        offset = numbers.start * CHUNK_BYTES
        whole = parts[0] if len(parts) == 1 else memoryview(b"".join(parts))
        return whole[start - offset : stop - offset]

    def _find_chunk(self, cached: CachedObject, number: int) -> memoryview | None:
        """Return a chunk of the cache if it belongs to the version that is read; the first determines it."""
        chunk = cached.find(number)
        if chunk is None:
            return None
        with self._lock:
            self._etag = self._etag or chunk.etag
            return chunk.data if chunk.etag in (None, self._etag) else None

    def _request_chunks(self, cached: CachedObject, numbers: list[int]) -> list[memoryview]:
        """Return consecutive chunks by one request, and add them to the cache."""
        stop = min((numbers[-1] + 1) * CHUNK_BYTES, self.size)
        data = self._request(numbers[0] * CHUNK_BYTES, stop)
        for i, number in enumerate(numbers):
            cached.add(number, self._etag, data[i * CHUNK_BYTES : (i + 1) * CHUNK_BYTES])
        return [data]

    def _request(self, start: int, stop: int) -> memoryview:
        data, found = self._store.fetch(self.path, start, stop, etag=self._etag)
        with self._lock:
            etag, self._etag = self._etag, self._etag or found.etag
            self._has_version = self._etag is not None
        self._refuse_other_size(found.num_bytes)
        refuse_other_version(found, etag)
        if len(data) < self.size:
            self.refuse_missing_version()
        return memoryview(data)

    def refuse_missing_version(self) -> None:
        """Check that the server gives versions, so that parts of two of them cannot be mixed."""
        if not self._has_version:
            raise StoreError(
                "the server gives no version of the object, so that a change while it is read is not noticed",
                path=self.path,
                expected="an ETag or Last-Modified",
                got="neither",
                advice="Copy the data to a local folder, or to a server that gives one of them.",
            )

    def _refuse_other_size(self, num_bytes: int) -> None:
        if num_bytes != self.size:
            raise ChangedFileError(
                "the object is not the one that was opened",
                path=self.path,
                expected=f"{self.size} bytes",
                got=f"{num_bytes} bytes",
                advice="Open it again when no other program writes to it.",
            )

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`, by several requests if there are many."""
        stop = min(offset + size, self.size)
        starts = range(offset, stop, RANGE_BYTES)
        if len(starts) < 2:
            return bytes(self.fetch(offset, stop))
        calls: list[Callable[[], memoryview]] = [
            partial(self.fetch, start, min(start + RANGE_BYTES, stop)) for start in starts
        ]
        return b"".join(list(call_all(calls)))

    def read_ahead(self) -> Callable[[int, int], bytes | memoryview]:
        """Return a function like `read` for one thread that reads from front to back."""
        return SequentialReader(self).read

    def chunks(self) -> Iterator[memoryview]:
        """Yield all bytes in order, read ahead; by one request where the server does not allow more."""
        reader = SequentialReader(self)
        offset = 0
        while offset < self.size and self._has_version:
            try:
                chunk = reader.next_chunk(offset)
            except NoRangesError:
                reader.close()
                break
            offset += len(chunk)
            yield chunk
        if offset < self.size:
            for chunk in self._store.stream(self.path, etag=self._etag):
                offset += len(chunk)
                yield chunk
            self._refuse_other_size(offset)


class SequentialReader:
    """Reads an object from front to back, with several requests ahead; another offset begins anew.

    One thread at a time may use it.
    """

    def __init__(self, file: RemoteFile) -> None:
        self.path = file.path
        self._file = file
        self._ahead: deque[tuple[int, Future[memoryview]]] = deque()
        self._chunk: tuple[int, memoryview] = (0, memoryview(b""))

    def read(self, offset: int, size: int) -> bytes | memoryview:
        """Return up to `size` bytes from `offset`; fewer only at the end of the object."""
        stop = min(offset + size, self._file.size)
        pieces = []
        while offset < stop:
            start, chunk = self._chunk
            if not start <= offset < start + len(chunk):
                start, chunk = self._chunk = offset, self.next_chunk(offset)
            piece = chunk[offset - start : stop - start]
            pieces.append(piece)
            offset += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def next_chunk(self, offset: int) -> memoryview:
        """Return the bytes from an offset to the end of a range."""
        while self._ahead and self._ahead[0][0] != offset:
            self._ahead.popleft()[1].cancel()
        following = self._ahead[-1][0] + RANGE_BYTES if self._ahead else offset
        while len(self._ahead) < _RANGES_AHEAD and following < self._file.size:
            stop = min(following + RANGE_BYTES, self._file.size)
            call = partial(self._file.fetch, following, stop)
            self._ahead.append((following, request_threads().submit(call)))
            following += RANGE_BYTES
        return wait(self._ahead.popleft()[1])

    def close(self) -> None:
        """Give up the ranges that were requested ahead."""
        while self._ahead:
            self._ahead.popleft()[1].cancel()

    def __del__(self) -> None:
        self.close()
