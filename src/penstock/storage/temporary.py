"""Temporary folders of this machine, for files that are uploaded, and for copies.

In: nothing. Out: a folder, removed at the end of a context or of the process.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import StoreError
from penstock.storage.atomic import write_failure

_folders: list[tempfile.TemporaryDirectory[str]] = []


@contextmanager
def scratch_folder(*, is_kept: bool = True) -> Iterator[Path]:
    """Create a folder for temporary files, and remove it at the end.

    `is_kept`: whether files stay if the store fails, for the user to upload.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="penstock-"))
    except OSError as error:
        raise write_failure(Path(tempfile.gettempdir()), error) from error
    has_files = False
    try:
        yield folder
    except StoreError as error:
        has_files = is_kept and any(folder.iterdir())
        if has_files:
            error.advice += f" What was to be uploaded is kept in {folder}."
        raise
    finally:
        if not has_files:
            shutil.rmtree(folder, ignore_errors=True)


def make_temporary_folder() -> Path:
    """Return a new folder, which is removed when the process ends."""
    try:
        made = tempfile.TemporaryDirectory(prefix="penstock-copy-", ignore_cleanup_errors=True)
    except OSError as error:
        raise write_failure(Path(tempfile.gettempdir()), error) from error
    _folders.append(made)
    return Path(made.name)
