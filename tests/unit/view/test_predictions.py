"""Predictions by another process: what it writes is read again, and its faults have reasons."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest

from penstock.errors import OptionError, StateError
from penstock.model.task import Task
from penstock.model.usable_records import Labelled
from penstock.score.split_predictions import SplitPredictions
from penstock.view import predictions as module
from penstock.view.opened_data import open_data
from penstock.view.prediction_worker import describe_error, write_outcome
from penstock.view.predictions import Outcome, RunPredictions, load_outcome
from penstock.view.scan_jobs import Progress
from run_tables import write_tables
from viewed_data import write_gallery

TASKS = {
    "adopted": Task("adopted", "binary", ("no", b"yes")),
    "breed": Task("breed", "multiclass", ("a", "b", "c")),
    "tags": Task("tags", "multilabel", (10, 20)),
    "price": Task("price", "regression"),
}


@pytest.fixture
def outcome(tmp_path):
    truths = {
        "adopted": np.array([0, 1, 1]),
        "breed": np.array([0, 1, 2]),
        "tags": np.array([[1, 0], [1, 1], [0, 0]]),
        "price": np.array([1.0, 2.0, 3.0]),
    }
    predicted = {
        "adopted": np.array([0.25, 0.875, 0.25], np.float32),
        "breed": np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.5, 0.25, 0.25]], np.float32),
        "tags": np.array([[0.9, 0.1], [0.9, 0.9], [0.1, 0.1]], np.float32),
        "price": np.array([1.5, 2.0, 5.0], np.float32),
    }
    judged = SplitPredictions(np.array([4, 7, 9]), truths, predicted, {}, Labelled(None, 3))
    write_outcome(tmp_path, TASKS, judged)
    return load_outcome(tmp_path)


def test_written_predictions_are_read_again(outcome):
    assert outcome.rows.tolist() == [4, 7, 9]
    found = outcome.describe(9)
    assert (found["adopted"]["truth"], found["adopted"]["prediction"]) == ("yes", "no")
    assert (found["adopted"]["probability"], found["adopted"]["is_wrong"]) == (0.75, True)
    assert (found["breed"]["prediction"], found["breed"]["probability"]) == ("a", 0.5)
    assert (found["tags"]["truth"], found["tags"]["prediction"]) == ([], [])
    assert (found["price"]["prediction"], found["price"]["loss"]) == (5.0, 2.0)
    assert found["price"]["is_wrong"] is False
    assert outcome.describe(7)["tags"]["prediction"] == [10, 20]


def test_record_that_was_not_predicted_has_no_prediction(outcome):
    assert outcome.describe(5) == {}
    assert outcome.describe(100) == {}


def test_wrong_records_are_those_with_a_wrong_target(outcome):
    assert np.asarray(outcome.targets["adopted"].wrong).tolist() == [False, False, True]
    assert outcome.is_wrong.tolist() == [False, False, True]  # the price of the first differs, as numbers do
    assert (outcome.num_wrong, outcome.has_labels) == (1, True)


def test_numbers_alone_are_judged_by_whether_they_differ(outcome):
    prices = Outcome(outcome.rows, {"price": outcome.targets["price"]})
    assert prices.is_wrong.tolist() == [True, False, True]
    assert prices.has_labels is False
    assert prices.describe(9)["price"]["measure"] == "absolute error"


def test_predictions_are_judged_in_words(outcome):
    assert {name: each["verdict"] for name, each in outcome.describe(9).items()} == {
        "adopted": "wrong",
        "breed": "wrong",
        "tags": "correct",
        "price": "predicted",
    }
    assert outcome.describe(7)["adopted"]["verdict"] == "correct"
    assert outcome.describe(7)["adopted"]["measure"] == "log loss"


def test_baseline_is_the_most_frequent_class_or_the_mean(outcome):
    found = {name: each.describe_baseline() for name, each in outcome.targets.items()}
    assert found["adopted"] == "1 if always yes"
    assert found["breed"] == "2 if always a"
    assert found["tags"] == ""
    assert found["price"] == "mean absolute error 0.833, 0.667 if always the mean"
    assert outcome.describe_baseline() == ""  # several targets have none
    assert Outcome(outcome.rows, {"breed": outcome.targets["breed"]}).describe_baseline() == "2 if always a"


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    write_gallery(folder / "data")
    write_tables(folder, {"data": "data", "target": "breed"})
    return open_data([str(folder)])


def pretend(monkeypatch, tmp_path, script):
    """Let a shell script take the place of the process that predicts."""
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setattr(module.sys, "executable", os.fspath(path))


def test_process_reports_its_progress_and_its_end_deletes_its_files(monkeypatch, tmp_path, run):
    pretend(monkeypatch, tmp_path, 'echo noise; echo \'{"done": 3, "total": 4}\'; exec sleep 600')
    predictions = RunPredictions(run)
    assert predictions.usual_split == "test"
    assert predictions.starts_at_once("test")
    found = predictions.find("test", 0.0)
    while found != Progress(3, 4):
        found = predictions.find("test", 0.05)
    folder = predictions._folder
    assert folder.is_dir()
    predictions.close()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ('echo \'{"error": {"what": "the model is needed."}}\'; exit 1', "the model is needed"),
        ("echo 'Fatal: out of memory' >&2; exit 137", "Fatal: out of memory"),
        ("exit 3", "status 3"),
        ("exit 0", "outcome.json"),
    ],
)
def test_process_that_fails_gives_its_reason(monkeypatch, tmp_path, run, script, reason):
    pretend(monkeypatch, tmp_path, script)
    predictions = RunPredictions(run)
    with pytest.raises(StateError) as caught:
        predictions.find("test", 30)
    assert reason in caught.value.what
    assert not caught.value.what.endswith(".")
    assert caught.value.path == os.fspath(run.run)
    assert "penstock evaluate" in caught.value.advice
    predictions.close()


def test_error_of_the_process_keeps_its_parts(monkeypatch, tmp_path, run):
    raised = OptionError("model", path="run.yaml", expected="a model", got=None, advice="Pass it.")
    pretend(
        monkeypatch, tmp_path, f"cat <<'END'\n{json.dumps({'error': describe_error(raised)})}\nEND\nexit 1"
    )
    predictions = RunPredictions(run)
    with pytest.raises(StateError) as caught:
        predictions.find("test", 30)
    predictions.close()
    found = caught.value
    assert (found.path, found.expected, found.got, found.advice) == ("run.yaml", "a model", None, "Pass it.")
    assert str(found).count("run.yaml") == 1


def test_process_imports_no_module_from_the_current_folder(monkeypatch, tmp_path, run):
    current, first = tmp_path / "current", tmp_path / "first"
    current.mkdir()
    first.mkdir()
    canary = f"open({str(tmp_path / 'imported')!r}, 'w').close()\nraise ImportError('canary')\n"
    for name in ("json", "numpy", "keras", "penstock"):
        (current / f"{name}.py").write_text(canary)
    (first / "keras.py").write_text("raise ImportError('no Keras here')\n")  # ends the process early
    monkeypatch.setenv("PYTHONPATH", str(first), prepend=os.pathsep)
    monkeypatch.chdir(current)
    predictions = RunPredictions(run)
    with pytest.raises(StateError) as caught:
        predictions.find("test", 120)
    predictions.close()
    assert not (tmp_path / "imported").exists()
    assert "canary" not in caught.value.what


def test_large_split_is_predicted_only_on_request(monkeypatch, run):
    monkeypatch.setattr(module, "AT_ONCE", 10)
    predictions = RunPredictions(run)
    assert not predictions.starts_at_once("train")
    predictions.close()


def test_process_gets_the_function_of_the_users_own_model(monkeypatch, tmp_path, run):
    pretend(monkeypatch, tmp_path, f'printf "%s\\n" "$@" > {tmp_path / "arguments"}; exit 1')
    predictions = RunPredictions(replace(run, model="model.py:build"))
    with pytest.raises(StateError):
        predictions.find("test", 30)
    predictions.close()
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[4] == "test"
    assert arguments[6:] == ["model.py:build", *run.paths]
