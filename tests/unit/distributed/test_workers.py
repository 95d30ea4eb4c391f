"""Several workers as the process that starts them sees it, with workers that only send events."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import asdict
from types import SimpleNamespace

import pytest

from penstock.batch.batch_plan import check_shares
from penstock.errors import NonFiniteError, OptionError, StateError, WorkerError

pytest.importorskip("keras")
from penstock.distributed import workers as module
from penstock.distributed.worker_process import (
    EventWatcher,
    LocalWorkers,
    LostWorkerError,
    RankProcesses,
    WorkerProcess,
    WorkerTask,
    check_gpus,
    choose_devices,
    dump_error,
    load_error,
    relay_event,
)
from penstock.distributed.workers import Launcher, RestartTimes, make_launcher, name_function, watch_workers
from penstock.settings.training import Workers
from penstock.storage.store_path import parse_store_path
from penstock.training.progress import TrainingProgress
from penstock.training.run_writer import Checkpoint, Checkpoints
from penstock.training.snapshot import Snapshot
from training_data import Listener

KILLED = {"kind": "exit", "status": -9, "log": ""}
DONE = {"kind": "done"}
END = {"kind": "exit", "status": 0, "log": ""}


class Script:
    """Workers whose events are given, one list for each time that they are asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.tasks = []
        self.is_stopped = self.is_closed = False
        self.num_spares = 0

    def find_address(self):
        return "127.0.0.1:7"

    def start(self, tasks):
        self.tasks = tasks

    def take_events(self):
        return self.answers.pop(0) if self.answers else []

    def start_spares(self):
        self.num_spares += 1

    def stop(self):
        self.is_stopped = True

    def close(self):
        self.is_closed = True


class Attempts(Script):
    """Workers that are started several times, each time with other events."""

    def __init__(self, *attempts):
        super().__init__()
        self.attempts = list(attempts)
        self.num_started = 0

    def start(self, tasks):
        self.current = self.attempts[self.num_started]
        self.num_started += 1
        self.current.start(tasks)

    def take_events(self):
        return self.current.take_events()

    def stop(self):
        self.current.stop()


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(module, "_POLL_SECONDS", 0)
    monkeypatch.setattr(module, "_GRACE_SECONDS", 0.05)


def save_step(folder, step):
    memory = {"epoch": 0, "loader": {}, "history": [], "seconds": 0.0}
    Checkpoints(folder, {}).save(Checkpoint(step, Snapshot({}), memory))


@pytest.fixture
def training(tmp_path):
    save_step(tmp_path, 0)
    data = SimpleNamespace(paths=[tmp_path / "pets" / "a.tfrecord"], manifest=SimpleNamespace(folder=""))
    return SimpleNamespace(folder=tmp_path, data=data, watcher=Listener())


def launch(monkeypatch, training, attempts, num_workers=2, batch_size=16):
    workers = Attempts(*attempts)
    launcher = Launcher(num_workers=num_workers)
    monkeypatch.setattr(Launcher, "connect", lambda self: nullcontext(lambda: workers))
    try:
        launcher.launch(training.folder, training.data, batch_size, training.watcher)
    finally:
        assert workers.is_closed or not workers.num_started


def test_workers_are_done_when_all_are():
    script = Script([(0, DONE)], [(0, END)], [], [(1, DONE)])
    assert watch_workers(script, 2, Listener()) is None
    assert script.answers == []


def test_progress_of_workers_reaches_the_watcher():
    events = []
    sender = EventWatcher(events.append, 3)
    sender.note("a note")
    sender.step(TrainingProgress(1, 5, 3, 7, {"loss": 0.5}, records_per_second=10.0))
    sender.epoch(TrainingProgress(1, 5, 7, 7, {"loss": float("nan")}), is_best=True)
    listener = Listener()
    for event in json.loads(json.dumps(events)):
        relay_event(event, listener)
    assert listener.notes == ["a note"]
    assert listener.looks == [TrainingProgress(1, 5, 3, 7, {"loss": 0.5}, records_per_second=30.0)]
    assert listener.epochs[0].step == 7


