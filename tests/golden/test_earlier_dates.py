"""Data and a pipeline of an earlier version, in which dates are whole numbers, and the bytes of dates."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from fake_runs import FakeRun
from penstock.format.manifest import load_manifest
from penstock.jobs.given_dataset import open_as_trained
from penstock.jobs.predict.predict import predict

FOLDER = Path(__file__).parent / "earlier_dates"
SHARD = "train-00000-of-00001.tfrecord"


@pytest.fixture(scope="module")
def pipeline():
    return ps.Pipeline.from_json(json.loads((FOLDER / "pipeline.json").read_text()))


def convert(folder):
    return ps.convert(FOLDER / "pets.csv", folder, target="adopted", split="train=1.0", shuffle=False)


def expect():
    found = json.loads((FOLDER / "expected.json").read_text())
    return {name: np.array(values, np.float32) for name, values in found.items()}


def check(inputs):
    for name, values in expect().items():
        np.testing.assert_array_equal(inputs[name], values)


def test_data_with_dates_as_integers_opens_with_integers(pipeline):
    pets = ps.open(FOLDER / "data")
    assert {name: pets.schema[name].type_name for name in ("born", "seen")} == {
        "born": "number",
        "seen": "number",
    }
    assert pets["train"][0]["born"] == 19_716
    check(next(iter(pets["train"].loader(pipeline, batch_size=16)))[0])


def test_integers_are_declared_as_dates_when_opened():
    fields = {"born": ps.fields.Date(optional=True), "seen": ps.fields.Date("microseconds")}
    first = ps.open(FOLDER / "data", fields=fields)["train"][0]
    assert first["born"] == np.datetime64("2023-12-25")
    assert first["seen"] == np.datetime64("2023-12-25T22:30")


def test_records_have_the_bytes_of_earlier_versions(tmp_path):
    pets = convert(tmp_path / "out")
    assert pets.schema["born"] == ps.fields.Date(optional=True)
    assert pets.schema["seen"] == ps.fields.Date("microseconds")
    assert (tmp_path / "out" / SHARD).read_bytes() == (FOLDER / "data" / SHARD).read_bytes()


def test_pipeline_with_integers_reads_raw_data_and_new_data_alike(pipeline, tmp_path):
    data = tmp_path / "earlier"
    shutil.copytree(FOLDER / "data", data)
    manifest = load_manifest(data)
    run = FakeRun(pipeline, data, schema=manifest.schema.to_json(), plan=manifest.plan)
    predict(run, FOLDER / "pets.csv")
    check(run.asked[0])
    new = convert(tmp_path / "new")
    check(next(iter(new["train"].loader(pipeline, batch_size=16)))[0])  # dates are the numbers of records
    opened = open_as_trained(tmp_path / "new", pipeline.schema)
    assert opened.schema["born"].type_name == "number"
