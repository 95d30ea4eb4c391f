"""One writer per folder: the second is refused with the name of the first; a stale lock is taken over."""

import errno
import fcntl
import json
import os
import socket
import subprocess
import sys

import pytest

from penstock.errors import BusyError
from penstock.shards.staging import lock as lock_module
from penstock.shards.staging.lock import OWNER_NAME, Owner, WriterLock
from raising import raises_with

HOLD = """
import sys, time
from pathlib import Path
from penstock.shards.staging.lock import WriterLock
lock = WriterLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""

# In a separate process: one with threads must not fork. What a winner leaves is stale for the next.
RACE = """
import json, multiprocessing, os, sys
from pathlib import Path
from penstock.errors import BusyError
from penstock.shards.staging.lock import WriterLock

def race(ready, done, results):
    ready.wait()
    try:
        lock = WriterLock(Path(sys.argv[1]))
    except BusyError as error:
        results.put(str(error))
    else:
        results.put(lock.owner.pid)
        done.wait(60)
        results.close()
        results.join_thread()
        os._exit(0)

start = multiprocessing.get_context("fork")
for _ in range(10):
    ready, done, results = start.Barrier(8), start.Event(), start.Queue()
    takers = [start.Process(target=race, args=(ready, done, results)) for _ in range(8)]
    for taker in takers:
        taker.start()
    print(json.dumps([results.get(timeout=60) for _ in takers]))
    done.set()
    for taker in takers:
        taker.join()
"""

# Eight that come and go, and remove the folder behind them.
CHURN = """
import os, sys
from pathlib import Path
from penstock.errors import BusyError
from penstock.shards.staging.lock import WriterLock

folder = Path(sys.argv[1])
alone = folder.with_name("alone")
for _ in range(8):
    if os.fork() == 0:
        break
else:
    sys.exit(max(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(8)))
num_held = 0
while num_held < 25:
    try:
        lock = WriterLock(folder)
    except BusyError:
        continue
    num_held += 1
    os.close(os.open(alone, os.O_CREAT | os.O_EXCL))
    alone.unlink()
    lock.release()
    try:
        folder.rmdir()
    except OSError:
        pass
os.write(1, b"%d " % num_held)  # in one piece: others write, too
os._exit(0)
"""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / ".pets.partial"


@pytest.fixture
def holder(folder):
    """Another process that has the lock."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, os.fspath(folder)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def write_owner(folder, **facts) -> None:
    folder.mkdir()
    usual = {"pid": 1, "host": socket.gethostname(), "started": "before", "token": "ab"}
    (folder / OWNER_NAME).write_text(json.dumps({**usual, **facts}))


def test_lock_says_who_has_it_and_leaves_nothing(folder):
    lock = WriterLock(folder)
    owner = json.loads((folder / OWNER_NAME).read_text())
    assert (owner["pid"], owner["host"]) == (os.getpid(), socket.gethostname())
    assert owner["token"] == lock.owner.token
    assert lock.owner.is_running
    lock.release()
    assert list(folder.iterdir()) == []


def test_lock_released_twice_leaves_the_next_owner_alone(folder):
    first = WriterLock(folder)
    first.release()
    second = WriterLock(folder)
    first.release()
    assert Owner.parse((folder / OWNER_NAME).read_bytes()) == second.owner
    second.release()


def test_lock_of_this_process_is_refused_to_it(folder):
    lock = WriterLock(folder)
    with raises_with(BusyError, f"{os.getpid()}"):
        WriterLock(folder)
    lock.release()
    WriterLock(folder).release()


def test_lock_of_another_process_is_refused_with_its_number_and_host(folder, holder):
    with raises_with(BusyError, f"process {holder.pid} {socket.gethostname()}") as caught:
        WriterLock(folder)
    assert caught.value.path == os.fspath(folder)
    assert isinstance(caught.value, OSError)


def test_lock_of_a_process_that_was_killed_is_taken_over(folder, holder):
    holder.kill()
    holder.wait()
    lock = WriterLock(folder)
    assert lock.owner.pid == os.getpid()
    lock.release()


def test_lock_of_a_zombie_process_is_taken_over(folder, holder):
    holder.kill()
    os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie from here on
    lock = WriterLock(folder)
    assert lock.owner.pid == os.getpid()
    lock.release()


