"""A trained run, evaluated: by Keras's own metrics, on other data, and from the command line."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest

import penstock as ps
from penstock.cli.main import main
from penstock.errors import StateError
from penstock.jobs.model_file import load_model
from raising import containing, raises_with

MODEL = """
import keras


def build():
    age, kind = keras.Input((), name="age"), keras.Input((), name="kind", dtype="int32")
    joined = keras.layers.Concatenate()([keras.layers.Reshape((1,))(age), keras.layers.Embedding(8, 2)(kind)])
    return keras.Model({"age": age, "kind": kind}, keras.layers.Dense(1, activation="sigmoid")(joined))
"""


def make_columns(count: int, kinds: tuple[str, ...]) -> dict[str, object]:
    at = np.arange(count)
    age = ((at * 37) % 101) / 50 - 1
    kind = [kinds[i % len(kinds)] for i in at]
    score = age + np.array([0.8 if each == "dog" else -0.8 for each in kind])
    return {
        "id": [f"pet-{i}" for i in at],
        "age": age.astype(np.float32),
        "kind": kind,
        "shelter": [f"s{i % 3}" for i in at],
        "adopted": [("no", "yes")[int(each > 0)] for each in score],
        "price": (3 * age + 10).astype(np.float32),
    }


def convert(folder: Path, kinds: tuple[str, ...] = ("cat", "dog")) -> ps.Dataset:
    return ps.convert(
        make_columns(600, kinds),
        folder,
        id="id",
        target=["adopted", "price"],
        split="train=0.6,validation=0.1,test=0.3",
    )


@pytest.fixture(scope="module")
def pets(tmp_path_factory) -> ps.Dataset:
    return convert(tmp_path_factory.mktemp("evaluated") / "pets")


@pytest.fixture(scope="module")
def run(pets, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "pets"
    pipeline = ps.Pipeline.fit(pets, shelter=None)
    options = ps.options.ModelOptions(preset="small")
    return ps.train(
        pets,
        pipeline=pipeline,
        out=folder,
        epochs=12,
        learning_rate=0.02,
        model_options=options,
        batch_size=32,
    )


@pytest.fixture(scope="module")
def found(run, pets):
    return ps.evaluate(run, pets["test"], slices=["shelter"], bootstrap=100)


def test_scores_of_a_run_equal_the_scores_of_keras(run, pets, found) -> None:
    inputs, targets = next(iter(pets["test"].loader(run.pipeline, batch_size=1000)))
    predicted = run.predictor()(inputs)
    scores, truth = found.targets["adopted"], targets["adopted"]
    accuracy = keras.metrics.BinaryAccuracy()
    accuracy.update_state(truth[:, None], predicted["adopted"][:, None])
    assert scores["accuracy"] == pytest.approx(float(accuracy.result()), abs=1e-6)
    entropy = keras.metrics.BinaryCrossentropy()
    entropy.update_state(truth[:, None], predicted["adopted"][:, None])
    assert scores["log_loss"] == pytest.approx(float(entropy.result()), rel=1e-5)
    area = keras.metrics.AUC(num_thresholds=20_000)  # an approximation by thresholds
    area.update_state(truth, predicted["adopted"])
    assert scores["auc"] == pytest.approx(float(area.result()), abs=2e-3)
    for name, metric in (
        ("rmse", keras.metrics.RootMeanSquaredError()),
        ("mae", keras.metrics.MeanAbsoluteError()),
        ("r2", keras.metrics.R2Score()),
    ):
        metric.update_state(targets["price"][:, None], predicted["price"][:, None])
        assert found.targets["price"][name] == pytest.approx(float(metric.result()), rel=1e-4), name
    percent = keras.metrics.MeanAbsolutePercentageError()
    percent.update_state(targets["price"], predicted["price"])
    assert found.targets["price"]["mape"] == pytest.approx(float(percent.result()) / 100, rel=1e-4)


def test_run_that_has_learnt_is_good_and_knows_by_what(found, pets) -> None:
    assert found.records == len(pets["test"])
    assert found.targets["adopted"]["auc"] > 0.95
    assert found.targets["price"]["r2"] > 0.8
    assert list(found.importance) == ["age", "kind"]
    assert found.importance_by_target["adopted"]["kind"] > 0.1
    assert found.importance_by_target["price"]["age"] > 10 * abs(found.importance_by_target["price"]["kind"])
    assert list(found.ablation) == ["numbers", "categories"]
    assert {each.value for each in found.slices["shelter"]} == {"s0", "s1", "s2"}
    low, high = found.intervals["adopted"]["auc"]
    assert low <= found.targets["adopted"]["auc"] <= high


def test_command_prints_one_object_that_is_the_evaluation(run, found, capsys) -> None:
    assert main(["evaluate", str(run.folder), "--slice", "shelter", "--bootstrap", "100", "--json"]) == 0
    form = json.loads(capsys.readouterr().out)
    wanted = json.loads(json.dumps(found.to_json()))
    assert {name: form[name] for name in ("split", "records", "confusion", "tasks", "slices")} == {
        name: wanted[name] for name in ("split", "records", "confusion", "tasks", "slices")
    }
    assert form["targets"]["price"] == pytest.approx(wanted["targets"]["price"])
    assert form["importance"] == pytest.approx(wanted["importance"])


def test_command_prints_tables_and_takes_a_data_set_after_options(run, pets, capsys) -> None:
    words = ["evaluate", str(run.folder), "--bootstrap", "0", "--mistakes", "1", "--split", "validation"]
    assert main([*words, "--no-importance", str(run.data)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == containing("'validation'", len(pets["validation"]))
    assert containing("adopted", "binary", 2) in lines
    assert containing("price", "regression") in lines
    assert main([*words, str(run.data)]) == 0
    assert len(capsys.readouterr().out.splitlines()) > len(lines)  # with a table of importance


def test_command_names_the_splits_where_one_is_not_there(run, capsys) -> None:
    assert main(["evaluate", str(run.folder), "--split", "dev"]) == 2
    said = capsys.readouterr().err
    assert said == containing("'dev'", "'train', 'validation', 'test'")
    assert "penstock evaluate RUN labelled.csv" in said


def test_data_with_another_vocabulary_is_coded_by_the_pipeline_of_the_run(run, tmp_path) -> None:
    other = convert(tmp_path / "other", ("zebra", "dog", "ant", "cat"))
    found = ps.evaluate(run.folder, other, slices=["kind"], bootstrap=0, importance=False)
    assert found.targets["adopted"]["auc"] > 0.8
    known = {each.value: each.targets["adopted"]["accuracy"] for each in found.slices["kind"]}
    assert known["dog"] > 0.85
    assert known["cat"] > 0.85


def test_run_whose_pipeline_was_exchanged_is_refused(run, tmp_path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for path in run.folder.iterdir():
        if path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    other = convert(tmp_path / "other", ("zebra", "dog", "ant", "cat"))
    ps.Pipeline.fit(other, shelter=None).save(folder / "pipeline.json")
    with raises_with(StateError, what=containing("pipeline.json")) as caught:
        ps.evaluate(folder, other)
    assert caught.value.path.startswith(str(folder))


def test_run_of_a_model_of_ones_own_is_evaluated_with_its_function(pets, tmp_path, capsys) -> None:
    data = ps.open(pets.paths[0].parent, target="adopted")
    pipeline = ps.Pipeline.fit(data, shelter=None, price=None)
    (tmp_path / "model.py").write_text(MODEL)
    model = load_model(f"{tmp_path / 'model.py'}:build")
    run = ps.train(data, model=model, pipeline=pipeline, out=tmp_path / "run", epochs=1, batch_size=64)
    words = ["evaluate", str(run.folder), str(run.data), "--no-importance", "--json"]
    assert main(words) == 2
    assert "--model FILE.py:FUNCTION" in capsys.readouterr().err
    assert main([*words, "--model", f"{tmp_path / 'model.py'}:build"]) == 0
    form = json.loads(capsys.readouterr().out)
    again = ps.evaluate(run, pets["test"], bootstrap=0, importance=False)
    assert form["targets"]["adopted"]["log_loss"] == pytest.approx(again.targets["adopted"]["log_loss"])
