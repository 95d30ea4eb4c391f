"""One object of a split in a store, readable in any order; the core gets its frames as buffers.

In: an object and its index. Out: segments for the core. Rows that are read in order are read ahead.
"""

from __future__ import annotations

from penstock import _native
from penstock.errors import MissingShardError, NoSuchPathError
from penstock.read.index import Index
from penstock.read.remote_index import InflateSource
from penstock.read.shard import Access, CompressedShard, Selection, Shard
from penstock.storage.cache_folder import cache_path
from penstock.storage.open_file import KeptFiles, OpenFile, Readable
from penstock.storage.remote_file import RemoteFile, SequentialReader


class ShardObject(RemoteFile):
    """The object of a shard that a manifest declares: it must exist with the declared size."""

    def fetch(self, start: int, stop: int) -> memoryview:
        """Return a range of bytes by one request."""
        try:
            return super().fetch(start, stop)
        except NoSuchPathError as error:
            raise MissingShardError(
                f"shard {self.path.name} is missing",
                path=self.path.parent,
                expected=f"{self.size} bytes",
                got="no object",
                advice="Restore the object, or open the data set again.",
            ) from error


class RemoteShard(Shard):
    """A shard in an object store; safe to use from several threads."""

    def __init__(self, file: RemoteFile, index: Index, *, is_ahead: bool = False) -> None:
        """Describe a shard; nothing is read yet.

        `is_ahead`: whether it is read once, in order, by one thread: then it is read ahead.
        """
        self.path = file.path
        self.index = index
        self.ranges = self._object = file
        self._reader = SequentialReader(file) if is_ahead else None

    def segment(self, selection: Selection, access: Access = "read") -> _native.Segment:  # noqa: ARG002
        """Return the frames of the selected records, read now."""
        begins, sizes = self._frames(selection)
        if len(begins) == 0:
            return -1, b"", 0, begins, sizes, None
        first, last = int(begins.min()), int((begins + sizes).max())
        read = self._object.read if self._reader is None else self._reader.read
        return -1, read(first, last - first), first, begins, sizes, None

    def in_order(self) -> Shard:
        """Return a shard that is read ahead."""
        return RemoteShard(self._object, self.index, is_ahead=True)

    def file(self) -> OpenFile | None:
        """Return None: there is no file."""
        return None

    def check(self) -> None:
        """Do nothing: each request demands the version of the object that was read first."""


class RemoteCompressedShard(CompressedShard):
    """A gzip or zlib object: decompressed on the fly when read in order, into the cache for other orders."""

    def __init__(
        self,
        file: RemoteFile,
        index: Index,
        version: str,
        files: KeptFiles | None = None,
        *,
        goes_forward: bool = False,
    ) -> None:
        """Describe a shard; nothing is read yet.

        `version`: identifies the content of the object: a copy in the cache is found by it. `goes_forward`:
        whether it is read once, in order.
        """
        self._object = file
        self._version = version
        super().__init__(file.path, index, files, goes_forward=goes_forward)
        self._copy = cache_path("inflated", file.path, index.identity.size, version)

    def in_order(self) -> Shard:
        """Return a shard with its own stream."""
        return RemoteCompressedShard(self._object, self.index, self._version, self._files, goes_forward=True)

    def check(self) -> None:
        """Do nothing: each request demands the version of the object that was read first."""

    def _source(self) -> Readable:
        return InflateSource(self._object)
