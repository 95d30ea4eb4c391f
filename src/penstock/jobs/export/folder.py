"""The folder of an export, which appears under its name complete or not at all.

In: the output folder. Out: a hidden folder next to it, renamed at the end; removed after an error. For an
object store, a temporary folder, whose files are uploaded at the end: `export.json`, which makes a folder an
export, comes last.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import PathError
from penstock.export.manifest import MANIFEST_NAME, is_export
from penstock.shards.staging import exchange
from penstock.storage.atomic import refuse_existing, sync_descriptor, sync_folder, write_failure
from penstock.storage.output_file import load_store, refuse_read_only, scratch_folder
from penstock.storage.store_path import AnyPath, StorePath


def check_output(out: AnyPath, *, overwrite: bool) -> bool:
    """Return whether a folder is to be replaced, or raise an error if it may not be.

    Raises:
        PathError: Something exists there that may not be replaced: anything but an export or an empty folder.
    """
    if isinstance(out, StorePath):
        return _check_store(out, overwrite=overwrite)
    if not os.path.lexists(out):
        return False
    if not out.is_dir() or out.is_symlink():
        raise PathError("is not a folder", path=out, advice="Choose another name for the export.")
    if next(out.iterdir(), None) is None:
        return True
    if not is_export(out):
        raise PathError(
            "contains files, but is not an export",
            path=out,
            advice="Move them elsewhere, or choose another folder.",
        )
    if not overwrite:
        refuse_existing(out)
    return True


def _check_store(out: StorePath, *, overwrite: bool) -> bool:
    refuse_read_only(out)
    found = [each.path.relative_to(out) for each in load_store(out).list_objects(out)]
    if found and MANIFEST_NAME not in found:
        raise PathError(
            "contains objects, but is not an export",
            path=out,
            advice="Delete them, if they are from an export that was interrupted, or choose another folder.",
        )
    if found and not overwrite:
        advice = "Choose another name, or overwrite it with --overwrite (in Python: overwrite=True)."
        raise PathError("already exists", path=out, advice=advice)
    return bool(found)


@contextmanager
def staged_folder(out: AnyPath, *, overwrite: bool) -> Iterator[Path]:
    """Create a hidden folder, and give it the name of the output at the end, if there was no error.

    Raises:
        PathError: The output exists and may not be replaced.
        WriteError: The disk is full, or fails.
        StoreError: The store does not answer, or refuses.
    """
    check_output(out, overwrite=overwrite)
    if isinstance(out, StorePath):
        with scratch_folder() as made:
            yield made
            _upload(made, out, replaces=check_output(out, overwrite=overwrite))
        return
    hidden = out.parent / f".tmp-{secrets.token_hex(8)}"
    try:
        hidden.mkdir(parents=True)
    except OSError as error:
        raise write_failure(out, error) from error
    try:
        yield hidden
        _commit(hidden, out, overwrite=overwrite)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def _upload(made: Path, out: StorePath, *, replaces: bool) -> None:
    """Upload the files of an export, the manifest last; until then, the folder is not an export."""
    store = load_store(out)
    if replaces:
        # Without its manifest, so that no reader takes a mixture of two exports for one.
        store.delete([out / MANIFEST_NAME])
        store.delete([each.path for each in store.list_objects(out)])
    files = sorted(path for path in made.rglob("*") if path.is_file())
    for path in sorted(files, key=lambda path: path == made / MANIFEST_NAME):
        store.put_file(out / path.relative_to(made).as_posix(), path)


def _commit(hidden: Path, out: Path, *, overwrite: bool) -> None:
    replaces = check_output(out, overwrite=overwrite)
    aside = hidden.with_name(f"{hidden.name}-old")
    try:
        for path in hidden.rglob("*"):
            if path.is_dir():
                sync_folder(path)
            else:
                _sync_file(path)
        sync_folder(hidden)
        if replaces:
            exchange(hidden, out, aside)  # the old export is at `hidden` now, or at `aside`
        else:
            hidden.rename(out)
        sync_folder(out.parent)
    except OSError as error:
        raise write_failure(out, error) from error
    shutil.rmtree(aside, ignore_errors=True)


def _sync_file(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_descriptor(fd)
    finally:
        os.close(fd)
