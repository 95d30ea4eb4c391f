"""Open files that are kept for the next read, at most so many at a time.

In: a path. Out: an `OpenFile`, opened now or still open from before.
"""

from __future__ import annotations

import errno
import os
from collections import OrderedDict
from pathlib import Path

from penstock.errors import MissingShardError, PathError
from penstock.foundation.process import ProcessLock
from penstock.storage.file import FileIdentity, OpenFile, raise_changed

# Opening costs as much as reading a few records; a process may have 1024 files open, a data set has more.
MOST_FILES = 128


class KeptFiles:
    """The files used last; any number of threads may ask.

    One that is pushed out is closed when nobody holds it any more, so whoever reads from its descriptor must
    hold it.
    """

    def __init__(self, most_files: int = MOST_FILES) -> None:
        self._most_files = most_files
        self._lock = ProcessLock()
        self._files: OrderedDict[Path, OpenFile] = OrderedDict()

    def open(self, path: Path) -> OpenFile:
        """Return the file, open.

        Raises:
            PathError: It cannot be opened.
        """
        with self._lock:
            file = self._files.get(path)
            if file is None:
                file = self._files[path] = self._open(path)
                if len(self._files) > self._most_files:
                    self._files.popitem(last=False)
            else:
                self._files.move_to_end(path)
            return file

    def _open(self, path: Path) -> OpenFile:
        try:
            return OpenFile(path)
        except PathError as error:
            is_too_many = isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EMFILE
            if not is_too_many or not self._files:
                raise
        self._files.clear()  # few are allowed here: those that are kept must go
        return OpenFile(path)

    def forget(self, path: Path) -> None:
        """Open the file anew next time."""
        with self._lock:
            self._files.pop(path, None)


class KeptFile:
    """One file among the kept ones, which must stay what it was."""

    def __init__(self, path: Path, identity: FileIdentity, files: KeptFiles) -> None:
        self.path = path
        self._identity = identity
        self._files = files

    def open(self) -> OpenFile:
        """Return the file, open.

        Raises:
            PathError: It cannot be opened.
            ChangedFileError: It is another than it was.
        """
        file = self._files.open(self.path)
        file.check_unchanged(self._identity)
        return file

    def check(self) -> None:
        """Compare what lies at the path now with what was opened.

        Raises:
            MissingShardError: Nothing lies there.
            ChangedFileError: It is another file, or another content.
        """
        try:
            facts = os.stat(self.path)  # noqa: PTH116 - once a shard and epoch: the quick way
        except FileNotFoundError as error:
            raise MissingShardError(
                "the shard is gone since it was opened",
                path=self.path,
                expected=f"{self._identity.size} bytes",
                got="no file",
                advice="Bring it back, or open the data set again.",
            ) from error
        now = FileIdentity.from_status(facts)
        if not now.is_like(self._identity):
            self._files.forget(self.path)
            raise_changed(self.path, self._identity, now)

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset` on; fewer only at the end of the file."""
        return self.open().read(offset, size)
