"""The cache folder: files that are expensive to make again and may be deleted at any time.

In: a key. Out: a file under `$PENSTOCK_CACHE`, else `$XDG_CACHE_HOME/penstock`, else `~/.cache/penstock`;
never in the folder of the data. If the folder cannot be written, the work is done again, without an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from penstock.storage.store_path import AnyPath

MAX_INFLATED_BYTES = 16 << 30  # total size of all decompressed copies


def cache_folder() -> Path:
    """Return the path of the cache folder, which need not exist."""
    chosen = os.environ.get("PENSTOCK_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "penstock"


def cache_path(kind: str, source: AnyPath, *versions: object) -> Path:
    """Return the path of the cache file made from `source`; `versions` distinguish variants of it."""
    name = os.path.realpath(source) if isinstance(source, Path) else str(source)
    text = "\n".join([name, *map(str, versions)])
    return cache_folder() / kind / hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:40]


def write_cached(path: Path, chunks: Iterable[bytes]) -> bool:
    """Write a cache file atomically. Return whether it was written; errors of `chunks` are raised."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd, name = tempfile.mkstemp(dir=path.parent, prefix=".tmp-")
    except OSError:
        return False
    try:
        return _write_chunks(fd, chunks) and _rename(Path(name), path)
    finally:
        with contextlib.suppress(OSError):
            Path(name).unlink()


def _write_chunks(fd: int, chunks: Iterable[bytes]) -> bool:
    out = os.fdopen(fd, "wb")
    try:
        for chunk in chunks:  # outside of the `try` below: errors from making a chunk must be raised
            try:
                out.write(chunk)
                out.flush()
            except OSError:
                return False
        return True
    finally:
        with contextlib.suppress(OSError):
            out.close()


def _rename(name: Path, path: Path) -> bool:
    try:
        name.replace(path)
    except OSError:
        return False
    return True


def make_room(folder: Path, needed_bytes: int, limit_bytes: int = MAX_INFLATED_BYTES) -> bool:
    """Delete the least recently used files of `folder` until `needed_bytes` more fit within the limit.

    Return whether they fit. Nothing is deleted if they alone exceed the limit.
    """
    if needed_bytes > limit_bytes:
        return False
    files = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # another process may have deleted or renamed it
                status = entry.stat()
                files.append((status.st_atime_ns, status.st_size, entry.path))
    used = sum(size for _, size, _ in files)
    for _, size, name in sorted(files):
        if used + needed_bytes <= limit_bytes:
            break
        with contextlib.suppress(OSError):
            Path(name).unlink()
            used -= size
    return used + needed_bytes <= limit_bytes
