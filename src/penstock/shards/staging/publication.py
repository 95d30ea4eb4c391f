"""Where and how a data set is published: what a disk and an object store do in different ways.

In: complete shards and other files. Out: a data set that appears at once. A disk renames a folder; a store
writes the manifest, last and on a condition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from penstock.format.entry import ShardEntry
from penstock.format.manifest import Manifest, ManifestCompression
from penstock.shards.shard_file import ShardFile
from penstock.shards.staging.journal import Journal
from penstock.storage.store_path import AnyPath


@dataclass(frozen=True)
class NewShards:
    """Shards that another process wrote.

    Attributes:
        folder: Name of their folder among the shared ones; "" if they were uploaded.
        entries: Entry of each shard.
        indexes: Content of the index of each shard, if they were uploaded.
    """

    folder: str
    entries: list[ShardEntry]
    indexes: list[bytes]


class ShardFolder:
    """A local folder in which a process writes shards for the data set of another process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def shard(
        self, name: str, compression: ManifestCompression = "none", *, planned_bytes: int = 0
    ) -> ShardFile:
        """Create a shard."""
        return ShardFile(self.folder, name, compression, planned_bytes=planned_bytes)

    def finish(self, shard: ShardFile) -> ShardEntry:
        """Commit a shard."""
        return shard.commit()


class Delivery(Protocol):
    """How processes on other machines add shards to a data set; it can be pickled."""

    def write(self, work: Callable[[ShardFolder], Iterable[ShardEntry]]) -> NewShards:
        """Call a function that writes shards to a folder, and return what `Publication.adopt` takes.

        Raises:
            WriteError: The disk is full or fails.
            StoreError: The store does not answer, or refuses.
        """


class Publication(Protocol):
    """The place of a data set, and of its files until it is complete.

    Attributes:
        out: Folder of the data set.
        folder: Folder of the complete shards, until the data set is published.
        shards_folder: Name of the folder of the shards next to the manifest; "" if it is the same folder.
    """

    out: AnyPath
    folder: AnyPath
    shards_folder: str

    @property
    def is_open(self) -> bool:
        """Whether it was opened, and not closed yet."""

    @property
    def local(self) -> Path:
        """Local folder in which shards are written."""

    @property
    def scratch(self) -> Path:
        """Local folder for temporary files.

        Raises:
            WriteError: The disk is full or fails.
        """

    def make_shared(self) -> AnyPath:
        """Return a new folder for temporary files that processes on other machines read and write.

        Raises:
            WriteError: The disk is full or fails.
        """

    def make_delivery(self, shared: AnyPath) -> Delivery:
        """Return how other processes add shards, given a folder of `make_shared`."""

    def open(self) -> Journal:
        """Begin to write, and return the journal, with the complete shards of the run that is resumed.

        Raises:
            BusyError: Another process is writing to the folder.
            PathError: The folder cannot be created, or was created by another process in the meantime.
            WriteError: The disk is full or fails.
        """

    def begin(self, request: Mapping[str, Any]) -> None:
        """Record the request in the journal; a resumed run must have the same one.

        Raises:
            OptionError: The request differs; the error names the path of the difference.
            StoreError: The store ignores conditions, does not answer, or refuses.
        """

    def recover(self, num_rows: int, digest: str) -> Iterable[ShardEntry]:
        """Yield complete shards of earlier runs with the same request and content, which are taken over.

        Args:
            num_rows: Number of rows that are written.
            digest: Digest of the content of the source, in hex.

        Raises:
            OptionError: The source has changed since the conversion to resume was started.
            StoreError: The store does not answer, or refuses.
        """

    def add(self, entry: ShardEntry) -> None:
        """Add a complete shard from the local folder, so that a resumed run finds it.

        Raises:
            WriteError: The disk is full or fails.
            StoreError: The store does not answer, or refuses.
        """

    def adopt(self, shared: AnyPath, new: NewShards, number: int) -> None:
        """Add a complete shard that another process delivered.

        Args:
            shared: The folder of `make_shared`.
            new: What the process delivered.
            number: Number of the shard in it.

        Raises:
            WriteError: The disk is full or fails, or the shard is not there.
        """

    def release(self, shared: AnyPath, new: NewShards) -> None:
        """Remove what is left of a delivery whose shards were adopted."""

    def write(self, name: str, data: bytes) -> None:
        """Write another file of the data set.

        Raises:
            WriteError: The disk is full or fails.
            StoreError: The store does not answer, or refuses.
        """

    def publish(self) -> None:
        """Give the data set its final name, at once.

        Raises:
            BusyError: Another conversion has written the data set in the meantime.
            PathError: The output folder was created by another process.
            WriteError: The disk is full or fails, or the publication is closed.
            StoreError: The store does not answer, or refuses.
        """

    def close(self, shards: Collection[str], *, is_published: bool) -> None:
        """Release the folder. Complete shards that were not published are kept for a resumed run.

        Args:
            shards: Names of the complete shards.
            is_published: Whether the data set was published.
        """

    @classmethod
    def check_finished(
        cls, out: AnyPath, manifest: Manifest, request: Mapping[str, Any], *, clean: bool
    ) -> None:
        """Compare the shards of a finished data set with its manifest, and remove what other runs left.

        Args:
            out: Folder of the data set.
            manifest: Manifest of the data set.
            request: Request that the data set was made by.
            clean: Whether to remove what other conversions left in an object store.

        Raises:
            CorruptRecordError: A shard is missing, or was changed after it was written.
            StoreError: The store does not answer, or refuses.
        """
