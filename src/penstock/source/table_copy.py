"""Local copies of tables: readers of tables need files that they can seek in.

In: a `StorePath`. Out: a file on the local disk with one version of the object, removed with its `TableCopy`.
The command line copies standard input to a folder that is recognized here.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from penstock.errors import ChangedFileError, PenstockError, importing
from penstock.storage.atomic import write_failure
from penstock.storage.store_path import StorePath

SPOOL_PREFIX: Final = "penstock-stdin-"
"""Beginning of the name of a folder with a copy of standard input, in the temporary folder."""


def is_spooled(path: Path) -> bool:
    """Whether a file is a copy of standard input."""
    folder = path.parent
    return folder.name.startswith(SPOOL_PREFIX) and folder.parent == Path(tempfile.gettempdir())


class TableCopy:
    """A copy of a table.

    Attributes:
        path: Path of the table in the store.
        file: Path of the copy.
    """

    def __init__(self, path: StorePath) -> None:
        """Copy a table to the temporary folder.

        Raises:
            NoSuchPathError: There is no such object.
            ChangedFileError: The object changed while it was copied.
            StoreError: The store does not answer, or refuses.
            WriteError: The disk is full, or fails.
        """
        with importing(f"{path.scheme}://", "cloud"):
            from penstock.storage.remote_file import RemoteFile  # noqa: PLC0415 - with obstore

        self.path = path
        remote = RemoteFile(path)
        try:
            folder = tempfile.mkdtemp(prefix="penstock-")
        except OSError as error:
            raise write_failure(Path(tempfile.gettempdir()), error) from error
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.file = Path(folder) / path.name
        self._version = (remote.size, remote.version)
        try:
            with self.file.open("wb") as out:
                for chunk in remote.chunks():
                    out.write(chunk)
        except OSError as error:
            if isinstance(error, PenstockError):
                raise
            raise write_failure(self.file, error) from error

    def check_unchanged(self) -> None:
        """Check that the object is still the one that was copied.

        Raises:
            ChangedFileError: It was replaced, or deleted.
            StoreError: The store does not answer, or refuses.
        """
        from penstock.storage.object_store import look_up  # noqa: PLC0415 - with obstore

        found = look_up(self.path)
        now = None if found is None else (found.num_bytes, found.etag or "")
        if now != self._version:
            raise ChangedFileError(
                "the table changed while it was converted",
                path=self.path,
                expected="version {1!r}, {0} bytes".format(*self._version),
                got="no object" if now is None else "version {1!r}, {0} bytes".format(*now),
                advice="Convert again when no other program writes to it.",
            )


@contextmanager
def naming_originals(originals: Mapping[str, str]) -> Iterator[None]:
    """Let errors name tables in stores instead of their copies.

    Args:
        originals: Path of the table for each path of a copy.
    """
    try:
        yield
    except PenstockError as error:
        if originals:
            _replace_names(error, originals)
        raise


def _replace_names(error: PenstockError, originals: Mapping[str, str]) -> None:
    for name in ("path", "what", "expected", "got", "advice"):
        text = getattr(error, name)
        if isinstance(text, str):
            for copy, original in originals.items():
                text = text.replace(copy, original)
            setattr(error, name, text)
    error.args = (str(error),)
