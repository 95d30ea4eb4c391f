"""The folder of an export, which appears under its name complete or not at all.

In: the output folder. Out: a hidden folder next to it, renamed at the end; removed after an error.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import PathError
from penstock.export.manifest import is_export
from penstock.shards.staging import exchange
from penstock.storage.atomic import refuse_existing, sync_folder, write_failure


def check_output(out: Path, *, overwrite: bool) -> bool:
    """Return whether a folder is to be replaced, or raise an error if it may not be.

    Raises:
        PathError: Something exists there that may not be replaced: anything but an export or an empty folder.
    """
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


@contextmanager
def staged_folder(out: Path, *, overwrite: bool) -> Iterator[Path]:
    """Create a hidden folder, and give it the name of the output at the end, if there was no error.

    Raises:
        PathError: The output exists and may not be replaced.
        WriteError: The disk is full, or fails.
    """
    check_output(out, overwrite=overwrite)
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
        os.fsync(fd)
    finally:
        os.close(fd)
