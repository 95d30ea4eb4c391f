"""Runs and exports of a version that predicted some batches of texts wrongly: warnings, new calibration."""

import hashlib
import json

import numpy as np
import pytest
import yaml

import penstock as ps
from penstock.model.task import Task
from penstock.training.batch_fault import (
    describe_batch_fault,
    find_batch_fault,
    find_export_fault,
    keep_revision,
)
from penstock.training.run_config import RunConfig
from penstock.training.run_facts import HELD_OUT, RunFacts
from penstock.transform.pipeline import without_fields

pytest.importorskip("keras")

read = RunConfig.from_json


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run on texts, and the temperature and threshold that it chose."""
    folder, rng = tmp_path_factory.mktemp("texts"), np.random.default_rng(3)
    sold = rng.integers(0, 2, 400)
    words = np.where(rng.random(400) < 0.7, sold, 1 - sold)
    notes = [
        f"{('good', 'bad')[word]} {filler}"
        for word, filler in zip(words, rng.integers(0, 9, 400), strict=True)
    ]
    rows = {"note": notes, "sold": sold, "age": rng.normal(0, 1, 400)}
    fields = {"note": ps.fields.Text()}
    data = ps.convert(rows, folder / "set", fields=fields, target="sold", split="train=0.5,validation=0.5")
    run = ps.train(data, out=folder / "run", epochs=1, parts="all", batch_size=64, verbose=0)
    return run.folder, run.choices["sold"]


def age(folder, **changes):
    """Change the file of a run to one of an earlier version, with other choices."""
    path = folder / "run.yaml"
    tables = yaml.safe_load(path.read_text())
    tables["facts"].pop("revision", None)
    tables["facts"].update(changes)
    tables["facts"]["choices"]["sold"].update(temperature=3.0, threshold=0.99)
    path.write_text(yaml.safe_dump(tables))


def age_bundle(folder):
    """Change a bundle to the architecture of an earlier version, which repeated no words."""
    path, manifest = folder / "architecture.json", folder / "export.json"
    form, listed = json.loads(path.read_text()), json.loads(manifest.read_text())
    (layers,) = (each["config"]["layers"] for each in form["members"])
    (stack,) = (each for each in layers if each["class_name"] == "Stack" and each["config"]["axis"] == 1)
    ((given,),) = (node["args"] for node in stack["inbound_nodes"])
    stack.update(class_name="ExpandDims", registered_name="ExpandDims")
    stack["inbound_nodes"][0]["args"] = given[:1]
    (add,) = (each for each in layers if each["class_name"] == "Add" and stack["name"] in json.dumps(each))
    assert add["inbound_nodes"][0]["args"][1]["config"]["shape"] == [None, 16, 1]
    add["inbound_nodes"][0]["args"][1]["config"]["shape"] = [None, 1, 1]
    path.write_text(json.dumps(form))
    listed["files"][path.name]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    manifest.write_text(json.dumps(listed))


def test_y01_run_of_an_earlier_version_is_calibrated_again(finished, tmp_path, caplog):
    folder, chosen = finished
    assert yaml.safe_load((folder / "run.yaml").read_text())["facts"]["revision"] == 2
    ps.open_run(folder)
    assert not caplog.records

    age(folder)
    run = ps.open_run(folder)
    assert f"penstock train --resume --out {folder}" in caplog.text
    assert run.choices["sold"].temperature == 3.0
    caplog.clear()
    ps.export_model(run, tmp_path / "out", format="bundle", check=False)
    age_bundle(tmp_path / "out")
    ps.Predictor(tmp_path / "out")
    assert "export it again" in caplog.text

    caplog.clear()
    again = ps.train(None, out=folder, resume=True, verbose=0)
    assert again.choices["sold"] == chosen
    assert ps.open_run(folder).choices["sold"] == chosen
    ps.export_model(again, tmp_path / "again", format="bundle", check=False)
    ps.Predictor(tmp_path / "again")
    assert not caplog.records


def test_y01_run_that_was_trained_with_the_fault_must_be_trained_again(finished, caplog):
    folder, _ = finished
    stored = (folder / "run.yaml").read_bytes()
    age(folder, batch_size=16)
    ps.open_run(folder)
    advice = f"penstock train --config {folder}/run.yaml --out NEW"
    assert advice in caplog.text
    caplog.clear()
    ps.train(None, out=folder, resume=True, verbose=0)  # it cannot repair the weights
    assert [each.levelname for each in caplog.records if advice in each.message] == ["WARNING"]
    (folder / "run.yaml").write_bytes(stored)


@pytest.mark.parametrize(
    "change",
    [
        {"facts": {"revision": 2, "batch_size": 16}},
        {"facts": {"backend": "jax", "batch_size": 16}},
        {"model": {"members": 1, "text": "ngrams"}},
        {"model": {"members": 16, "text": "pool"}},
        {"model": "own"},
    ],
)
def test_runs_without_the_fault_are_not_warned_of(finished, change):
    pipeline = ps.Pipeline.load(finished[0] / "pipeline.json")
    settings = {"model": {"members": 16, "text": "ngrams"}, "facts": {"batch_size": 16}}
    yes, kind = Task("sold", "binary", ("no", "yes")), Task("sold", "multiclass", ("a", "b", "c"))
    assert find_batch_fault(read(settings), pipeline, [yes]) == "weights"
    assert find_batch_fault(read(settings), pipeline, [kind]) == ""
    assert find_batch_fault(read({**settings, **change}), pipeline, [yes]) == ""


def test_y01_run_in_which_nothing_was_chosen_is_not_warned_of(finished):
    pipeline = ps.Pipeline.load(finished[0] / "pipeline.json")
    facts = {"batch_size": 64, "validation": "validation"}
    settings = {"model": {"members": 16, "text": "ngrams"}, "facts": facts}
    yes, price = Task("sold", "binary", ("no", "yes")), Task("price", "regression")
    kind = Task("kind", "multiclass", ("a", "b", "c"))
    assert find_batch_fault(read(settings), pipeline, [price]) == ""
    assert find_batch_fault(read(settings), pipeline, [yes]) == ""
    facts["choices"] = {"kind": {"temperature": 2.0}}
    assert find_batch_fault(read(settings), pipeline, [kind, price]) == ""
    assert (
        find_export_fault(read({"facts": {"choices": facts["choices"]}}).facts, pipeline, [kind, price]) == ""
    )
    facts["choices"] = {"sold": {"temperature": 2.0}}
    assert find_batch_fault(read(settings), pipeline, [yes, price]) == "choices"
    assert (
        find_export_fault(read({"facts": {"choices": facts["choices"]}}).facts, pipeline, [yes, price])
        == "choices"
    )


def test_run_whose_held_out_records_are_others_now_must_be_trained_again(finished):
    pipeline = ps.Pipeline.load(finished[0] / "pipeline.json")
    facts = {"batch_size": 64, "validation": HELD_OUT, "choices": {"sold": {"threshold": 0.5}}}
    settings = {"model": {"members": 16, "text": "ngrams"}, "facts": facts}
    fault = find_batch_fault(read(settings), pipeline, [Task("sold", "binary", ("no", "yes"))])
    assert fault == "held_out"
    text = describe_batch_fault(fault, "runs/a", read(settings))
    assert "penstock train --config runs/a/run.yaml --out NEW" in text


@pytest.mark.parametrize(
    ("part", "data", "command"),
    [
        ("text", {"data": "/sets/a", "target": "sold"}, "penstock train /sets/a --target sold --out NEW"),
        ("image", {"data": "data"}, "penstock train runs/a/data --out NEW"),
        ("text", {"data": ["a", "b"], "target": ["y", "z"]}, "penstock train DATA --target y,z --out NEW"),
    ],
)
def test_y02_run_whose_inputs_an_earlier_version_left_out_must_be_trained_again(
    finished, part, data, command
):
    pipeline = ps.Pipeline.load(finished[0] / "pipeline.json")
    if part == "text":
        pipeline = without_fields(pipeline, ["note"])
    parts = {"used": ["table"], "left_out": {part: ["review"]}, "trials": {"table": {"loss": 0.5}}}
    settings = {
        "model": {"members": 16, "text": "ngrams"},
        "facts": {"batch_size": 32, "parts": parts},
        **data,
    }
    yes = Task("sold", "binary", ("no", "yes"))
    assert find_batch_fault(read(settings), pipeline, [yes]) == "inputs"
    text = describe_batch_fault("inputs", "runs/a", read(settings))
    assert f"{part} (review)" in text
    assert text.endswith(f"{command}.")
    if part == "image":
        assert find_batch_fault(read(settings), without_fields(pipeline, ["note"]), [yes]) == ""


def test_run_that_an_earlier_version_began_keeps_its_revision(tmp_path):
    path, config = tmp_path / "run.yaml", read({"facts": {"revision": 2, "batch_size": 64}})
    assert keep_revision(config, path) == config
    for begun, revision in (({"batch_size": 64}, None), ({"revision": 2}, 2)):
        path.write_text(yaml.safe_dump({"facts": begun}))
        assert keep_revision(config, path).facts == RunFacts(revision=revision, batch_size=64)