@pytest.mark.parametrize(
    "events",
    [
        [(1, KILLED)],
        [(1, {"kind": "exit", "status": 1, "log": "Address already in use"})],
        [(0, {"kind": "lost", "text": "the actor died", "name": "RayActorError"})],
        # The failure of the other worker is known first.
        [(0, {"kind": "error", "name": "OSError", "text": "reset"}), (0, END), (1, KILLED)],
    ],
)
def test_worker_that_ends_without_a_report_is_lost(events):
    assert watch_workers(Script(events), 2, Listener()).startswith("Worker")


def test_worker_that_was_killed_for_memory_is_reported_as_such():
    killed = {**KILLED, "is_memory": True}
    assert "memory" in watch_workers(Script([(1, killed)]), 2, Listener())
    assert "memory" not in watch_workers(Script([(1, KILLED)]), 2, Listener())


def test_parts_of_a_restart_are_noted_with_its_first_step():
    now = iter([10.0, 10.5, 12.0, 11.0, 12.5, 15.0, 20.0])
    times = RestartTimes(lambda: next(now))
    times.mark("end")
    stages = [(rank, {"kind": "stage", "name": "start"}) for rank in (1, 0)]
    built = [(0, {"kind": "stage", "name": "connect"}), (0, {"kind": "stage", "name": "build"})]
    step = {"kind": "step", "progress": asdict(TrainingProgress(0, 1, 1, 2, {}))}
    listener = Listener()
    script = Script([*stages, *built, (0, step), (0, step)], [(0, DONE), (1, DONE)])
    assert watch_workers(script, 2, listener, times) is None
    assert len(listener.notes) == 1
    found = [float(each) for each in re.findall(r"[0-9.]+(?= s)", listener.notes[0])]
    assert found == [10.0, 0.5, 0.5, 1.5, 2.5, 5.0]  # all, then each part


def test_spare_processes_are_started_once_some_time_after_the_first_step(monkeypatch):
    step = {"kind": "step", "progress": asdict(TrainingProgress(0, 1, 1, 2, {}))}
    end = [(0, DONE), (1, DONE)]
    script = Script([(0, step)], [(0, step)], end)
    watch_workers(script, 2, Listener())
    assert script.num_spares == 0
    monkeypatch.setattr(module, "_SPARE_SECONDS", 0)
    script = Script([], [(0, step)], [(0, step)], end)
    watch_workers(script, 2, Listener())
    assert script.num_spares == 1


def test_process_that_waits_for_a_task_ends_when_its_parent_closes_the_pipe():
    process = WorkerProcess({"JAX_PLATFORMS": "cpu"})
    process._process.stdin.close()
    assert process._process.wait(timeout=300) == 0
    process.stop()


def test_error_of_penstock_is_raised_rather_than_its_consequence():
    error = NonFiniteError(
        "step 3 of epoch 0", epoch=0, step=3, records=(("a", 1), ("b", 2)), path="a", expected="x", got="nan"
    )
    sent = json.loads(json.dumps(dump_error(error)))
    other = dump_error(RuntimeError("broken pipe"))
    with pytest.raises(NonFiniteError) as caught:
        watch_workers(Script([(0, other)], [(1, sent)]), 2, Listener())
    assert caught.value.records == error.records
    assert (caught.value.step, caught.value.path, str(caught.value)) == (3, "a", str(error))
    assert any("1" in note for note in caught.value.__notes__)


@pytest.mark.parametrize(
    "effect",
    [
        {"kind": "lost", "text": "connection closed by peer", "name": "XlaRuntimeError"},
        {"kind": "exit", "status": -6, "log": "the service is gone"},
    ],
)
def test_error_of_penstock_is_raised_though_the_other_worker_reports_a_loss(effect):
    sent = dump_error(StateError("state", expected="x", got="y"))
    lost = {"kind": "lost", "text": "connection closed by peer", "name": "XlaRuntimeError"}
    for answers in (
        [[(1, sent)], [(0, effect)]],
        [[(0, effect), (1, sent)]],
        [[(0, lost)], [(0, END)], [(1, sent)]],  # the loss is known first
    ):
        with pytest.raises(StateError) as caught:
            watch_workers(Script(*answers), 2, Listener())
        assert caught.value.got == "y"


def test_worker_that_was_killed_is_named_rather_than_the_one_that_lost_it():
    lost = {"kind": "lost", "text": "connection closed by peer", "name": "XlaRuntimeError"}
    assert watch_workers(Script([(0, lost)], [(0, END), (1, KILLED)]), 3, Listener()).startswith("Worker 1")


