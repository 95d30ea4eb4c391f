"""A data set that is being written, until it is complete.

In: shards and other files, on this machine or delivered by others. Out: a data set that appears at once, on
a disk or in an object store: the publication knows how. The journal has what a resumed run needs.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from penstock.format.entry import ShardEntry
from penstock.format.manifest import Manifest, ManifestCompression
from penstock.shards.shard_file import ShardFile
from penstock.shards.staging.destination import resolve_output
from penstock.shards.staging.journal import Journal
from penstock.shards.staging.publication import Delivery, NewShards, Publication
from penstock.shards.staging.publication_disk import DiskPublication
from penstock.shards.staging.publication_store import StorePublication
from penstock.storage.location import Location
from penstock.storage.paths import PathLike, locate
from penstock.storage.store_path import AnyPath


class Staging:
    """A data set that is being written. Without a commit, `with` keeps complete shards for a resumed run.

    Attributes:
        publication: Where and how the data set is published.
        journal: Journal of the shards that are complete; set when the staging is entered.

    Example:
        >>> with Staging("toys") as staging:
        ...     staging.begin({"seed": 7})
        ...     with staging.shard("train-00000-of-00001.tfrecord") as shard:
        ...         entry = staging.finish(shard)
        ...     staging.write("penstock.json", b"{}")
        ...     staging.commit()
    """

    journal: Journal
    publication: Publication

    def __init__(
        self, out: PathLike | Location, *, overwrite: bool = False, resume: bool = False, clean: bool = False
    ) -> None:
        """Check the output folder; nothing is written yet.

        `out`: folder of the data set, on a disk or in an object store. Links are resolved. `overwrite`:
        whether an existing data set may be replaced. It is kept until the new one is complete. `resume`:
        whether to keep the shards that an earlier run completed. `clean`: whether to remove what other
        conversions left in an object store, and the shards of the replaced data set. On a disk, a run without
        `resume` always does.
        """
        self._is_committed = False
        at = out if isinstance(out, Location) else locate(resolve_output(out))
        self.publication = (
            DiskPublication(Path(at), overwrite=overwrite, resume=resume)
            if at.has_folders
            else StorePublication(at, overwrite=overwrite, resume=resume, clean=clean)
        )

    @property
    def out(self) -> AnyPath:
        """Output folder."""
        return self.publication.out

    @property
    def folder(self) -> AnyPath:
        """Folder of the complete shards, until the data set is published."""
        return self.publication.folder

    @property
    def scratch(self) -> Path:
        """Local folder for temporary files; see `Publication.scratch`."""
        return self.publication.scratch

    def __enter__(self) -> Staging:
        """Begin to write; see `Publication.open`."""
        self.journal = self.publication.open()
        return self

    def begin(self, request: Mapping[str, Any]) -> None:
        """Record the request, as JSON: all that affects the output. A resumed run has the same request."""
        self.publication.begin(request)

    def add_rows(self, num_rows: int, digest: str) -> None:
        """Record that the source was read completely; complete shards of earlier runs are taken over."""
        self.journal.add_rows(num_rows, digest)
        for entry in self.publication.recover(num_rows, digest):
            self.journal.add_shard(entry)

    def shard(
        self, name: str, compression: ManifestCompression = "none", *, planned_bytes: int = 0
    ) -> ShardFile:
        """Create a shard; see `ShardFile`."""
        return ShardFile(self.publication.local, name, compression, planned_bytes=planned_bytes)

    def finish(self, shard: ShardFile) -> ShardEntry:
        """Commit a shard, so that a resumed run reuses it."""
        entry = shard.commit()
        self.publication.add(entry)
        self.journal.add_shard(entry)
        return entry

    def make_delivery(self, shared: AnyPath) -> Delivery:
        """Return how other processes add shards, given a folder of `Publication.make_shared`."""
        return self.publication.make_delivery(shared)

    def adopt(self, shared: AnyPath, new: NewShards) -> Iterator[ShardEntry]:
        """Add the complete shards that another process delivered, and yield the entry of each."""
        for number, entry in enumerate(new.entries):
            self.publication.adopt(shared, new, number)
            self.journal.add_shard(entry)
            yield entry
        self.publication.release(shared, new)

    def write(self, name: str, data: bytes) -> None:
        """Write another file of the data set."""
        self.publication.write(name, data)

    def commit(self) -> None:
        """Give the data set its final name; see `Publication.publish`. A second call does nothing."""
        if not self._is_committed:
            self.publication.publish()
            self._is_committed = True
            self.close()

    def close(self) -> None:
        """Release the folder. Complete shards that were not committed are kept for a resumed run."""
        if self.publication.is_open:
            self.publication.close(self.journal.shards, is_published=self._is_committed)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        publication = getattr(self, "publication", None)
        if publication is not None and publication.is_open:
            what = f"{self.out}: neither committed nor closed: no data set was written"
            warnings.warn(what, ResourceWarning, source=self, stacklevel=1)
            self.close()


def check_finished(out: AnyPath, manifest: Manifest, request: Mapping[str, Any], *, clean: bool) -> None:
    """Compare the shards of a finished data set with its manifest; see `Publication.check_finished`."""
    kind: type[Publication] = DiskPublication if locate(out).has_folders else StorePublication
    kind.check_finished(out, manifest, request, clean=clean)
