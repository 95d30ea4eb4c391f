"""What an unfinished data set has reached so far, so that it can be resumed.

In: what was asked for, how many rows were read, each shard that is complete, and the failure. Out: a line of
JSON each in `journal.jsonl`, on the disk before the call returns, and the same read back.
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
from penstock.foundation.json_form import Document, JsonValue
from penstock.shards.entry import ShardEntry
from penstock.shards.request import refuse_difference
from penstock.storage.atomic import write_failure

JOURNAL_NAME: Final = "journal.jsonl"


@dataclass(frozen=True)
class Failure:
    """Why a run ended, and at which row of its source; None where it was at none."""

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
    """The journal of a folder; any number of threads may add to it.

    Attributes:
        path: Its file.
        begun: What was asked for, or None if nothing has begun.
        shards: What is complete, by its name.
        failure: Why the last run ended, or None.
    """

    def __init__(self, folder: Path, *, resume: bool) -> None:
        """Open the journal of a folder, or begin one.

        Args:
            folder: Where it lies.
            resume: Whether to go on with what is there. A journal that is damaged before its last line is
                not believed at all: a new one begins.

        Raises:
            WriteError: It cannot be written.
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
            os.ftruncate(self._fd, contents.num_bytes)  # a line that a crash has torn would spoil the next
        except OSError as error:
            raise write_failure(self.path, error) from error

    def begin(self, request: Mapping[str, Any]) -> None:
        """Record the request: everything that affects the output. On a resumed journal it must be the same.

        Raises:
            OptionError: It differs; the error names the option.
        """
        if self.begun is not None:
            refuse_difference(
                self.begun,
                json.loads(json.dumps(request)),
                what="what is to be resumed was begun with another",
                path=self.path.parent,
                advice="Ask for the same again, or leave out --resume (in Python resume=True) to start anew.",
            )
            return
        self._append({"begin": request})
        self.begun = request

    def add_rows(self, num_rows: int, digest: str) -> None:
        """Record that the source was read to its end; on a resumed journal its content must be the same.

        Args:
            num_rows: Number of rows that are written.
            digest: Digest of the content of the source, in hex.

        Raises:
            OptionError: The source has changed since.
        """
        if self._rows is not None:
            if self._rows != (num_rows, digest):
                raise OptionError(
                    "the source has changed since what is to be resumed was begun",
                    path=self.path.parent,
                    field="source",
                    expected=f"{self._rows[0]} rows (digest {self._rows[1]})",
                    got=f"{num_rows} rows (digest {digest})",
                    advice="Leave out --resume (in Python resume=True) to start anew.",
                )
            return
        self._append({"rows": num_rows, "digest": digest})
        self._rows = (num_rows, digest)

    def add_shard(self, shard: ShardEntry) -> None:
        """Note a shard that is complete and on the disk, under its name."""
        self._append({"shard": shard.to_json()})
        self.shards[shard.name] = shard

    def add_failure(self, row: int | None, error: BaseException) -> None:
        """Note why the run ends, and at which row; on a disk that takes no more, not even that."""
        failure = Failure(row, f"{type(error).__name__}: {error}")
        with contextlib.suppress(WriteError):  # it would hide the error that is told here
            self._append({"failed": {"row": row, "error": failure.error}})
            self.failure = failure

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def _append(self, form: Mapping[str, Any]) -> None:
        line = json.dumps(form).encode() + b"\n"
        with self._lock:
            rest = line
            try:
                while rest:  # the write after a short one tells why it was short
                    num_written = os.write(self._fd, rest)
                    if not num_written:
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    rest = rest[num_written:]
                os.fsync(self._fd)
            except OSError as error:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._fd, self._num_bytes)  # the next, a failure, begins a line
                raise write_failure(self.path, error, f"{len(rest)} bytes are left to write") from error
            self._num_bytes += len(line)


def _read(path: Path) -> _Contents | None:
    """Return what a journal says; None for one that is not there, or is damaged before its last line."""
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError:
        return None
    contents = _Contents()
    for number, line in enumerate(lines):
        try:
            if not line.endswith(b"\n"):
                raise ValueError("torn")
            _take(contents, json.loads(line))
        except (ValueError, RecursionError):  # ManifestError is a ValueError
            if number < len(lines) - 1:
                return None
        else:
            contents.num_bytes += len(line)
    return contents


def _take(contents: _Contents, form: Any) -> None:
    """Add what one line says.

    Raises:
        ManifestError: It says nothing that is known here.
    """
    line = JsonValue(form, Document("journal", ManifestError))
    keys = line.object().keys()
    if "begin" in keys and contents.begun is None:
        contents.begun = line.child("begin").object()
    elif contents.begun is None:
        raise line.refuse("what was asked for, in the first line")
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
