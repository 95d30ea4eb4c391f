"""The output of a conversion: a folder on a disk, or in an object store.

In: the path of the output. Out: its staging; and checks of a data set that is there already. The modules for
object stores are loaded with the first path in one, because they need `obstore`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.errors import importing
from penstock.shards.manifest import Manifest
from penstock.shards.request import check_shards
from penstock.shards.staging import Staging, clear_leftover
from penstock.storage.paths import PathLike
from penstock.storage.store_path import AnyPath, StorePath, as_path


def make_staging(
    out: PathLike, *, overwrite: bool = False, resume: bool = False, clean: bool = False
) -> Staging:
    """Return the staging of a data set on a disk or in an object store; see `Staging`.

    Args:
        out: Output folder.
        overwrite: Whether an existing data set may be replaced.
        resume: Whether to keep the shards that an earlier run completed.
        clean: Whether to remove what other conversions left in an object store. On a disk, a conversion
            without `resume` removes it anyway.

    Raises:
        PathError: The folder exists and may not be replaced, or cannot be written.
    """
    path = as_path(out)
    if not isinstance(path, StorePath):
        return Staging(out, overwrite=overwrite, resume=resume)
    with importing(f"{path.scheme}://", "cloud"):
        from penstock.shards.remote_staging import RemoteStaging  # noqa: PLC0415

    return RemoteStaging(path, overwrite=overwrite, resume=resume, clean=clean)


def check_output(out: AnyPath, manifest: Manifest, request: Mapping[str, Any], *, clean: bool) -> None:
    """Compare the shards of a finished data set with its manifest, and remove what other runs left.

    On a disk, all bytes are compared. In an object store, only sizes: `penstock verify` reads all bytes.

    Args:
        out: Folder of the data set.
        manifest: Manifest of the data set.
        request: Request that the data set was made by.
        clean: Whether to remove what other conversions left in an object store.

    Raises:
        CorruptRecordError: A shard is missing, or was changed after it was written.
        StoreError: The store does not answer, or refuses.
    """
    if not isinstance(out, StorePath):
        check_shards(out, manifest)
        clear_leftover(out, request)
        return
    with importing(f"{out.scheme}://", "cloud"):
        from penstock.shards.remote_folders import check_objects, clean_leftovers  # noqa: PLC0415

    check_objects(out, manifest)
    if clean:
        clean_leftovers(out)
