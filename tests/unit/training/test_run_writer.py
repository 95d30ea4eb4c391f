"""States of a run: two are kept, the newest sound one is taken, and states of other runs are refused."""

import hashlib
import json
import logging
import shutil

import numpy as np
import pytest

from penstock.errors import StateError, WriteError
from penstock.training.run_state import read_result
from penstock.training.run_writer import Checkpoint, Checkpoints
from penstock.training.snapshot import Snapshot
from raising import mentions, raises_with

IDENTITY = {"pipeline": "abc", "seed": 3, "class_weights": {"sold": {"yes": 2.0}}}


def make(step, value=0.5):
    """Return a run at a step."""
    arrays = {"model/0": np.full((2, 1), value, np.float32), "optimizer/0": np.array(step, np.int64)}
    callbacks = [{"kind": "BestEpoch", "values": {"best": {"float": "inf"}}, "arrays": {}}]
    memory = {"epoch": step // 4, "loader": {"step": step % 4}, "history": [{"loss": 0.1}], "seconds": 1.5}
    return Checkpoint(step, Snapshot(arrays, {"model/0": "dense/kernel"}, callbacks), memory)


def read_state(folder):
    return json.loads((folder / "state.json").read_bytes())


def list_files(folder):
    return sorted(path.name for path in (folder / "checkpoints").iterdir())


@pytest.fixture
def states(tmp_path):
    """A run with states at steps 2 and 4."""
    checkpoints = Checkpoints(tmp_path, IDENTITY)
    for step in (2, 4):
        checkpoints.save(make(step, value=step))
    return tmp_path


def test_state_is_read_as_it_was_written(tmp_path):
    moment = make(3)
    Checkpoints(tmp_path, IDENTITY).save(moment)
    found = Checkpoints(tmp_path, IDENTITY).load()
    assert (found.step, found.memory) == (moment.step, moment.memory)
    assert found.snapshot.paths == moment.snapshot.paths
    assert found.snapshot.callbacks == moment.snapshot.callbacks
    assert list(found.snapshot.arrays) == list(moment.snapshot.arrays)
    for name, array in moment.snapshot.arrays.items():
        np.testing.assert_array_equal(found.snapshot.arrays[name], array, strict=True)


def test_run_without_a_state_has_none(tmp_path):
    checkpoints = Checkpoints(tmp_path, IDENTITY)
    assert checkpoints.load() is None
    checkpoints.finish("finished", "0a")
    assert list(tmp_path.iterdir()) == []
    assert read_result(tmp_path) == (None, None)


def test_state_file_has_the_position_of_the_run(states):
    state = read_state(states)
    assert [each.pop("sha256") for each in state["checkpoints"]] != ["", ""]
    assert state == {
        "format": 1,
        "status": "running",
        "identity": IDENTITY,
        "step": 4,
        "epoch": 1,
        "loader": {"step": 0},
        "checkpoints": [
            {"file": "step-0000000004.safetensors", "step": 4},
            {"file": "step-0000000002.safetensors", "step": 2},
        ],
    }


def test_two_states_are_kept_and_older_ones_removed(states):
    (states / "checkpoints" / "step-0000000001.safetensors").write_bytes(b"of a killed run")
    (states / "checkpoints" / "notes.txt").write_bytes(b"mine")
    checkpoints = Checkpoints(states, IDENTITY)
    assert checkpoints.load().step == 4
    checkpoints.save(make(6))
    assert list_files(states) == ["notes.txt", "step-0000000004.safetensors", "step-0000000006.safetensors"]
    assert [each["step"] for each in read_state(states)["checkpoints"]] == [6, 4]


def test_state_of_the_same_step_replaces_the_previous_one(states):
    checkpoints = Checkpoints(states, IDENTITY)
    checkpoints.load()
    checkpoints.save(make(4, value=9))
    assert [each["step"] for each in read_state(states)["checkpoints"]] == [4, 2]
    assert checkpoints.load().snapshot.arrays["model/0"].ravel().tolist() == [9.0, 9.0]


def test_damaged_state_gives_way_to_the_one_before_with_a_warning(states, caplog):
    newest = states / "checkpoints" / "step-0000000004.safetensors"
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 4
    newest.write_bytes(data)
    checkpoints = Checkpoints(states, IDENTITY)
    with caplog.at_level(logging.WARNING, "penstock"):
        assert checkpoints.load().snapshot.arrays["model/0"].ravel().tolist() == [2.0, 2.0]
    assert mentions(caplog.text, "step-0000000004.safetensors SHA-256")
    checkpoints.save(make(3))
    assert [each["step"] for each in read_state(states)["checkpoints"]] == [3, 2]  # the damaged one is gone
    assert list_files(states) == ["step-0000000002.safetensors", "step-0000000003.safetensors"]


def test_lost_state_gives_way_to_the_one_before(states, caplog):
    (states / "checkpoints" / "step-0000000004.safetensors").unlink()
    assert Checkpoints(states, IDENTITY).load().step == 2
    assert mentions(caplog.text, "step-0000000004.safetensors")


def test_run_whose_states_are_all_damaged_is_refused(states):
    for path in (states / "checkpoints").iterdir():
        path.write_bytes(b"")
    with raises_with(StateError, f"{states} 2") as caught:
        Checkpoints(states, IDENTITY).load()
    assert "SHA-256" in str(caught.value.__cause__)


def test_state_that_lacks_its_texts_is_refused(states):
    state = read_state(states)
    state["checkpoints"] = state["checkpoints"][:1]
    path = states / "checkpoints" / state["checkpoints"][0]["file"]
    data = path.read_bytes().replace(b'"memory"', b'"memorx"')
    path.write_bytes(data)
    state["checkpoints"][0]["sha256"] = hashlib.sha256(data).hexdigest()
    (states / "state.json").write_text(json.dumps(state))
    with pytest.raises(StateError) as caught:
        Checkpoints(states, IDENTITY).load()
    assert mentions(caught.value.__cause__, "checkpoint state 'memory'")


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("pipeline", "abd", "pipeline abc abd"),
        ("seed", 4, "seed 3 4"),
        ("epochs", 2, "epochs 2"),
        ("class_weights", "auto", "class_weights 'sold' 'yes' 2.0 auto"),
    ],
)
def test_state_of_another_run_is_refused(states, name, value, shown):
    with raises_with(StateError, f"{states / 'state.json'} {shown}"):
        Checkpoints(states, {**IDENTITY, name: value}).load()


