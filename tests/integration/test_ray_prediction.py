"""Prediction on a Ray cluster: the rows of one process, in their order, also after the driver was killed."""

import json
import os
import signal
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from exported_runs import make_rows, make_run
from penstock.jobs.predict.predict import predict
from ray_nodes import RayNodes

KILLED = """
import json, os, signal, sys
from penstock.jobs.predict import ray_model
from penstock.jobs.predict.predict import run_prediction
from penstock.jobs.predict.options import PredictOptions
request = json.loads(sys.argv[1])
ray_model._GROUP_BATCHES = 2
def on_progress(progress):
    if progress.num_rows > request["most"]:
        os.kill(os.getpid(), signal.SIGKILL)
found = []
begin = ray_model.RayModel._begin
def count(self, batches):
    begin(self, batches)
    found.append(self._pending[-1].reference is not None)
ray_model.RayModel._begin = count
options = PredictOptions(engine="ray", address=request["address"], batch_size=8, resume=request["resume"])
run_prediction(request["run"], request["data"], request["out"], options, on_progress)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def nodes():
    found = RayNodes(1)
    yield found
    found.close()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A run, and 200 rows in a file."""
    folder = tmp_path_factory.mktemp("run")
    run = make_run(folder)
    rows = [
        {**row, "name": f"{row['name']} {i}", "weight": row["weight"] + i}
        for i in range(5)
        for row in make_rows()
    ]
    (folder / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    predict(run, folder / "new.jsonl", folder / "local.parquet", batch_size=8)
    return folder


def start(nodes, data, out, *, most, resume):
    request = {
        "address": nodes.address,
        "run": str(data / "run"),
        "data": str(data / "new.jsonl"),
        "out": str(out),
        "most": most,
        "resume": resume,
    }
    return subprocess.run(
        [sys.executable, "-c", KILLED, json.dumps(request)],
        env={**nodes.environment, "KERAS_BACKEND": os.environ.get("KERAS_BACKEND", "tensorflow")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long  # TensorFlow is loaded three times
def test_killed_prediction_is_resumed_with_the_rows_of_one_process(nodes, data, tmp_path):
    out = tmp_path / "out.parquet"
    killed = start(nodes, data, out, most=60, resume=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    assert not out.exists()
    done = start(nodes, data, out, most=1000, resume=True)
    assert done.returncode == 0, done.stderr[-3000:]
    was_predicted = json.loads(done.stdout.splitlines()[-1])
    assert len(was_predicted) == 13  # groups of two batches of eight rows
    assert was_predicted[:4] == [False] * 4
    assert all(was_predicted[-4:])
    found, expected = pq.read_table(out), pq.read_table(data / "local.parquet")
    assert found.schema == expected.schema
    assert found["name"].to_pylist() == expected["name"].to_pylist()
    for name in ("adopted", "breed"):
        assert found[name].to_pylist() == expected[name].to_pylist()
    assert found["price"].to_pylist() == pytest.approx(expected["price"].to_pylist(), rel=1e-5)
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".tmp")] == ["out.parquet"]
