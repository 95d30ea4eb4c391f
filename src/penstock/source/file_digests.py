"""SHA-256 of files, which a thread computes while other threads read the files.

In: paths. Out: the digest of each, in hex.
"""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Final

_PIECE_BYTES: Final = 1 << 20


class FileDigests:
    """Digests of files; without `begin`, each is computed when it is asked for.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("pets.txt").write_bytes(b"rex")
        >>> FileDigests([Path("pets.txt")]).find(Path("pets.txt"))[:8]
        '3227fe6b'
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = list(dict.fromkeys(paths))
        self._found: dict[Path, Future[str]] = {}

    def begin(self) -> None:
        """Begin to hash the files in a thread; further calls do nothing."""
        if self._found:
            return
        found: dict[Path, Future[str]] = {path: Future() for path in self._paths}
        stop = threading.Event()
        # A daemon, and without a reference to this object: neither an error nor the end of the program waits
        # until a large file is read to its end.
        thread = threading.Thread(target=_hash_all, args=(found, stop), name="penstock-source", daemon=True)
        thread.start()
        weakref.finalize(self, _end, thread, stop)
        self._found = found

    def find(self, path: Path) -> str:
        """Return the digest of a file, once it is computed."""
        if path not in self._found:
            self._found[path] = Future()
            _hash_all({path: self._found[path]}, threading.Event())
        return self._found[path].result()


def _hash_all(found: Mapping[Path, Future[str]], stop: threading.Event) -> None:
    for path, future in found.items():
        try:
            digest = _hash_file(path, stop)
        except BaseException as error:  # raised where the digest is needed
            future.set_exception(error)
        else:
            if digest is None:
                return
            future.set_result(digest)


def _hash_file(path: Path, stop: threading.Event) -> str | None:
    """Return the digest of a file; None if it is not wanted any more."""
    found = hashlib.sha256()
    piece = bytearray(_PIECE_BYTES)
    with path.open("rb", buffering=0) as file:
        while num_bytes := file.readinto(piece):
            if stop.is_set():
                return None
            found.update(memoryview(piece)[:num_bytes])
    return found.hexdigest()


def _end(thread: threading.Thread, stop: threading.Event) -> None:
    stop.set()
    if thread is not threading.current_thread():  # the garbage collector may run in it
        thread.join()
