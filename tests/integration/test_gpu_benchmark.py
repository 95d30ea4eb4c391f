"""The script for machines with a GPU: it works on a CPU, finds wrong batches, and needs a GPU by default."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def load(name: str):
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "gpu.py"), *arguments]
    variables = {**os.environ, "JAX_PLATFORMS": "cpu"}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=variables)


def test_batches_on_a_device_equal_batches_of_the_loader():
    pytest.importorskip("jax")
    done = run("--device=cpu", "--only=to_jax", "--records=160", "--batch-size=16", "--seconds=0.2")
    assert done.returncode == 0, done.stdout + done.stderr
    title, _, figures = done.stdout.partition(": ok, ")
    assert title == "to_jax"
    got = json.loads(figures)
    assert got["batches compared"] == 8  # of the 128 records of the train split
    assert got["records/s from the loader"] > 0


def test_machine_without_a_gpu_is_refused():
    pytest.importorskip("jax")
    done = run()
    assert (done.returncode, done.stdout) == (2, "")
    assert "neither JAX nor torch finds a GPU" in done.stderr


@pytest.mark.parametrize(
    ("got", "fault"),
    [
        ({"a": np.array([1, 3])}, "a"),
        ({"b": np.array([1, 2])}, "arrays"),
        ({"a": np.array([1.0, 2.0])}, "int64"),
    ],
)
def test_batch_that_differs_is_found(got, fault):
    gpu = load("gpu")
    gpu._compare({"a": np.array([1, 2])}, {"a": np.array([1, 2])})
    with pytest.raises((RuntimeError, AssertionError), match=fault):
        gpu._compare(got, {"a": np.array([1, 2])})


def test_ratio_of_installs_divides_the_second_by_the_first():
    table = load("installs").compare("a", "b", 3, lambda python: {"call": {"a": 2.0, "b": 3.0}[python]})
    assert table.splitlines()[1].split() == ["call", "2.000", "3.000", "1.500", "(1.500", "-", "1.500)"]