def test_lock_of_a_later_process_of_the_same_number_is_taken_over(folder):
    write_owner(folder, pid=os.getpid(), started="another boot:1")
    lock = WriterLock(folder)
    assert lock.owner.started == Owner.current().started
    lock.release()


def test_lock_that_a_running_process_names_is_refused_though_nothing_locks_the_file(folder):
    owner = Owner.current()
    write_owner(folder, pid=owner.pid, started=owner.started)
    with raises_with(BusyError, f"process {owner.pid}"):
        WriterLock(folder)


def test_lock_of_another_host_is_refused_with_the_way_out(folder):
    write_owner(folder, pid=77, host="elsewhere")
    with raises_with(BusyError, f"process 77 elsewhere '{folder}'"):
        WriterLock(folder)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"pid": 1}', '{"pid": "x", "host": 1, "started": 2, "token": 3}']
)
def test_lock_with_a_torn_text_is_taken_over(folder, text):
    folder.mkdir()
    (folder / OWNER_NAME).write_text(text)
    lock = WriterLock(folder)
    assert lock.owner.pid == os.getpid()
    lock.release()


def test_lock_where_files_cannot_be_locked_serves_the_first_writer_alone(folder, monkeypatch):
    def refuse(fd: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    lock = WriterLock(folder)
    with raises_with(BusyError, f"process {os.getpid()}"):
        WriterLock(folder)
    lock.release()
    write_owner(folder.with_name("stale"))
    with raises_with(BusyError, "1"):
        WriterLock(folder.with_name("stale"))


def test_lock_on_a_file_that_loses_its_name_meanwhile_is_taken_on_the_next_one(folder, monkeypatch):
    first = WriterLock(folder)
    lock = fcntl.flock

    def release_first(fd: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        first.release()
        lock(fd, how)

    monkeypatch.setattr(fcntl, "flock", release_first)
    second = WriterLock(folder)
    assert Owner.parse((folder / OWNER_NAME).read_bytes()) == second.owner
    with pytest.raises(BusyError):
        WriterLock(folder)
    second.release()


def test_lock_file_that_is_a_link_is_refused(folder, tmp_path):
    folder.mkdir()
    (folder / OWNER_NAME).symlink_to(tmp_path / "nowhere")
    with pytest.raises(OSError, match="symbolic links"):
        WriterLock(folder)


def test_stale_lock_is_taken_over_by_one_of_many(folder):
    write_owner(folder, pid=2**22 + 1)
    run = subprocess.run(
        [sys.executable, "-c", RACE, os.fspath(folder)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    rounds = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(rounds) == 10
    for found in rounds:
        (winner,) = [each for each in found if isinstance(each, int)]
        refusals = [each for each in found if isinstance(each, str)]
        assert len(refusals) == 7
        assert all(f"process {winner} on host" in text for text in refusals)


def test_lock_of_many_that_come_and_go_is_held_by_one_at_a_time(folder):
    command = [sys.executable, "-c", CHURN, os.fspath(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (run.returncode, run.stderr) == (0, "")
    assert list(map(int, run.stdout.split())) == [25] * 8


def test_lock_on_a_system_without_proc_names_the_process_at_once(folder, monkeypatch):
    monkeypatch.setattr(lock_module, "_BOOT_ID", "/none/boot_id")
    lock = WriterLock(folder)
    assert (lock.owner.started, lock.owner.is_running) == ("", True)
    with pytest.raises(BusyError, match="this process"):
        WriterLock(folder)
    lock.release()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("pid", [0, -1, 1 << 40])
def test_process_that_cannot_exist_has_ended_without_proc(pid, monkeypatch):
    monkeypatch.setattr(lock_module, "_BOOT_ID", "/none/boot_id")
    assert not Owner(pid, socket.gethostname(), "", "ab").is_running


def test_process_that_has_ended_is_not_running_without_proc(monkeypatch):
    monkeypatch.setattr(lock_module, "_BOOT_ID", "/none/boot_id")
    done = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner = Owner(done.pid, socket.gethostname(), "", "ab")
    assert owner.is_running
    done.communicate(b"\n")
    assert not owner.is_running


def test_process_of_another_user_is_running_without_proc(monkeypatch):
    def refuse(pid, number):
        raise PermissionError(errno.EPERM, "not permitted")

    monkeypatch.setattr(lock_module, "_BOOT_ID", "/none/boot_id")
    monkeypatch.setattr(os, "kill", refuse)
    assert Owner(1, socket.gethostname(), "", "ab").is_running
