"""The claim of a process to a run folder in an object store: one process at a time trains there.

In: the folder. Out: an object `owner.json` that names the process, created if there is none, and renewed
while the process runs; or a `BusyError`. Nothing removes the claim of a killed process: a process that may
take over waits until it has seen that the claim is not renewed. All writes are conditional: one process wins.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final

from penstock.errors import BusyError, NoSuchPathError, PenstockError, StoreError
from penstock.shards.staging.lock import OWNER_NAME, Owner
from penstock.storage.location import ABSENT
from penstock.storage.paths import PathLike, locate

_log = logging.getLogger("penstock")

RENEWAL_SECONDS: Final = 15.0
# Three renewals: a process that is slow to renew must not be taken for one that was killed.
WAIT_SECONDS: Final = 50.0
_POLL_SECONDS: Final = 2.0


class StoreClaim:
    """The claim of this process, until `release`.

    Attributes:
        failure: Error of a claim that another process has taken over, or None.
    """

    def __init__(
        self,
        folder: PathLike,
        *,
        may_take_over: bool,
        note: Callable[[str], None],
        wait_seconds: float | None = None,
    ) -> None:
        """Claim a folder.

        `may_take_over`: whether the claim of a process that was killed may be taken over. `wait_seconds`:
        time in which a running process renews its claim; `WAIT_SECONDS` by default.
        """
        self.failure: PenstockError | None = None
        self._folder = folder
        self._file = locate(folder) / OWNER_NAME
        self._owner = Owner.current()
        self._num_renewals = 0
        self._lock = threading.Lock()
        self._etag = ""
        if not self._write(None):
            wait_seconds = WAIT_SECONDS if wait_seconds is None else wait_seconds
            self._take_over(may_take_over=may_take_over, note=note, wait_seconds=wait_seconds)

    def renew(self) -> None:
        """Write the claim again, if this process still holds it."""
        with self._lock:
            if self.failure is None and not self._write(self._etag):
                self.failure = _busy(self._folder, self._read()[0], "has taken over this run")
            if self.failure is not None:
                raise self.failure

    def keep(self, is_done: threading.Event) -> None:
        """Renew the claim until an event is set, or another process has taken the claim over."""
        while not is_done.wait(RENEWAL_SECONDS):
            try:
                self.renew()
            except BusyError:
                return
            except StoreError as error:  # the next renewal may succeed
                _log.warning("%s", error)

    def release(self) -> None:
        """Remove the claim, if this process still holds it."""
        with self._lock:
            if self.failure is None and self._read()[0] == self._owner:
                self._file.remove()

    def _write(self, etag: str | None) -> bool:
        """Write the claim if it is a given version, or if there is none; return whether it was written."""
        self._num_renewals += 1
        data = json.dumps({"owner": asdict(self._owner), "renewals": self._num_renewals}).encode() + b"\n"
        if not self._file.write(data, over=etag or ABSENT):
            return False
        owner, found = self._read()
        self._etag = found or ""
        return owner == self._owner

    def _read(self) -> tuple[Owner | None, str | None]:
        """Return the owner that the claim names, and its version; None if there is none."""
        try:
            found = self._file.fetch()
        except NoSuchPathError:
            return None, None
        try:
            form: Any = json.loads(bytes(found.data))
            return Owner.parse(json.dumps(form["owner"]).encode()), found.version or ""
        except (ValueError, TypeError, KeyError, RecursionError):
            return None, found.version or ""

    def _take_over(self, *, may_take_over: bool, note: Callable[[str], None], wait_seconds: float) -> None:
        other, etag = self._read()
        if etag is None:  # it was released in between, or cannot be written
            if self._write(None):
                return
            other, etag = self._read()
            if etag is None:
                advice = "Check that the bucket exists, and that you may write to it."
                raise StoreError("the store cannot be written", path=self._folder, advice=advice)
        if not may_take_over:
            raise _busy(self._folder, other, "is training in this folder, or was killed")
        if other is not None and other.is_running:
            raise _busy(self._folder, other, "is training in this folder")
        if other is None or not other.is_here:  # a process on this machine is known to have ended
            note(
                f"{_name(other)} has claimed this run. Waiting {wait_seconds:.0f} seconds to see whether it "
                "is still running."
            )
            deadline = time.monotonic() + wait_seconds
            while etag is not None and time.monotonic() < deadline:
                time.sleep(min(_POLL_SECONDS, wait_seconds))
                other, found = self._read()
                if found is not None and found != etag:
                    raise _busy(self._folder, other, "is training in this folder")
                etag = found
        if not self._write(etag):
            raise _busy(self._folder, self._read()[0], "is training in this folder")


def _name(owner: Owner | None) -> str:
    return "Another process" if owner is None else f"Process {owner.pid} on host {owner.host}"


def _busy(folder: PathLike, owner: Owner | None, what: str) -> BusyError:
    advice = (
        "Wait until it ends, or choose another folder. If it was killed, continue the run: `resume=True`."
    )
    return BusyError(f"{_name(owner)[0].lower()}{_name(owner)[1:]} {what}", path=folder, advice=advice)