@pytest.mark.parametrize("line", ['{"kind": "no', "oops\n", "\udcff\n"])
def test_line_that_is_cut_or_no_json_ends_the_worker_with_an_event(monkeypatch, line):
    text = '{"kind": "done"}\n' + line
    written = text.encode("utf-8", "surrogateescape")
    program = f"import sys; sys.stdout.buffer.write({written!r}); sys.stdout.flush(); sys.stdin.read()"
    if not line.endswith("\n"):  # the process is killed while it writes
        program = program.replace("sys.stdin.read()", "import os; os.kill(os.getpid(), 9)")
    popen = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda args, **rest: popen([sys.executable, "-c", program], **rest)
    )
    process = WorkerProcess()
    try:
        process._reader.join(timeout=60)
        assert [event["kind"] for event in process.take_events()] == ["done", "exit"]
    finally:
        process.stop()


def test_gpus_are_divided_among_workers_of_this_machine():
    assert [choose_devices(rank, 2, None) for rank in range(2)] == ["0,1", "2,3"]
    assert [choose_devices(rank, 1, "GPU-a,GPU-b") for rank in range(2)] == ["GPU-a", "GPU-b"]
    assert choose_devices(1, 1, "") == ""


@pytest.mark.parametrize("num_gpus", [0, 2])
def test_hidden_gpus_stay_hidden(monkeypatch, num_gpus):
    given = []
    monkeypatch.setattr(RankProcesses, "start", lambda self, task, variables: given.append(variables))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    tasks = [WorkerTask(folder="", data=[], rank=rank, num_workers=2) for rank in range(2)]
    LocalWorkers(num_gpus).start(tasks)
    assert [{**os.environ, **each}["CUDA_VISIBLE_DEVICES"] for each in given] == [""] * 2


def test_more_local_workers_than_gpus_are_refused():
    check_gpus(2, None, 2)
    check_gpus(8, None, 0)  # CPUs
    check_gpus(1, None, 1)
    for num_workers, num_devices in ((3, None), (2, 2)):
        with pytest.raises(OptionError) as caught:
            check_gpus(num_workers, num_devices, 2)
        assert caught.value.field == "num_workers"
        assert caught.value.got == num_workers


def test_other_error_of_a_worker_is_raised_with_its_traceback():
    try:
        raise KeyError("depth")
    except KeyError as error:
        event = dump_error(error)
    with pytest.raises(WorkerError) as caught:
        watch_workers(Script([(1, event)]), 2, Listener())
    assert "depth" in str(caught.value.got)
    assert caught.value.what == "worker 1"
    assert __file__ in caught.value.__notes__[0]


def test_error_of_jax_means_that_another_worker_is_lost():
    kind = type("XlaRuntimeError", (RuntimeError,), {})
    assert dump_error(kind("gloo: connection closed by peer"))["kind"] == "lost"


def test_name_that_is_no_error_of_penstock_is_not_looked_up():
    event = {"kind": "error", "name": "annotations", "attributes": {"what": "x"}}
    assert isinstance(load_error(event, 0), WorkerError)


def test_group_starts_again_from_the_last_checkpoint(monkeypatch, training):
    attempts = [Script([(1, KILLED)]), Script([(0, DONE), (1, DONE)])]
    launch(monkeypatch, training, attempts)
    assert attempts[0].is_stopped
    assert len(training.watcher.notes) == 1
    assert [task.rank for task in attempts[1].tasks] == [0, 1]
    assert attempts[1].tasks[0].data == [str(training.folder / "pets")]


@pytest.mark.parametrize("folder", ["", ".shards-0123456789abcdef"])
def test_workers_open_the_folder_of_a_data_set_in_a_store(monkeypatch, training, folder):
    """Without the manifest, which is not beside the shards, they would take the data for another."""
    training.data.paths = [parse_store_path("s3://ponds/data") / folder / "a.tfrecord"]
    training.data.manifest.folder = folder
    attempts = [Script([(0, DONE), (1, DONE)])]
    launch(monkeypatch, training, attempts)
    assert attempts[0].tasks[1].data == ["s3://ponds/data"]


