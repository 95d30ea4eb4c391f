"""Local copies of tables: readers of tables need files that they can seek in.

In: a path. Out: a file on the local disk with one version of the table, a copy removed with its `TableCopy`.
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

from penstock.errors import ChangedFileError, PenstockError
from penstock.storage.atomic import write_failure
from penstock.storage.paths import locate
from penstock.storage.store_path import AnyPath

SPOOL_PREFIX: Final = "penstock-stdin-"
"""Beginning of the name of a folder with a copy of standard input, in the temporary folder."""


def is_spooled(path: Path) -> bool:
    """Whether a file is a copy of standard input."""
    folder = path.parent
    return folder.name.startswith(SPOOL_PREFIX) and folder.parent == Path(tempfile.gettempdir())


class TableCopy:
    """A table as a local file: the file itself, or a copy of an object with one version.

    Attributes:
        path: Path of the table.
        file: Path of the local file.
    """

    def __init__(self, path: AnyPath) -> None:
        """Copy a table to the temporary folder, if it is not local."""
        self.path = path
        self.file, self._copied = locate(path).copy_once(self._make_folder)

    @property
    def is_copy(self) -> bool:
        """Whether the file is a copy."""
        return self._copied is not None

    def _make_folder(self) -> Path:
        try:
            folder = tempfile.mkdtemp(prefix="penstock-")
        except OSError as error:
            raise write_failure(Path(tempfile.gettempdir()), error) from error
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    def check_unchanged(self) -> None:
        """Check that the object is still the one that was copied."""
        if self._copied is None:
            return
        expected = (self._copied.num_bytes, self._copied.version or "")
        found = locate(self.path).look_up()
        now = None if found is None else (found.num_bytes, found.version or "")
        if now != expected:
            raise ChangedFileError(
                "the table changed while it was converted",
                path=self.path,
                expected="version {1!r}, {0} bytes".format(*expected),
                got="no object" if now is None else "version {1!r}, {0} bytes".format(*now),
                advice="Convert again when no other program writes to it.",
            )


@contextmanager
def naming_originals(originals: Mapping[str, str]) -> Iterator[None]:
    """Let errors name tables in stores instead of their copies.

    `originals`: path of the table for each path of a copy.
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
