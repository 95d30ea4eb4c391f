"""Prediction on a Ray cluster: the rows of one process, in their order, also after the driver was killed."""

import json
import os
import signal
import subprocess
import sys
from io import BytesIO

import pyarrow.parquet as pq
import pytest

from exported_runs import make_rows, make_run
from penstock.jobs.predict.evaluate import evaluate
from penstock.jobs.predict.predict import predict
from penstock.storage.object_store import fetch, list_objects, put_file
from penstock.storage.store_path import StorePath
from store_server import empty_bucket, set_environment

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


EVALUATED = """
import json, sys
import penstock as ps
request = json.loads(sys.argv[1])
found = ps.evaluate(request["run"], request["data"], engine="ray", address=request["address"], bootstrap=20)
print(json.dumps(found.to_json()))
"""


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


def start(nodes, folder, program=KILLED, **request):
    request = {
        "address": nodes.address,
        "run": str(folder / "run"),
        "data": str(folder / "new.jsonl"),
        **request,
    }
    return subprocess.run(
        [sys.executable, "-c", program, json.dumps(request)],
        env={**nodes.environment, "KERAS_BACKEND": os.environ.get("KERAS_BACKEND", "tensorflow")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long  # TensorFlow is loaded three times
def test_killed_prediction_is_resumed_with_the_rows_of_one_process(ray_nodes, data, tmp_path):
    out = tmp_path / "out.parquet"
    killed = start(ray_nodes, data, out=str(out), most=60, resume=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    assert not out.exists()
    done = start(ray_nodes, data, out=str(out), most=1000, resume=True)
    assert done.returncode == 0, done.stderr[-3000:]
    was_predicted = json.loads(done.stdout.splitlines()[-1])
    assert len(was_predicted) == 13  # groups of two batches of eight rows
    assert was_predicted[:4] == [False] * 4
    assert all(was_predicted[-4:])
    check_table(pq.read_table(out), pq.read_table(data / "local.parquet"))
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".tmp")] == ["out.parquet"]


def check_table(found, expected):
    assert found.schema == expected.schema
    assert found["name"].to_pylist() == expected["name"].to_pylist()
    for name in ("adopted", "breed"):
        assert found[name].to_pylist() == expected[name].to_pylist()
    assert found["price"].to_pylist() == pytest.approx(expected["price"].to_pylist(), rel=1e-5)


@pytest.mark.long  # TensorFlow is loaded three times
def test_killed_prediction_to_a_store_is_resumed_from_the_store(ray_nodes, data, s3_port, monkeypatch):
    empty_bucket(s3_port, "animals")
    for name, value in set_environment(f"http://127.0.0.1:{s3_port}", {}).items():
        monkeypatch.setenv(name, value)
    folder, out = StorePath("s3", "animals", "run"), StorePath("s3", "animals", "new/out.parquet")
    for path in (data / "run").rglob("*"):
        if path.is_file():
            put_file(folder / path.relative_to(data / "run").as_posix(), path)
    put_file(folder.with_name("rows") / "new.jsonl", data / "new.jsonl")
    request = {"run": str(folder), "data": "s3://animals/rows/*.jsonl", "out": str(out)}
    killed = start(ray_nodes, data, **request, most=60, resume=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    assert {each.path.parent.name for each in list_objects(out.parent)} == {".out.parquet.partial"}
    done = start(ray_nodes, data, **request, most=1000, resume=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1])[:4] == [False] * 4
    assert [each.path for each in list_objects(out.parent)] == [out]
    check_table(pq.read_table(BytesIO(fetch(out).data)), pq.read_table(data / "local.parquet"))


@pytest.mark.long  # TensorFlow is loaded twice
def test_scores_on_a_cluster_are_those_of_one_process(ray_nodes, data):
    for given in (data / "new.jsonl", data / "set"):
        done = start(ray_nodes, data, EVALUATED, data=str(given))
        assert done.returncode == 0, done.stderr[-3000:]
        found = json.loads(done.stdout.splitlines()[-1])
        expected = evaluate(data / "run", given, bootstrap=20).to_json()
        assert json.loads(json.dumps(expected)) == approximate(found)


def approximate(value):
    """Return a value with all numbers in it approximate: other machines may add in another order."""
    if isinstance(value, dict):
        return {name: approximate(each) for name, each in value.items()}
    if isinstance(value, list):
        return [approximate(each) for each in value]
    return pytest.approx(value, rel=1e-5, abs=1e-6) if isinstance(value, float) else value