def test_worker_that_is_lost_while_it_starts_is_started_again(monkeypatch, training):
    class Gone(Script):
        def start(self, tasks):
            raise LostWorkerError("Worker 1 did not start (its node is gone)")

    attempts = [Gone(), Script([(0, DONE), (1, DONE)])]
    launch(monkeypatch, training, attempts)
    assert attempts[0].is_stopped
    assert "its node is gone" in training.watcher.notes[0]
    with pytest.raises(WorkerError) as caught:
        launch(monkeypatch, training, [Gone() for _ in range(9)])
    assert "its node is gone" in caught.value.got


def test_group_that_is_lost_again_and_again_without_progress_is_an_error(monkeypatch, training):
    attempts = [Script([(0, KILLED)]) for _ in range(9)]
    with pytest.raises(WorkerError) as caught:
        launch(monkeypatch, training, attempts)
    assert caught.value.path == str(training.folder)
    assert [each.is_stopped for each in attempts] == [True] * 4 + [False] * 5


def test_group_that_is_lost_often_but_makes_progress_continues(monkeypatch, training):
    class Progress(Script):
        def start(self, tasks):
            save_step(training.folder, self.step)
            super().start(tasks)

    attempts = [Progress([(0, KILLED)]) for _ in range(9)]
    for number, each in enumerate(attempts, 1):
        each.step = number
    launch(monkeypatch, training, [*attempts, Script([(0, DONE), (1, DONE)])])
    assert len(training.watcher.notes) == 9


def test_group_needs_a_checkpoint_to_begin_with(monkeypatch, training):
    (training.folder / "state.json").unlink()
    with pytest.raises(StateError):
        launch(monkeypatch, training, [])


def test_batch_that_workers_cannot_share_is_refused(monkeypatch, training):
    with pytest.raises(OptionError) as caught:
        launch(monkeypatch, training, [], num_workers=3)
    assert caught.value.field == "batch_size"
    assert caught.value.got == 16
    assert "18" in caught.value.advice
    check_shares(18, 3, "workers")


@pytest.mark.parametrize("number", [None, 1])
def test_one_worker_of_this_machine_is_this_process(number):
    assert make_launcher(Workers(num_workers=number)) is None
    assert make_launcher(Workers(num_workers=number, num_devices=1)) is None


def test_plan_of_several_workers_or_devices_or_of_a_cluster(monkeypatch):
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    assert make_launcher(Workers(num_workers=2)).num_workers == 2
    assert make_launcher(Workers(num_devices=2)) == Launcher(num_workers=1, num_devices=2)
    cluster = Launcher(num_workers=1, engine="ray", address="auto")
    assert make_launcher(Workers(engine="ray", address="auto")) == cluster


@pytest.mark.parametrize(
    ("choices", "field"),
    [
        ({"num_workers": 0}, "num_workers"),
        ({"num_workers": 2.0}, "num_workers"),
        ({"num_workers": 2, "num_devices": 0}, "num_devices"),
        ({"num_workers": 2, "engine": "spark"}, "engine"),
        ({"num_workers": 2, "address": "auto"}, "address"),
    ],
)
def test_plan_that_is_not_valid_is_refused(choices, field):
    with pytest.raises(OptionError) as caught:
        Workers(**choices)
    assert field in (caught.value.field, caught.value.what)


def test_workers_need_jax(monkeypatch):
    monkeypatch.setattr("keras.backend.backend", lambda: "tensorflow")
    with pytest.raises(OptionError) as caught:
        Launcher(num_workers=2).check()
    assert caught.value.field == "num_workers"
    assert "KERAS_BACKEND=jax" in caught.value.advice


def build():
    """Stand for a function that builds a model."""


def test_function_of_a_module_is_found_by_another_process():
    assert name_function(json.loads) == ("json", "loads")
    assert name_function(functools.partial(json.loads, "1")) == ("json", "loads", "1")


@pytest.mark.parametrize("function", [lambda: None, functools.partial(json.loads, 1), build])
def test_function_that_another_process_cannot_import_is_refused(function, monkeypatch):
    monkeypatch.setattr(build, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "build", build, raising=False)
    with pytest.raises(OptionError) as caught:
        name_function(function)
    assert caught.value.field == "model"
