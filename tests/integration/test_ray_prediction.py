"""Prediction on a Ray cluster: the rows of one process, in their order, also after the driver was killed."""

import json
import os
import signal
import subprocess
import sys
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from exported_runs import SMALL, build, make_rows, make_run, write_run
from penstock.jobs.evaluate.evaluate import evaluate
from penstock.jobs.export.export import export_model
from penstock.jobs.predict.predict import predict
from penstock.storage.object_store import fetch, list_objects, put_file
from penstock.storage.store_path import StorePath
from store_server import empty_bucket, set_environment

KILLED = """
import json, os, signal, sys
from penstock.distributed import ray_model
from penstock.jobs.predict.predict import run_prediction
from penstock.settings.prediction import PredictOptions
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


def upload(folder, target):
    """Copy the files of a folder to a store."""
    for path in folder.rglob("*"):
        if path.is_file():
            put_file(target / path.relative_to(folder).as_posix(), path)


@pytest.fixture
def bucket(s3_port, monkeypatch):
    """An empty bucket, which this process reaches as the workers do."""
    empty_bucket(s3_port, "animals")
    for name, value in set_environment(f"http://127.0.0.1:{s3_port}", {}).items():
        monkeypatch.setenv(name, value)
    return StorePath("s3", "animals", "new")


def test_command_predicts_with_export_data_and_output_in_a_store(ray_nodes, bucket, tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    numbers = np.random.default_rng(2).normal(size=(1000, 2))
    table = {"x": numbers[:, 0], "y": numbers[:, 1], "price": numbers @ [2.0, -1.0]}
    data = ps.convert(table, tmp_path / "set", target="price")
    pipeline = ps.Pipeline.fit(data)
    settings = {"data": str(tmp_path / "set"), "model": SMALL.to_json()}
    write_run(tmp_path / "run", build(pipeline), pipeline, settings)
    export_model(tmp_path / "run", tmp_path / "export", format="onnx")
    pq.write_table(pa.table({name: table[name] for name in ("x", "y")}), tmp_path / "new.parquet")
    upload(tmp_path / "export", bucket / "export")
    put_file(bucket / "rows/new.parquet", tmp_path / "new.parquet")
    out = bucket / "out/prices.parquet"
    command = "import sys; from penstock.cli.main import main; sys.exit(main())"
    arguments = ["predict", str(bucket / "export"), str(bucket / "rows/*.parquet"), "--out", str(out)]
    choices = ["--engine", "ray", "--address", ray_nodes.address, "--batch-size", "8", "--resume"]
    done = subprocess.run(
        [sys.executable, "-c", command, *arguments, *choices],
        env=ray_nodes.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = pq.read_table(BytesIO(fetch(out).data))
    expected = predict(tmp_path / "export", tmp_path / "new.parquet", batch_size=8).table
    assert found["row"].to_pylist() == list(range(1000))
    assert found["price"].to_pylist() == pytest.approx(expected["price"].to_pylist(), rel=1e-5, abs=1e-6)
    assert len(set(expected["price"].to_pylist())) > 800  # so that another order would be found
    assert [each.path for each in list_objects(out.parent)] == [out]  # and no saved predictions


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
def test_killed_prediction_to_a_store_is_resumed_from_the_store(ray_nodes, data, bucket):
    folder, out = bucket.with_name("run"), bucket / "out.parquet"
    upload(data / "run", folder)
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
def test_scores_on_a_cluster_equal_scores_of_one_process(ray_nodes, data):
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
