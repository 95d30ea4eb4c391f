"""Scripts with their own training loop: what they learnt, and that each epoch counts by itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from example_scripts import EXAMPLES, run_example

NUM_EPOCHS = 5


def check_learnt(found: dict[str, Any]) -> None:
    """Look at accuracies: no single input is right in more than three of four records."""
    assert len(found["per_epoch"]) == NUM_EPOCHS
    assert found["accuracy"] >= 0.9
    # A metric that was never reset would show the mean of all epochs in the last.
    assert found["per_epoch"][-1] > sum(found["per_epoch"]) / NUM_EPOCHS + 0.02
    assert found["per_epoch"][-1] >= 0.9


def test_tensorflow_loop_learns_from_all_inputs_and_counts_each_epoch_from_zero(
    tmp_path, monkeypatch
) -> None:
    check_learnt(run_example("custom_loop_tensorflow", tmp_path, monkeypatch))


def test_torch_loop_learns_from_all_inputs_and_counts_each_epoch_from_zero(tmp_path, monkeypatch) -> None:
    pytest.importorskip("torch", reason="comes with the extra 'torch'")
    check_learnt(run_example("custom_loop_torch", tmp_path, monkeypatch))


def test_jax_loop_learns_from_all_inputs_and_counts_each_epoch_from_zero(tmp_path) -> None:
    # A process has one backend of Keras, and the backend of the other tests is TensorFlow.
    program = "import json, custom_loop_jax; print(json.dumps(custom_loop_jax.main()))"
    environment = {**os.environ, "PYTHONPATH": os.fspath(EXAMPLES), "KERAS_BACKEND": "jax"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    check_learnt(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_example_is_short_enough_to_be_read(script: Path) -> None:
    assert len(script.read_text().splitlines()) <= 120
