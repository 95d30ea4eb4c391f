"""Texts such as `NaN` and `None` in a column of labels are missing labels, unless the column is declared."""

import json
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image

import penstock as ps
from penstock.cli.main import main
from penstock.dataset import open_with_target
from penstock.jobs.convert.convert import run_conversion
from penstock.jobs.evaluate.labelled import store_labelled
from penstock.jobs.predict.raw_layout import find_recipe
from penstock.jobs.train.division import hold_out_records
from penstock.model.task import find_tasks
from penstock.model.usable_records import find_labelled
from penstock.plan.planner import PlanOverrides
from penstock.settings.conversion import ConvertOptions
from penstock.settings.prediction import PredictOptions
from penstock.source import block
from penstock.training.recorded_data import RecordedData
from raising import containing

TEXTS = ("NaN", "nan", "NA", "N/A", "null", "None")
NUM_ROWS = 60
X = np.arange(NUM_ROWS) * 0.5
LABELS = [*TEXTS, " NA ", *(("no", "yes")[i % 2] for i in range(NUM_ROWS - 7))]


def write(kind, folder, labels=LABELS):
    rows = {"x": X[: len(labels)], "y": labels}
    if kind == "columns":
        return rows
    if kind == "array":
        return {**rows, "y": np.array(labels)}
    if kind == "frame":
        return pd.DataFrame(rows)
    path = folder / f"rows.{kind}"
    pairs = list(zip(X.tolist(), labels, strict=False))
    if kind == "csv":
        path.write_text("x,y\n" + "".join(f"{x},{label}\n" for x, label in pairs))
    else:
        path.write_text("".join(json.dumps({"x": x, "y": label}) + "\n" for x, label in pairs))
    return path


def read_labels(data, name="y"):
    return [sample.get(name) for split in data.splits for sample in data[split]]


@pytest.mark.parametrize("kind", ["columns", "array", "frame", "csv", "jsonl"])
def test_y10_texts_of_missing_labels_are_missing_and_counted(tmp_path, kind):
    source = write(kind, tmp_path)
    done = run_conversion(source, tmp_path / "set", PlanOverrides(target="y"), ConvertOptions())
    data = ps.open(done.out)
    labels = read_labels(data)
    assert sorted({label for label in labels if label is not None}) == ["no", "yes"]
    assert labels.count(None) == len(TEXTS) + 1
    assert containing("'N/A'", "7 of 60 rows", "fields={'y': ps.fields.Category()}") in done.notes
    assert containing("7 rows", "'y'") in done.notes
    assert list(ps.Pipeline.fit(data).transforms["y"].fitted.values) == ["no", "yes"]


def test_y10_quotes_make_no_difference_among_labels_and_numbers(tmp_path):
    path = tmp_path / "rows.csv"
    pairs = [("NA", '"NA"')[i % 2] for i in range(NUM_ROWS)]
    rows = (
        f"{pair if i < 6 else i},{pair if i < 6 else 'no' if i % 2 else 'yes'},{pair if i % 5 else 'a'}\n"
        for i, pair in enumerate(pairs)
    )
    path.write_text("x,y,kind\n" + "".join(rows))
    data = ps.convert(path, tmp_path / "set", target="y", shuffle=False, split="all=1.0")
    assert [[sample.get(name) for sample in data["all"][:6]] for name in ("x", "y")] == [[None] * 6] * 2
    assert read_labels(data, "kind")[1] == "NA"
    declared = ps.convert(path, tmp_path / "other", target="y", missing="NA", split="all=1.0", shuffle=False)
    assert read_labels(declared, "kind")[1:3] == ["NA", None]  # in quotes, and not


STORED = ["NA", "None", *("no", "yes") * 29]


