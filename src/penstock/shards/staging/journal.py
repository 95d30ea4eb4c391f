"""The journal of an unfinished data set, by which a conversion can be resumed.

In: the request, the number of rows, each complete shard, and the failure. Out: one line of JSON for each in
`journal.jsonl`, which a resumed run reads. The call that adds a shard returns when all lines are on disk.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from penstock.errors import ManifestError, OptionError, WriteError
from penstock.format.entry import ShardEntry
from penstock.foundation.json_form import Document, JsonValue
from penstock.shards.request import refuse_difference
from penstock.storage.atomic import sync_descriptor, write_failure

JOURNAL_NAME: Final = "journal.jsonl"


@dataclass(frozen=True)
class Failure:
    """The error that ended a run, and the row of the source, or None if no row was involved."""

    row: int | None
    error: str


@dataclass
class _Contents:
    begun: Mapping[str, Any] | None = None
    rows: tuple[int, str] | None = None
    shards: dict[str, ShardEntry] = field(default_factory=dict)
    failure: Failure | None = None
    num_bytes: int = 0


class Journal:
    """The journal of a folder; any number of threads can add to it.

    Attributes:
        path: Path of the file.
        begun: Request of the conversion, or None if it has not begun.
        shards: Entries of complete shards, by name.
        failure: Failure of the last run, or None.
    """

    def __init__(self, folder: Path, *, resume: bool) -> None:
        """Open the journal of a folder, or create one.

        `resume`: whether to continue an existing journal. One that is damaged before its last line is
        replaced by a new one.
        """
        self.path = folder / JOURNAL_NAME
        self._lock = threading.Lock()
        contents = (_read(self.path) if resume else None) or _Contents()
        self.begun = contents.begun
        self.shards = contents.shards
        self.failure = contents.failure
        self._rows = contents.rows
        self._num_bytes = contents.num_bytes
        try:
            self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            os.ftruncate(self._fd, contents.num_bytes)  # removes a line that a crash left incomplete
        except OSError as error:
            raise write_failure(self.path, error) from error

    def begin(self, request: Mapping[str, Any]) -> None:
        """Record the request: everything that affects the output, and is the same in a resumed journal."""
        if self.begun is not None:
            refuse_difference(
                self.begun,
                json.loads(json.dumps(request)),
                what="the conversion to resume was started with a different",
                path=self.path.parent,
                advice="Use the same options, or leave out `resume=True` to start again.",
            )
            return
        self._append({"begin": request}, syncs=False)
        self.begun = request

    def add_rows(self, num_rows: int, digest: str) -> None:
        """Record that the source was read completely; in a resumed journal its content must be the same."""
        if self._rows is not None:
            if self._rows != (num_rows, digest):
                raise OptionError(
                    "the source has changed since the conversion to resume was started",
                    path=self.path.parent,
                    field="source",
                    expected=f"{self._rows[0]} rows (digest {self._rows[1]})",
                    got=f"{num_rows} rows (digest {digest})",
                    advice="Leave out `resume=True` to start again.",
                )
            return
        self._append({"rows": num_rows, "digest": digest}, syncs=False)
        self._rows = (num_rows, digest)

    def add_shard(self, shard: ShardEntry) -> None:
        """Record a shard that is complete and on disk."""
        self._append({"shard": shard.to_json()})
        self.shards[shard.name] = shard

    def add_failure(self, row: int | None, error: BaseException) -> None:
        """Record the error that ends the run, and its row; nothing is recorded on a full disk."""
        failure = Failure(row, f"{type(error).__name__}: {error}")
        with contextlib.suppress(WriteError):  # it would hide the error that is recorded
            self._append({"failed": {"row": row, "error": failure.error}})
            self.failure = failure

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def _append(self, form: Mapping[str, Any], *, syncs: bool = True) -> None:
        """Add a line. Without a shard there is nothing to resume, so only lines of shards are waited for."""
        line = json.dumps(form).encode() + b"\n"
        with self._lock:
            rest = line
            try:
                while rest:  # after an incomplete write, the next one raises the reason
                    num_written = os.write(self._fd, rest)
                    if not num_written:
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    rest = rest[num_written:]
                if syncs:
                    sync_descriptor(self._fd)
            except OSError as error:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._fd, self._num_bytes)  # so that the next entry starts a line
                raise write_failure(self.path, error, f"{len(rest)} bytes were not written") from error
            self._num_bytes += len(line)


def _read(path: Path) -> _Contents | None:
    """Return the content of a journal; None if it is missing, or damaged before its last line."""
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError:
        return None
    contents = _Contents()
    for number, line in enumerate(lines):
        try:
            if not line.endswith(b"\n"):
                raise ValueError("incomplete line")
            _take(contents, json.loads(line))
        except (ValueError, RecursionError):  # ManifestError is a ValueError
            if number < len(lines) - 1:
                return None
        else:
            contents.num_bytes += len(line)
    return contents


def _take(contents: _Contents, form: Any) -> None:
    """Add the content of one line."""
    line = JsonValue(form, Document("journal", ManifestError))
    keys = line.object().keys()
    if "begin" in keys and contents.begun is None:
        contents.begun = line.child("begin").object()
    elif contents.begun is None:
        raise line.refuse("the request in the first line")
    elif "rows" in keys:
        contents.rows = (line.child("rows").count(), line.child("digest").text())
    elif "shard" in keys:
        shard = ShardEntry.from_json(line.child("shard"))
        contents.shards[shard.name] = shard
    elif "failed" in keys:
        failed = line.child("failed")
        row = failed.child("row")
        contents.failure = Failure(None if row.value is None else row.count(), failed.child("error").text())
    else:
        raise line.refuse("'rows', 'shard' or 'failed'")
