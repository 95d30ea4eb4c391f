"""Training into a run folder in an object store: uploads, resuming, two writers, failures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.cli.main import main
from penstock.errors import BusyError, NoSuchPathError, PathError, StoreError
from store_server import get_object, list_keys, put_object, set_environment
from training_data import Interruption, interrupt_after

pytest.importorskip("keras")
from penstock.jobs.train.run_folder import store_claim, store_run
from penstock.storage.paths import locate
from penstock.storage.store_path import StorePath
from penstock.storage.stored import Stored
from penstock.training.progress import SilentWatcher, TrainingProgress

RUN = "s3://animals/runs/a"
SECRETS = (b"wJalrXUtnFEMI-K7MDENG-penstock", b"AKIAPENSTOCKTESTS")
OPTIONS = {"epochs": 2, "batch_size": 16, "seed": 3, "patience": None, "checkpoint_steps": 2, "verbose": 0}
MODEL = ps.options.ModelOptions(preset="small", units=(8,))


def table() -> dict[str, object]:
    rng = np.random.default_rng(0)
    height = rng.normal(0, 1, 96)
    return {
        "height": height,
        "width": rng.normal(0, 1, 96),
        "tall": np.where(height > 0, "yes", "no").tolist(),
    }


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch) -> Path:
    """The folder of temporary files of this test; files are uploaded often."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(store_run, "_POLL_SECONDS", 0.02)
    return folder


def train(data: object, out: object, **options) -> ps.Run:
    return ps.train(data, out=out, model_options=MODEL, **{**OPTIONS, **options})


def read_weights(run: ps.Run) -> str:
    return json.loads((run.files / "state.json").read_text())["weights"]


def list_left(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if not path.name.startswith("penstock-copy-")]


def test_run_from_store_to_store_is_that_of_a_disk_and_is_resumed_from_the_store_alone(
    s3, s3_port, tmp_path, temporary, monkeypatch
):
    data = ps.convert(table(), "s3://animals/data", target="tall")
    near = train("s3://animals/data", tmp_path / "run")
    run = train("s3://animals/data", RUN)
    assert str(run.folder) == RUN
    assert str(run.data) == "s3://animals/data"
    assert read_weights(run) == read_weights(near)
    keys = {key.removeprefix("runs/a/") for key in list_keys(s3_port, "animals", "runs/")}
    files = {path.relative_to(near.files).as_posix() for path in near.files.rglob("*") if path.is_file()}
    assert {key for key in keys if "logs/" not in key} == {name for name in files if "logs/" not in name}
    for key in list_keys(s3_port, "animals", "runs/"):
        content = get_object(s3_port, "animals", key) or b""
        assert not any(secret in content for secret in SECRETS)
    assert list_left(temporary) == []
    ps.evaluate(run, data["train"], bootstrap=0, importance=False)

    with pytest.raises(PathError) as caught:
        train("s3://animals/data", RUN)
    assert caught.value.path == RUN
    assert read_weights(train(None, RUN, resume=True)) == read_weights(near)

    with monkeypatch.context() as patch:
        interrupt_after(patch, "b", 6)
        with pytest.raises(Interruption):
            train("s3://animals/data", "s3://animals/runs/b")
    assert list_left(temporary) == []
    state = json.loads(get_object(s3_port, "animals", "runs/b/state.json") or b"")
    assert (state["status"], state["step"]) == ("running", 6)
    assert get_object(s3_port, "animals", "runs/b/owner.json") is None
    with pytest.raises(ps.errors.StateError):
        ps.open_run("s3://animals/runs/b")
    resumed = train(None, "s3://animals/runs/b", resume=True)
    assert read_weights(resumed) == read_weights(near)


@pytest.mark.long
def test_raw_data_ensembles_and_folds_are_stored_with_their_runs(s3, s3_port, temporary):
    run = train(table(), RUN, target="tall", ensemble=2, epochs=1)
    assert [str(each.folder) for each in run.members] == [f"{RUN}/member-1", f"{RUN}/member-2"]
    assert str(run.data) == f"{RUN}/data"
    assert ps.open(run.data)["train"].schema.targets == ("tall",)
    opened = ps.open_run(RUN)
    rows = [{"height": 0.5, "width": 0.25}]
    assert ps.predict(opened, rows).to_pylist() == ps.predict(run, rows).to_pylist()
    assert read_weights(train(None, RUN, resume=True, epochs=1)) == read_weights(run)

    given = {"out": "s3://animals/runs/folds", "model_options": MODEL, **OPTIONS, "epochs": 1}
    found = ps.cross_validate("s3://animals/runs/a/data", folds=2, **given)
    assert [str(each) for each in found.runs] == [f"s3://animals/runs/folds/fold-{n}" for n in (1, 2)]
    assert get_object(s3_port, "animals", "runs/folds/predictions.parquet") is not None
    assert ps.evaluate(found.runs[0], bootstrap=0, importance=False).records > 0
    again = ps.cross_validate(None, **given, resume=True)
    assert again.means == found.means
    assert list_left(temporary) == []


