"""Output files and folders, on a disk or in an object store, which appear when they are complete.

In: bytes, or a local folder with complete files. Out: a file, or objects under their final keys. Files for a
store are written to the folder of temporary files, and uploaded at the end.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import PathError, StoreError, importing
from penstock.storage.atomic import AtomicFile, refuse_existing, write_failure
from penstock.storage.store_path import AnyPath, StorePath

if TYPE_CHECKING:
    from types import ModuleType


def load_store(path: StorePath) -> ModuleType:
    """Return the module that sends requests to object stores.

    Raises:
        MissingPackageError: Its package is not installed.
    """
    with importing(f"{path.scheme}://", "cloud"):
        from penstock.storage import object_store  # noqa: PLC0415 - obstore, which only stores need

    return object_store


def refuse_output(path: AnyPath, *, overwrite: bool) -> None:
    """Refuse an output file that exists, or that cannot be written, before any work is done.

    Raises:
        PathError: It exists, and `overwrite` is False; or its store is read-only; or it is a folder.
        StoreError: The store does not answer, or refuses.
    """
    if isinstance(path, Path):
        if path.is_dir():
            raise PathError("is a folder", path=path, advice="Pass the path of a file.")
        if not overwrite:
            refuse_existing(path)
        return
    refuse_read_only(path)
    store = load_store(path)
    # With `overwrite` too: credentials and bucket are checked before any work is done.
    if store.look_up(path) is not None and not overwrite:
        advice = "Choose another name, or overwrite it with --overwrite (in Python: overwrite=True)."
        raise PathError("already exists", path=path, advice=advice)


def refuse_read_only(path: StorePath) -> None:
    """Refuse a path in a store that cannot be written, or the path of a whole bucket.

    Raises:
        PathError: It is one.
    """
    if not path.is_writable:
        raise PathError(
            "cannot be written: HTTPS is read-only",
            path=path,
            advice="Pass a path that begins with s3://, gs:// or az://, or a local one.",
        )
    if not path.key:
        raise PathError("is a whole bucket", path=path, advice=f"Choose a name in it: {path}/NAME.")


@contextmanager
def open_output(path: AnyPath, *, overwrite: bool) -> Iterator[AtomicFile]:
    """Open an output file; it appears at the end, if there was no error.

    Raises:
        PathError: It exists, and `overwrite` is False.
        WriteError: The disk is full, or fails.
        StoreError: The store does not answer, or refuses; a file that is complete is kept on the disk.
    """
    if isinstance(path, Path):
        with AtomicFile(path, overwrite=overwrite) as file:
            yield file
        return
    refuse_output(path, overwrite=overwrite)
    with scratch_folder() as folder:
        local = folder / path.name
        with AtomicFile(local) as file:
            yield file
        refuse_output(path, overwrite=overwrite)
        load_store(path).put_file(path, local)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Create a folder for temporary files, and remove it at the end, unless the store fails.

    Raises:
        WriteError: It cannot be created.
        StoreError: The store failed; the advice names the folder, which is kept.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="penstock-"))
    except OSError as error:
        raise write_failure(Path(tempfile.gettempdir()), error) from error
    is_kept = False
    try:
        yield folder
    except StoreError as error:
        is_kept = any(folder.iterdir())
        if is_kept:
            error.advice += f" What was to be uploaded is kept in {folder}."
        raise
    finally:
        if not is_kept:
            shutil.rmtree(folder, ignore_errors=True)


def find_object(path: StorePath) -> bool:
    """Return whether an object exists."""
    return load_store(path).look_up(path) is not None


def read_object(path: StorePath) -> io.BytesIO:
    """Return the content of an object as a file."""
    return io.BytesIO(load_store(path).fetch(path).data)


def find_size(path: AnyPath) -> int:
    """Return the size of an output file in bytes."""
    if isinstance(path, Path):
        return path.stat().st_size
    found = load_store(path).look_up(path)
    return 0 if found is None else int(found.num_bytes)
