"""The user's cache folder: what is dear to make again and may be thrown away at any time.

In: a key. Out: a file under `$PENSTOCK_CACHE`, else `$XDG_CACHE_HOME/penstock`, else `~/.cache/penstock`;
never beside somebody else's data. A folder that cannot be written is no error: the work is done again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

MAX_INFLATED_BYTES = 16 << 30  # of all inflated copies together


def cache_folder() -> Path:
    """Return the folder, which need not exist."""
    told = os.environ.get("PENSTOCK_CACHE")
    if told:
        return Path(told)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "penstock"


def cache_path(kind: str, source: Path, *facts: object) -> Path:
    """Return where what is made of `source` is kept; `facts` tell apart versions of it."""
    text = "\n".join([os.path.realpath(source), *map(str, facts)])
    return cache_folder() / kind / hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:40]


def write_cached(path: Path, chunks: Iterable[bytes]) -> bool:
    """Write a cache file whole or not at all. Return whether it is there; errors of `chunks` are raised."""
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
        for chunk in chunks:  # not inside the `try` below: what making a chunk raises is not ours to swallow
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
    """Delete the files of `folder` used longest ago, until `needed_bytes` more keep within the limit.

    Returns False, and deletes nothing, if they cannot.
    """
    if needed_bytes > limit_bytes:
        return False
    files = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            facts = entry.stat()
            files.append((facts.st_atime_ns, facts.st_size, entry.path))
    used = sum(size for _, size, _ in files)
    for _, size, name in sorted(files):
        if used + needed_bytes <= limit_bytes:
            break
        with contextlib.suppress(OSError):
            Path(name).unlink()
            used -= size
    return used + needed_bytes <= limit_bytes