@pytest.fixture
def stored(tmp_path):
    """A folder with records that have texts of missing labels, stored as an input."""
    rows = {"x": X, "y": STORED, "z": ["a", "b"] * (NUM_ROWS // 2)}
    ps.convert(rows, tmp_path / "stored", split={"train": 0.8, "validation": 0.2}, target="z", seed=1)
    return tmp_path / "stored"


def open_labelled(folder, how):
    """Return the data set with the target y, as `open` and `train` open it."""
    if how == "files":
        (folder / "penstock.json").unlink()
        return ps.open(folder / "*.tfrecord", target="y")
    return ps.open(folder, target="y") if how == "open" else open_with_target(ps.open(folder), "y")


@pytest.mark.parametrize("how", ["open", "data set", "files"])
def test_y10_texts_of_missing_labels_in_stored_records_are_missing(stored, how, caplog):
    data = open_labelled(stored, how)
    assert set(data.schema["y"].unlabelled) == {"NA", "None"}
    assert "'NA' and 'None' in this target count as missing" in data.notes["y"]
    if how != "data set":
        assert "fields={'y': ps.fields.Category()}" in caplog.text
    pipeline = ps.Pipeline.fit(data)
    assert pipeline.classes == {"y": ("no", "yes")}
    found = [find_labelled(data[name].as_source(), pipeline) for name in data.splits]
    assert sum(each.num_missing for each in found) == 2
    for name, each in zip(data.splits, found, strict=True):
        loader = data[name].loader(pipeline, batch_size=8, filter=each.filter)
        labels = [int(code) for _, targets in loader for code in targets["y"]]
        kept = [sample["y"] for sample in data[name] if sample["y"] not in ("NA", "None")]
        assert labels == [("no", "yes").index(label) for label in kept]


def test_y10_declared_class_of_stored_records_keeps_the_text(stored, caplog):
    data = ps.open(stored, target="y", fields={"y": ps.fields.Category()})
    pipeline = ps.Pipeline.fit(data)
    assert pipeline.classes == {"y": ("NA", "None", "no", "yes")}
    assert find_labelled(data["train"].as_source(), pipeline).num_missing == 0
    given = ps.transform.Encode(vocabulary=["no", "yes", "NA"])
    chosen = ps.Pipeline.fit(ps.open(stored, target="y"), y=given)
    sources = [ps.open(stored, target="y")[name].as_source() for name in data.splits]
    assert sum(find_labelled(each, chosen).num_missing for each in sources) == 1  # None is no class
    assert caplog.text.count("To keep them") == 3


def test_y10_training_on_stored_records_skips_such_labels(stored, capsys):
    pytest.importorskip("keras")
    trained = {}
    for how, data in (("path", stored), ("data set", ps.open(stored))):
        run = ps.train(data, out=stored.parent / how, target="y", epochs=1, verbose=0)
        assert run.tasks["y"].labels == ("no", "yes")
        trained[how] = (run.pipeline.fingerprint(), run.history[-1]["loss"])
    assert trained["path"] == trained["data set"]
    assert sum(ps.evaluate(run, split=name, importance=False).records for name in ps.open(stored)) == 58
    (stored / "penstock.json").unlink()
    labels = [sample["y"] for sample in ps.open(stored / "train-*.tfrecord")["train"]]
    found = ps.evaluate(run, stored / "train-*.tfrecord", split="train", importance=False)
    assert found.records == labels.count("no") + labels.count("yes") < len(labels)
    assert main(["inspect", os.fspath(stored), "--target", "y", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["classes"] == {"y": ["no", "yes"]}


def test_y10_stored_records_are_converted_and_held_out_without_such_labels(stored):
    again = ps.convert(stored, stored.parent / "again", target="y")
    labels = read_labels(again)
    assert (labels.count(None), set(labels)) == (2, {None, "no", "yes"})
    whole = ps.open(stored, target="y")
    held = hold_out_records(whole, 0.25).rows.to_mask()
    texts = np.array([sample["y"] for sample in whole["train"]])
    assert set(texts[held]) == {"no", "yes"}


@pytest.mark.parametrize("declare", ["field", "type", "schema", "plan"])
def test_y10_declared_class_keeps_the_text(tmp_path, declare):
    category = ps.fields.Category()
    options = ConvertOptions()
    if declare == "field":
        overrides = PlanOverrides(target="y", fields={"y": category})
    elif declare == "type":
        overrides = PlanOverrides(target="y", types={"y": "category"})
    elif declare == "schema":
        schema = {"x": ps.fields.Number(), "y": ps.fields.Category(role="target")}
        overrides = PlanOverrides(schema=schema)
    else:
        plan = tmp_path / "plan.yaml"
        plan.write_text("columns:\n  y: {type: category, role: target}\n")
        overrides, options = PlanOverrides(), ConvertOptions(plan=plan)
    done = run_conversion(write("csv", tmp_path), tmp_path / "set", overrides, options)
    assert {*TEXTS, "no", "yes"} <= set(read_labels(ps.open(done.out)))
    assert not any("of this target" in note for note in done.notes)


def test_y10_input_keeps_the_text(tmp_path):
    rows = {"kind": LABELS, "y": ["a", "b"] * (NUM_ROWS // 2)}
    data = ps.convert(rows, tmp_path / "set", target="y")
    assert set(TEXTS) <= set(read_labels(data, "kind"))


def test_y10_labels_of_folders_are_classes(tmp_path):
    for label in ("None", "dog"):
        (tmp_path / "in" / label).mkdir(parents=True)
        Image.new("L", (4, 4)).save(tmp_path / "in" / label / "one.png")
    data = ps.convert(tmp_path / "in", tmp_path / "set")
    assert sorted(read_labels(data, "label")) == ["None", "dog"]


@pytest.mark.parametrize("last", ["NaN", None, "no"])
def test_y10_missing_label_after_the_first_rows_is_missing_too(tmp_path, monkeypatch, last):
    monkeypatch.setattr(block, "HEAD_ROWS", 10)
    batches = [
        pa.record_batch({"x": X[: len(labels)], "y": pa.array(labels, pa.string())})
        for labels in (["no", "yes"] * 20, [last])
    ]
    source = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    data = ps.convert(source, tmp_path / "set", target="y")
    is_missing = last != "no"
    assert read_labels(data).count(None) == is_missing
    assert data.schema["y"].optional == is_missing


def test_y10_evaluation_leaves_out_rows_with_such_a_label(tmp_path):
    data = ps.convert({"x": X, "y": ["no", "yes", "NA"] * 20}, tmp_path / "set", target="y")
    pipeline = ps.Pipeline.fit(data)
    recipe = find_recipe(pipeline, RecordedData(), data.paths[0].parent)
    (tmp_path / "rows").mkdir()
    given = {"x": [1.0, 2.0, 3.0, 4.0], "y": ["yes", "NaN", "None", "no"]}
    found = store_labelled(given, pipeline, find_tasks(pipeline), recipe, PredictOptions(), tmp_path / "rows")
    assert [sample["y"] for sample in found.split] == ["yes", "no"]
    assert "2 rows without a label left out" in found.notes


def test_y10_evaluation_keeps_a_class_of_the_run(tmp_path):
    kept = {"y": ps.fields.Category()}
    data = ps.convert({"x": X, "y": ["no", "yes", "NA"] * 20}, tmp_path / "set", target="y", fields=kept)
    pipeline = ps.Pipeline.fit(data)
    recipe = find_recipe(pipeline, RecordedData(), data.paths[0].parent)
    (tmp_path / "rows").mkdir()
    given = {"x": [1.0, 2.0, 3.0], "y": ["yes", "NA", "None"]}
    found = store_labelled(given, pipeline, find_tasks(pipeline), recipe, PredictOptions(), tmp_path / "rows")
    assert [sample["y"] for sample in found.split] == ["yes", "NA"]