def test_command_line_trains_evaluates_and_predicts_in_a_store(s3, s3_port, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ps.convert(table(), "s3://animals/data", target="tall")
    options = ["--epochs", "1", "--batch-size", "16", "--preset", "small"]
    assert main(["train", "s3://animals/data", "--out", RUN, *options]) == 0
    assert RUN in capsys.readouterr().out
    assert main(["train", "s3://animals/data", "--out", RUN, *options]) == 2
    assert RUN in capsys.readouterr().err
    assert main(["train", "--resume", "--out", RUN]) == 0
    assert main(["train", "--resume", "--out", "s3://animals/none"]) == 2
    assert "s3://animals/none" in capsys.readouterr().err
    assert main(["evaluate", RUN, "--split", "train", "--bootstrap", "0", "--no-importance"]) == 0
    (tmp_path / "new.csv").write_text("height,width\n0.5,0.25\n")
    assert main(["predict", RUN, "new.csv", "--out", "s3://animals/found.csv"]) == 0
    assert (get_object(s3_port, "animals", "found.csv") or b"").startswith(b"row,tall")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "temporary"]


def write(folder: Path, name: str, text: str) -> None:
    """Write a file as training does: whole, under another name first."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.with_name(".tmp-x").write_text(text)
    path.with_name(".tmp-x").replace(path)


def wait_for(port: int, key: str, content: bytes) -> None:
    deadline = time.monotonic() + 60
    while get_object(port, "animals", f"runs/a/{key}") != content:
        assert time.monotonic() < deadline
        time.sleep(0.02)


OUT = StorePath("s3", "animals", "runs/a")


def open_folder(**options):
    return store_run.run_in_store(locate(OUT), **{"resume": False, "note": lambda _: None, **options})


def test_files_are_uploaded_while_training_runs_and_the_state_last(s3, s3_port):
    with open_folder() as run:
        for name in ("run.yaml", "checkpoints/step-1", "member-1/state.json", "pipeline.json", "state.json"):
            write(run.folder, name, f"{name} 1")
        wait_for(s3_port, "state.json", b"state.json 1")
        puts = [each.key.removeprefix("runs/a/") for each in s3.requests if each.method == "PUT"]
        found = [name for name in puts if name != "owner.json"]
        assert found == [
            "checkpoints/step-1",
            "pipeline.json",
            "run.yaml",
            "member-1/state.json",
            "state.json",
        ]
        write(run.folder, "checkpoints/step-2", "2")
        write(run.folder, "state.json", "state.json 2")
        (run.folder / "checkpoints/step-1").unlink()
        (run.folder / "pipeline.json").unlink()  # by a program that cleans up
        run.stop()
        run.upload()
    assert list_keys(s3_port, "animals") == [
        f"runs/a/{name}"
        for name in ("checkpoints/step-2", "member-1/state.json", "pipeline.json", "run.yaml", "state.json")
    ]


def test_state_is_not_replaced_if_another_process_wrote_it(s3, s3_port, temporary):
    def work() -> None:
        with open_folder() as run:
            write(run.folder, "state.json", "mine")
            wait_for(s3_port, "state.json", b"mine")
            put_object(s3_port, "animals", "runs/a/state.json", b"of another process")
            write(run.folder, "state.json", "mine, later")
            run.finish(None)

    with pytest.raises(BusyError) as caught:
        work()
    assert caught.value.path == f"{RUN}/state.json"
    (kept,) = temporary.glob("penstock-run-*/a/state.json")
    assert kept.read_text() == "mine, later"
    assert str(kept.parent) in caught.value.advice
    assert get_object(s3_port, "animals", "runs/a/state.json") == b"of another process"


def test_state_of_another_process_that_follows_at_once_is_not_replaced(s3, s3_port, monkeypatch):
    """Between writing a state and asking for its version, another process writes."""
    write_object = Stored.write

    def write_twice(self, data, **options):
        written = write_object(self, data, **options)
        if self.name == "state.json" and data == b"mine":
            put_object(s3_port, "animals", "runs/a/state.json", b"of another process")
        return written

    monkeypatch.setattr(Stored, "write", write_twice)

    def work() -> None:
        with open_folder() as run:
            write(run.folder, "state.json", "mine")
            run.complete()
            write(run.folder, "state.json", "mine, later")

    with pytest.raises(BusyError):
        work()
    assert get_object(s3_port, "animals", "runs/a/state.json") == b"of another process"


def test_training_ends_when_another_process_takes_over(s3, s3_port):
    def work() -> None:
        with open_folder() as run:
            watched = run.watch(SilentWatcher())
            watched.step(TrainingProgress(0, 1, 1, 2))
            put_object(s3_port, "animals", "runs/a/owner.json", b"{}")
            write(run.folder, "state.json", "x")
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                watched.step(TrainingProgress(0, 1, 2, 2))
                time.sleep(0.02)

    with pytest.raises(BusyError):
        work()
    assert get_object(s3_port, "animals", "runs/a/owner.json") == b"{}"


def test_store_that_fails_for_a_while_delays_uploads_only(s3, s3_port, impatient, monkeypatch, caplog):
    monkeypatch.setattr(store_run, "_PAUSE_SECONDS", 0.05)
    with open_folder() as run:
        s3.fault = lambda request: 500 if request.method == "PUT" else None
        write(run.folder, "state.json", "1")
        deadline = time.monotonic() + 60
        while not caplog.records:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        s3.fault = None
        wait_for(s3_port, "state.json", b"1")
        run.stop()


def test_store_that_stays_broken_is_an_error_that_names_the_object_and_the_copy(
    s3, s3_port, impatient, temporary
):
    def work() -> None:
        with open_folder() as run:
            write(run.folder, "weights", "of hours")
            s3.fault = lambda request: 500 if request.key.endswith("weights") else None
            run.finish(None)

    with pytest.raises(StoreError) as caught:
        work()
    assert caught.value.path == f"{RUN}/weights"
    (kept,) = temporary.glob("penstock-run-*/a/weights")
    assert str(kept.parent) in caught.value.advice
    assert not any(secret.decode() in str(caught.value) for secret in SECRETS)


def test_read_only_store_and_missing_bucket_are_refused_before_any_work(s3, temporary):
    for out in (f"http://127.0.0.1:{s3.port}/animals/run", "s3://animals", "s3://no-such-bucket/run"):
        with pytest.raises((PathError, StoreError)) as caught:
            train(table(), out, target="tall")
        assert str(caught.value.path).startswith(out)
        assert list_left(temporary) == []


def test_failed_call_leaves_nothing_in_the_store(s3, s3_port, temporary):
    with pytest.raises(NoSuchPathError):
        train("s3://animals/none", RUN)
    with pytest.raises(ps.errors.OptionError):
        train(table(), RUN, target="tall", ensemble=2, callbacks=[object()])
    assert list_keys(s3_port, "animals") == []
    assert list_left(temporary) == []


_PROGRAM = """
import time
import penstock as ps
from penstock.training.run_writer import Checkpoints
save = Checkpoints.save
def save_slowly(self, moment):
    save(self, moment)
    time.sleep(0.5)