def test_choice_that_only_the_run_has_is_a_difference(states):
    less = {name: value for name, value in IDENTITY.items() if name != "seed"}
    with raises_with(StateError, "seed", expected=3):
        Checkpoints(states, less).load()


def test_run_that_failed_resumes_from_its_last_state(states):
    checkpoints = Checkpoints(states, IDENTITY)
    checkpoints.finish("failed", "0a")
    assert (checkpoints.status, read_result(states)) == ("failed", ("failed", "0a"))
    again = Checkpoints(states, IDENTITY)
    assert again.load().step == 4
    assert again.status == "running"
    assert len(list_files(states)) == 2


def test_run_that_has_ended_needs_no_state(states):
    Checkpoints(states, IDENTITY).finish("finished", "0a")
    shutil.rmtree(states / "checkpoints")
    again = Checkpoints(states, IDENTITY)
    assert again.load() is None
    assert (again.status, read_result(states)) == ("finished", ("finished", "0a"))
    with raises_with(StateError, expected=3, got=4):
        Checkpoints(states, {**IDENTITY, "seed": 4}).load()


def test_state_written_after_the_end_names_no_weights(states):
    checkpoints = Checkpoints(states, IDENTITY)
    checkpoints.finish("failed", "0a")
    checkpoints.load()
    checkpoints.save(make(6))
    assert read_result(states) == ("failed", None)  # of the one who says so


FILE = {"file": "step-1.safetensors", "sha256": "0", "step": 1}


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"format": "1"},
        {"status": None},
        {"identity": []},
        {"checkpoints": {}},
        {"checkpoints": ["step-1.safetensors"]},
        {"checkpoints": [{**FILE, "file": "../step-1.safetensors"}]},
        {"checkpoints": [{**FILE, "file": "/etc/step-1.safetensors"}]},
        {"checkpoints": [{**FILE, "file": "a/step-1.safetensors"}]},
        {"checkpoints": [{**FILE, "file": ".."}]},
        {"checkpoints": [{**FILE, "file": ""}]},
        {"checkpoints": [{**FILE, "file": "step-1.pickle"}]},
        {"checkpoints": [{**FILE, "file": 1}]},
        {"checkpoints": [{**FILE, "sha256": None}]},
        {"checkpoints": [{**FILE, "step": "1"}]},
    ],
)
def test_state_file_of_another_form_is_refused(states, change):
    (states / "state.json").write_text(json.dumps({**read_state(states), **change}))
    with pytest.raises(StateError) as caught:
        Checkpoints(states, IDENTITY).load()
    path = states / "state.json"
    assert mentions(caught.value, f"{path} state")


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000])
def test_state_file_that_is_no_json_is_refused(states, data):
    (states / "state.json").write_bytes(data)
    with raises_with(StateError, "state", expected="JSON"):
        Checkpoints(states, IDENTITY).load()


@pytest.mark.parametrize("data", [b"[]", b"null", b"{}", b"3"])
def test_state_file_that_is_another_json_is_refused(states, data):
    (states / "state.json").write_bytes(data)
    with raises_with(StateError, "state", path=str(states / "state.json")):
        Checkpoints(states, IDENTITY).load()


def test_state_that_cannot_be_written_leaves_those_before(states):
    checkpoints = Checkpoints(states, IDENTITY)
    checkpoints.load()
    before = read_state(states)
    (states / "checkpoints" / "step-0000000006.safetensors").mkdir()
    with raises_with(WriteError, "step-0000000006.safetensors"):
        checkpoints.save(make(6))
    assert read_state(states) == before
    assert checkpoints.load().step == 4
