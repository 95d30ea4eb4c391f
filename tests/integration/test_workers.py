"""Training by several workers or devices: the numbers of one process, files written once, and killed workers.

Each run is a separate process with the JAX backend: the process of the tests has another one.
"""

from __future__ import annotations

import signal

import numpy as np
import pytest

import penstock as ps
from worker_runs import NUM_RECORDS, run_program, write_ponds

pytest.importorskip("keras")
pytest.importorskip("jax")

# Ray lowers the priority of its workers by default, which makes them slow beside other tests.
ON_RAY = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0123456789abcdef" * 4, "RAY_worker_niceness": "0"}
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def ponds(tmp_path_factory):
    return write_ponds(tmp_path_factory.mktemp("data") / "ponds")


@pytest.fixture(scope="module")
def one(ponds, tmp_path_factory):
    """The run of one process."""
    folder = tmp_path_factory.mktemp("one") / "run"
    return {**run_program(data=ponds, out=folder), "folder": folder}


def assert_same_curve(found, expected):
    """Compare metrics to 1e-5; sums over several devices are made in another order."""
    assert "error" not in found, found
    assert [sorted(row) for row in found["history"]] == [sorted(row) for row in expected["history"]]
    for row, other in zip(found["history"], expected["history"], strict=True):
        np.testing.assert_allclose(list(row.values()), [other[name] for name in row], atol=1e-5)
    np.testing.assert_allclose(found["weights"], expected["weights"], atol=1e-4)


def assert_quick_restart(found):
    """Check that one restart took less than a minute; the note with its parts is printed for a person."""
    assert len(found["notes"]) == 2, found["notes"]
    print(*found["notes"], f"noticed after {found['notice_seconds']:.1f} s", sep="\n")
    assert found["restart_seconds"] < 60, found["notes"]


def test_two_workers_have_the_loss_curve_of_one_process(ponds, one, tmp_path):
    assert len(ps.open(ponds)["train"]) % 2 == 1  # the last batch of an epoch cannot be shared
    found = run_program(data=ponds, out=tmp_path / "run", num_workers=2)
    assert_same_curve(found, one)
    assert found["children"] == []
    assert found["steps"] == one["steps"]
    assert not found["has_tensorflow"]  # importing it takes seconds
    assert not one["has_tensorflow"]
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names - {"logs"} == {path.name for path in one["folder"].iterdir()} - {"logs"}


def test_two_devices_of_one_process_have_the_loss_curve_of_one_device(ponds, one, tmp_path):
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    found = run_program(data=ponds, out=tmp_path / "run", num_devices=2, variables=flags)
    assert_same_curve(found, one)


def test_two_workers_on_ray_have_the_loss_curve_of_one_process(ponds, one, tmp_path):
    pytest.importorskip("ray")
    found = run_program(data=ponds, out=tmp_path / "run", num_workers=2, engine="ray", variables=ON_RAY)
    assert_same_curve(found, one)


def test_cluster_that_does_not_run_is_refused(ponds, tmp_path):
    pytest.importorskip("ray")
    choices = {"num_workers": 2, "engine": "ray", "address": "127.0.0.1:1"}
    found = run_program(data=ponds, out=tmp_path / "run", **choices, variables=ON_RAY)
    assert found["error"]["name"] == "OptionError"
    assert found["error"]["field"] == "address"
    assert "RAY_AUTH_MODE" in found["error"]["advice"]


def test_more_devices_than_there_are_is_an_error_of_the_worker(ponds, tmp_path):
    found = run_program(data=ponds, out=tmp_path / "run", num_devices=64)
    assert found["error"]["name"] == "OptionError"
    assert found["error"]["field"] == "num_devices"
    assert found["children"] == []


@pytest.mark.long
@pytest.mark.parametrize(("rank", "num_processes"), [(0, None), (1, 4)])
def test_killed_worker_restarts_the_group_which_ends_with_the_same_curve(
    ponds, one, tmp_path, rank, num_processes
):
    """Once with new processes, and once with spare ones that were started before."""
    choices = {"num_workers": 2, "kill": rank, "kill_epoch": 0, "num_processes": num_processes}
    found = run_program(data=ponds, out=tmp_path / "run", **choices)
    assert_same_curve(found, one)
    assert_quick_restart(found)
    assert f"Worker {rank} " in found["notes"][0]
    assert found["children"] == []
    # No epoch is reported twice: the checkpoint after it was written before its report was read.
    assert found["steps"] == one["steps"]


@pytest.mark.long
def test_killed_worker_on_ray_restarts_the_group(ponds, one, tmp_path):
    pytest.importorskip("ray")
    choices = {"num_workers": 2, "engine": "ray", "kill": 1}
    found = run_program(data=ponds, out=tmp_path / "run", **choices, variables=ON_RAY)
    assert_same_curve(found, one)
    assert_quick_restart(found)


@pytest.mark.long
def test_run_whose_first_process_was_killed_is_resumed_by_one_process(ponds, one, tmp_path):
    """The workers end by themselves; the position in the data does not depend on their number."""
    killed = run_program(data=ponds, out=tmp_path / "run", num_workers=2, kill="self", kill_epoch=0)
    assert killed["status"] == -signal.SIGKILL
    found = run_program(data=ponds, out=tmp_path / "run", resume=True)
    assert_same_curve(found, one)
    assert found["steps"] == one["steps"][1:]


@pytest.mark.long
def test_loss_that_is_not_finite_is_one_error_that_names_the_records_of_all_workers(ponds, tmp_path):
    found = run_program(data=ponds, out=tmp_path / "run", num_workers=2, learning_rate=1e30)
    assert found["error"]["name"] == "NonFiniteError"
    assert len(found["error"]["records"]) == 16
    assert found["children"] == []


@pytest.mark.long
def test_interrupt_ends_all_workers_and_spare_processes(ponds, tmp_path):
    choices = {"num_workers": 2, "kill": "self", "signal": int(signal.SIGINT), "num_processes": 4}
    found = run_program(data=ponds, out=tmp_path / "run", **choices)
    assert found["is_interrupted"]
    assert found["children"] == []


@pytest.mark.long
def test_stopped_worker_is_noticed_and_ended(ponds, one, tmp_path):
    found = run_program(data=ponds, out=tmp_path / "run", num_workers=2, kill=1, signal=int(signal.SIGSTOP))
    assert_same_curve(found, one)
    # It ends by itself when it is noticed that it misses heartbeats, so that either may be named.
    assert len(found["notes"]) == 2, found["notes"]
    assert found["notes"][0].startswith("Worker ")
    assert found["restart_seconds"] > found["notice_seconds"] > 0
    assert found["children"] == []


@pytest.mark.long
@pytest.mark.usefixtures("s3")
def test_two_workers_train_from_an_object_store(tmp_path):
    """Workers have the credentials of the environment that they inherit."""
    data = "s3://animals/ponds"
    write_ponds(data)
    expected = run_program(data=data, out=tmp_path / "one")
    found = run_program(data=data, out=tmp_path / "two", num_workers=2)
    assert_same_curve(found, expected)
    assert found["notes"] == expected["notes"]


@pytest.mark.long
def test_built_model_with_lists_of_varying_length_has_the_same_curve(ponds, tmp_path):
    """Each worker pads its part to the longest list of the whole batch."""
    choices = {"data": ponds, "is_small": False, "epochs": 2}
    expected = run_program(**choices, out=tmp_path / "one")
    assert_same_curve(run_program(**choices, out=tmp_path / "two", num_workers=2), expected)
    assert NUM_RECORDS % 16