Checkpoints.save = save_slowly
model = ps.options.ModelOptions(preset="small", units=(8,))
ps.train("s3://animals/data", out="s3://animals/runs/a", model_options=model, epochs=12, batch_size=16,
         seed=3, patience=None, checkpoint_steps=2, verbose=0)
"""


@pytest.mark.long
def test_killed_process_is_resumed_elsewhere_from_the_store(s3, s3_port, tmp_path, monkeypatch):
    ps.convert(table(), "s3://animals/data", target="tall")
    environment = {**set_environment(s3.url, dict(os.environ)), "TMPDIR": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", _PROGRAM], env=environment)
    try:
        deadline = time.monotonic() + 300
        while get_object(s3_port, "animals", "runs/a/state.json") is None:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        with pytest.raises(BusyError):
            train(None, RUN, resume=True)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    with pytest.raises(BusyError):
        train("s3://animals/data", RUN)
    # As if it had run on another host.
    claim = (get_object(s3_port, "animals", "runs/a/owner.json") or b"").replace(
        os.uname().nodename.encode(), b"elsewhere"
    )
    put_object(s3_port, "animals", "runs/a/owner.json", claim)
    monkeypatch.setattr(store_claim, "WAIT_SECONDS", 1.0)
    resumed = train(None, RUN, resume=True, epochs=12)
    near = train("s3://animals/data", tmp_path / "run", epochs=12)
    assert read_weights(resumed) == read_weights(near)
