"""Runs in object stores: trained in a local working folder, whose files are uploaded as they are written.

In: the folder of a run in a store. Out: a local folder to train in, and the same files in the store: each
appears when it is complete, `state.json`, which names the checkpoints, after those, and by a conditional
write. Uploads are made by a thread, and always of the newest state, so that training does not wait for them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import BusyError, PathError, PenstockError, StoreError
from penstock.format.manifest import MANIFEST_NAME
from penstock.jobs.train.run_folder.store_claim import StoreClaim
from penstock.shards.staging.lock import OWNER_NAME
from penstock.storage.atomic import write_failure
from penstock.storage.location import ABSENT, Location, naming_original
from penstock.storage.paths import PathLike, locate
from penstock.storage.store_path import AnyPath
from penstock.training.progress import RelayWatcher, TrainingProgress, Watcher
from penstock.training.run import Run
from penstock.training.run_files import CONFIG_NAME, DATA_NAME, copy_run
from penstock.training.run_state import STATE_NAME
from penstock.training.run_writer import FOLDER_NAME as CHECKPOINTS_NAME

if TYPE_CHECKING:
    from penstock.jobs.train.cross_validation.folds import CrossValidation  # reads and writes tables

_log = logging.getLogger("penstock")

_POLL_SECONDS: Final = 0.5
_PAUSE_SECONDS: Final = 10.0  # after an upload that failed
_IN_PLACE: Final = (DATA_NAME, "folds")
"""Folders of data sets, whose files do not change. Links would change their metadata, which readers check."""

_ORDER: Final = (MANIFEST_NAME, CONFIG_NAME, STATE_NAME)
"""Files that name others, and are uploaded after those, in this order."""


class _Signature(NamedTuple):
    """What changes when a file is written again."""

    inode: int
    num_bytes: int
    modified: int


class LocalRun:
    """A run that is trained in the folder where it stays.

    Attributes:
        folder: The local folder to train in; None for one that the data gives its name.
    """

    def __init__(self, folder: PathLike | None) -> None:
        self.folder = folder

    def name_folder(self, folder: Path) -> AnyPath:
        """Return the path of the run for messages, given the local folder."""
        return folder

    def watch(self, watcher: Watcher) -> Watcher:
        """Return the watcher of the training."""
        return watcher

    def finish(self, done: Run) -> Run:
        """Return the run when it is trained."""
        return done

    def finish_folds(self, done: CrossValidation) -> CrossValidation:
        """Return the cross-validation when all folds are trained."""
        return done


class StoreRun(LocalRun):
    """A run in an object store that is trained in a local folder.

    Attributes:
        folder: The local folder.
        out: The folder in the store.
    """

    folder: Path

    def __init__(self, folder: Path, out: Location, claim: StoreClaim) -> None:
        super().__init__(folder)
        self.out = out.path
        self._at = out
        self._claim = claim
        self._uploaded: dict[str, _Signature] = {}
        self._versions: dict[str, str | None] = {}  # of `state.json`
        self._marks: dict[str, _Signature] = {}
        self._is_done = threading.Event()
        self._threads: list[threading.Thread] = []
        self._has_failed = False

    def fetch(self, *, resume: bool) -> None:
        """Copy the run from the store, if there is one."""
        found = [each for each in self._at.list() if _is_uploaded(each.name)]
        if found and not resume:
            advice = "Continue that run: `resume=True`; or choose another folder."
            raise PathError("already exists and is not empty", path=self.out, advice=advice)
        self._at.copy_files(found, self.folder)
        self._uploaded = self._sign_all()
        self._versions = {each.name: each.version for each in found if each.name.endswith(STATE_NAME)}

    def start(self) -> None:
        """Start the threads that renew the claim and upload files."""
        works: Sequence[Callable[[], None]] = (lambda: self._claim.keep(self._is_done), self._follow)
        self._threads = [threading.Thread(target=each, name="penstock-run", daemon=True) for each in works]
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        """Stop the threads; an upload that has begun is completed."""
        self._is_done.set()
        for each in self._threads:
            each.join()

    def name_folder(self, folder: Path) -> AnyPath:  # noqa: ARG002 - it has another one
        """Return the path of the run in the store."""
        return self.out

    def watch(self, watcher: Watcher) -> Watcher:
        """Return a watcher that also ends the training if another process takes over the run."""
        return _ClaimWatcher(watcher, self._claim)

    def finish(self, done: Run) -> Run:
        """Upload the remaining files, and return the run with its paths in the store."""
        self.complete()
        copy = copy_run(self.out)
        members = tuple(
            replace(each, folder=self.out / each.folder.name, copy=copy / each.folder.name)
            for each in done.members
        )
        return replace(done, folder=self.out, copy=copy, members=members)

    def finish_folds(self, done: CrossValidation) -> CrossValidation:
        """Upload the remaining files, and return the cross-validation with its paths in the store."""
        self.complete()
        return replace(done, folder=self.out, predictions=self.out / done.predictions.name)

    def complete(self) -> None:
        """Upload the remaining files."""
        self.stop()
        try:
            self.upload()
        except (PenstockError, OSError):
            self._has_failed = True
            raise

    def save(self) -> bool:
        """Upload the remaining files after an error; return whether the local folder is no longer needed."""
        self.stop()
        if not self._sign_all():
            return True
        if self._has_failed or self._claim.failure is not None:
            return False
        try:
            self.upload()
        except (PenstockError, OSError) as error:
            _log.warning("%s", error)
            return False
        return True

    def upload(self) -> None:
        """Upload all files that have changed, and delete the checkpoints that are no longer kept."""
        with tempfile.TemporaryDirectory(dir=self.folder.parent, prefix="upload-") as links:
            files = self._take_snapshot(Path(links))
            changed = [name for name, (_, signed) in files.items() if self._uploaded.get(name) != signed]
            # Nothing else: a program that cleans up temporary files must not remove a run from the store.
            gone = [name for name in self._uploaded if name not in files]
            removed = [name for name in gone if _is_checkpoint(name) or name.startswith("logs/")]
            if changed or removed:
                self._claim.renew()
            for name in sorted(changed, key=_rank):
                path, signed = files[name]
                if Path(name).name == STATE_NAME:
                    self._put_state(name, path.read_bytes())
                else:
                    (self._at / name).write_file(path)
                self._uploaded[name] = signed
            if removed:
                self._at.remove_files(removed)
                for name in removed:
                    del self._uploaded[name]

    def _put_state(self, name: str, data: bytes) -> None:
        """Write a `state.json`, if it is still the version that this process wrote or found."""
        file = self._at / name
        if file.write(data, over=self._versions.get(name) or ABSENT):
            found = file.fetch()  # content and version together: another process may have written since
            if bytes(found.data) == data:
                self._versions[name] = found.version
                return
        raise BusyError(
            "another process has written to this run",
            path=file.path,
            advice="Wait until it ends, and continue the run: `resume=True`.",
        )

    def _follow(self) -> None:
        """Upload files after every change of a file that names others, until `stop`."""
        pause = _POLL_SECONDS
        while not self._is_done.wait(pause):
            pause = _POLL_SECONDS
            marks = self._sign_marks()
            if marks == self._marks:
                continue
            try:
                self.upload()
                self._marks = marks
            except BusyError as error:
                self._claim.failure = error
                return
            except (PenstockError, OSError) as error:
                _log.warning("a checkpoint is not uploaded yet, and will be tried again: %s", error)
                pause = _PAUSE_SECONDS

    def _take_snapshot(self, links: Path) -> dict[str, tuple[Path, _Signature]]:
        """Return the files of one moment, by name: as links, which stay when training replaces the files."""
        while True:
            before = self._sign_marks()
            files: dict[str, tuple[Path, _Signature]] = {}
            for name, signed in self._sign_all().items():
                path = self.folder / name
                if any(part in _IN_PLACE for part in name.split("/")[:-1]):
                    files[name] = (path, signed)
                    continue
                link = links / secrets.token_hex(8)
                with contextlib.suppress(FileNotFoundError):  # removed by now
                    os.link(path, link)
                    files[name] = (link, _sign(link))
            # Files that a `state.json` names are written before it, and removed after the next one.
            if self._sign_marks() == before:
                return files

    def _sign_all(self) -> dict[str, _Signature]:
        found = {}
        for path in sorted(self.folder.rglob("*")):
            name = path.relative_to(self.folder).as_posix()
            if _is_uploaded(name):
                with contextlib.suppress(FileNotFoundError):
                    if path.is_file():
                        found[name] = _sign(path)
        return found

    def _sign_marks(self) -> dict[str, _Signature]:
        """Return the signatures of the files whose changes are followed: few, as they are examined often."""
        found = {}
        for pattern in (STATE_NAME, "history.csv", CONFIG_NAME):
            for prefix in ("", "*/", "*/*/"):
                for path in self.folder.glob(prefix + pattern):
                    with contextlib.suppress(FileNotFoundError):
                        found[path.relative_to(self.folder).as_posix()] = _sign(path)
        return found


@contextmanager
def run_at(out: PathLike | None, *, resume: bool, note: Callable[[str], None]) -> Iterator[LocalRun]:
    """Yield the run to train: in its folder, or in a local copy of its folder in an object store.

    `out`: folder of the run; None for one that the data gives its name.
    """
    if out is None or (at := locate(out)).has_folders:
        yield LocalRun(out)
        return
    with run_in_store(at, resume=resume, note=note) as run:
        yield run


@contextmanager
def run_in_store(out: Location, *, resume: bool, note: Callable[[str], None]) -> Iterator[StoreRun]:
    """Claim the folder of a run in an object store, and copy it to a local folder to train in.

    At the end, also after an error of the training, files that have changed are uploaded, the local folder is
    removed, and the claim is released. If files cannot be uploaded, the local folder is kept.
    """
    out.refuse_read_only()
    claim = StoreClaim(out, may_take_over=resume, note=note)
    folder = None
    try:
        folder = _make_folder(out.name)
        run = StoreRun(folder, out, claim)
        run.fetch(resume=resume)
    except BaseException:
        _clean_up(folder, claim)
        raise
    run.start()
    try:
        with naming_original(run.folder, out.path):
            yield run
        run.complete()
    except BaseException as error:
        if run.save():
            _clean_up(folder, claim)
        else:
            _name_copy(error, folder)
        raise
    _clean_up(folder, claim)


def _make_folder(name: str) -> Path:
    try:
        folder = Path(tempfile.mkdtemp(prefix="penstock-run-")) / name
        folder.mkdir()
    except OSError as error:
        raise write_failure(Path(tempfile.gettempdir()), error) from error
    return folder


def _clean_up(folder: Path | None, claim: StoreClaim) -> None:
    if folder is not None:
        shutil.rmtree(folder.parent, ignore_errors=True)
    try:
        claim.release()
    except StoreError as error:
        _log.warning(
            "the claim of this process to the run remains until `resume=True` takes it over: %s", error
        )


def _name_copy(error: BaseException, folder: Path) -> None:
    """Name the local copy of a run that could not be uploaded."""
    text = (
        f"The run is kept in {folder}, which is a run folder like any other: use it, or copy it to the store."
    )
    if isinstance(error, PenstockError):
        error.advice = f"{error.advice} {text}".strip()
    else:
        error.add_note(text)
        _log.warning("%s", text)


def _is_uploaded(name: str) -> bool:
    """Whether a file belongs to the run in the store: not if it is temporary, or a lock."""
    parts = name.split("/")
    return name != OWNER_NAME and not any(part.startswith(".") for part in parts)


def _is_checkpoint(name: str) -> bool:
    return CHECKPOINTS_NAME in name.split("/")[:-1]


def _rank(name: str) -> tuple[int, int, str]:
    """Return the rank of a file among uploads: files that name others come after those, outer ones last."""
    *folders, last = name.split("/")
    return _ORDER.index(last) + 1 if last in _ORDER else 0, -len(folders), name


def _sign(path: Path) -> _Signature:
    found = path.stat()
    return _Signature(found.st_ino, found.st_size, found.st_mtime_ns)


class _ClaimWatcher(RelayWatcher):
    """A watcher that raises an error if another process has taken over the run."""

    def __init__(self, watcher: Watcher, claim: StoreClaim) -> None:
        super().__init__(watcher)
        self._claim = claim

    def step(self, progress: TrainingProgress) -> None:
        """Pass on a step."""
        if self._claim.failure is not None:
            raise self._claim.failure
        super().step(progress)
