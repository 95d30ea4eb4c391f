"""Cross-validation: every record is predicted once, by a model that did not see it, and resume is exact."""

import numpy as np
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.errors import OptionError, StateError
from penstock.score.scores import score
from penstock.training.tensor_file import read_tensors
from run_tables import read_tables
from training_data import Interruption, Listener, interrupt_after

keras = pytest.importorskip("keras")
from penstock.jobs.train.cross_validation import folds as module  # noqa: E402

ROWS = 150
SMALL = ps.options.ModelOptions(preset="small", units=(8,), members=1)
OPTIONS = {"epochs": 2, "batch_size": 16, "seed": 5, "patience": None, "checkpoint_steps": 1}
NAMES = ("fold-1", "fold-2")


def make_table(rows=ROWS):
    draws = np.random.default_rng(1)
    x = draws.normal(0, 1, (rows, 2)).astype(np.float32)
    return {
        "key": [f"r{row}" for row in range(rows)],
        "owner": [f"o{row % 40}" for row in range(rows)],
        "a": x[:, 0],
        "b": x[:, 1],
        "sold": np.where(x.sum(1) > 0, "yes", "no").tolist(),
    }


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "toys"
    return ps.convert(make_table(), folder, target="sold", id="key", group="owner")


def cross_validate(data, out, **options):
    given = {"watcher": Listener(), "model_options": SMALL, **OPTIONS, **options}
    return ps.cross_validate(data, out=out, **given)


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory):
    return cross_validate(data, tmp_path_factory.mktemp("whole") / "run", folds=2)


def read_weights(folder):
    return {name: each.tobytes() for name, each in read_tensors(folder / "weights.safetensors")[0].items()}


def list_values(split, name="key"):
    return [sample[name] for sample in split]


def test_every_record_outside_the_test_split_is_predicted_once_by_a_model_that_did_not_see_it(data, whole):
    table = pq.read_table(whole.predictions)
    expected = list_values(data["train"]) + list_values(data["validation"])
    assert sorted(table["key"].to_pylist()) == sorted(expected)
    assert whole.records == len(expected)
    for number, folder in enumerate(whole.runs, 1):
        fold = ps.open(folder / "data")
        predicted = table.filter(np.array(table["fold"]) == number)["key"].to_pylist()
        assert predicted == list_values(fold["test"])
        seen = list_values(fold["train"]) + list_values(fold["validation"])
        assert set(seen).isdisjoint(predicted)
        assert sorted(seen + predicted) == sorted(expected)
        owners = [set(list_values(fold[name], "owner")) for name in ("train", "validation", "test")]
        assert sum(map(len, owners)) == len(set.union(*owners))
        run = ps.open_run(folder)
        again = ps.predict(run, fold["test"]).to_arrow()["sold_probability_yes"]
        chosen = table.filter(np.array(table["fold"]) == number)["sold_probability_yes"]
        assert again.to_pylist() == chosen.to_pylist()


def test_pipelines_are_fitted_to_the_training_part_alone(whole):
    for folder in whole.runs:
        fold = ps.open(folder / "data")
        fitted = ps.Pipeline.load(folder / "pipeline.json").transforms["a"].fitted
        values = np.array(list_values(fold["train"], "a"))
        assert fitted.shift[0] == pytest.approx(values.mean(), rel=1e-5)


def test_scores_are_scores_of_the_predictions_with_mean_and_deviation(whole):
    table = pq.read_table(whole.predictions)
    accuracies = []
    for number, name in enumerate(NAMES, 1):
        part = table.filter(np.array(table["fold"]) == number)
        truth = np.array([each == "yes" for each in part["sold_true"].to_pylist()]).astype(int)
        task = ps.open_run(whole.folder / name).tasks["sold"]
        found = score(task, truth, part["sold_probability_yes"].to_numpy())
        assert whole.scores[name]["sold"] == pytest.approx(found)
        accuracies.append(found["accuracy"])
    assert whole.means["sold"]["accuracy"] == pytest.approx(np.mean(accuracies))
    assert whole.deviations["sold"]["accuracy"] == pytest.approx(np.std(accuracies, ddof=1))
    facts = read_tables(whole.folder / "run.yaml")["facts"]
    assert facts["mean"] == whole.means
    assert facts["deviation"] == whole.deviations
    assert "accuracy" in str(whole)


def test_folder_of_folds_is_not_a_run_but_each_fold_is(data, whole):
    for use in (ps.open_run, ps.evaluate, lambda folder: ps.predict(folder, data["test"])):
        with pytest.raises(StateError) as caught:
            use(whole.folder)
        assert "cross-validation" in caught.value.got
        assert "fold-1" in caught.value.advice
    found = ps.evaluate(whole.folder / "fold-1", importance=False, bootstrap=0)
    assert found.targets == whole.scores["fold-1"]
    assert not any("trained on" in note for note in found.notes)


def assert_same_folds(folder, other):
    for name in NAMES:
        assert read_weights(folder / name) == read_weights(other / name)
    assert pq.read_table(folder / "predictions.parquet").equals(pq.read_table(other / "predictions.parquet"))
    first, second = (read_tables(each / "run.yaml") for each in (folder, other))
    assert first == second


def interrupt(patch, where):
    """Let a function of the module end the process."""

    def fail(*_, **__):
        raise Interruption

    patch.setattr(*where, fail)


def test_cross_validation_that_is_interrupted_anywhere_ends_the_same(data, whole, tmp_path, monkeypatch):
    out = tmp_path / "run"
    given = {"folds": 2}
    for where in [(module.FoldRequest, "divide"), (module, "link_fold"), (module.RunWriter, "write_config")]:
        with monkeypatch.context() as patch:
            interrupt(patch, where)
            with pytest.raises(Interruption):
                cross_validate(data, out, **given, resume=True)
    with monkeypatch.context() as patch:
        interrupt_after(patch, "fold-2", 3)
        with pytest.raises(Interruption):
            cross_validate(data, out, **given, resume=True)
    for where in [(module, "open_writer"), (module.RunWriter, "finish_runs")]:
        with monkeypatch.context() as patch:
            interrupt(patch, where)
            with pytest.raises(Interruption):
                cross_validate(None, out, resume=True)
    done = cross_validate(None, out, resume=True)
    assert_same_folds(out, whole.folder)
    assert (done.scores, done.records) == (whole.scores, whole.records)


def test_wrong_numbers_of_folds_are_refused(data, whole, tmp_path):
    for number in (1, 0, 1000, 70, True):
        with pytest.raises(OptionError) as caught:
            cross_validate(data, tmp_path / "bad", folds=number)
        assert caught.value.field == "folds"
        assert caught.value.advice
    refused = {"ensemble": 3, "pipeline": ps.Pipeline.fit(data), "callbacks": [], "num_workers": 2}
    for name, value in refused.items():
        with pytest.raises(OptionError) as caught:
            cross_validate(data, tmp_path / "bad", folds=2, **{name: value})
        assert caught.value.field == name
        assert "fold" in caught.value.advice or "single runs" in caught.value.advice
    with pytest.raises(StateError) as caught:
        cross_validate(None, whole.folder, folds=3, resume=True)
    assert (caught.value.expected, caught.value.got) == (2, 3)
    with pytest.raises(StateError) as caught:
        ps.train(None, out=whole.folder, ensemble=3, resume=True)
    assert (caught.value.expected, caught.value.got) == ("no ensemble", 3)
    with pytest.raises(StateError) as caught:
        cross_validate(None, whole.folder, resume=True, learning_rate=0.5)
    assert caught.value.got == 0.5
    with pytest.raises(OptionError):
        cross_validate(data, tmp_path / "bad", folds=2, model=keras.Sequential())
    assert not (tmp_path / "bad" / "run.yaml").exists()


def test_more_folds_than_groups_is_an_error_that_leaves_nothing(tmp_path):
    table = make_table(90) | {"owner": [f"o{row % 9}" for row in range(90)]}
    data = ps.convert(table, tmp_path / "data", target="sold", group="owner", id="key")
    with pytest.raises(OptionError) as caught:
        cross_validate(data, tmp_path / "run", folds=8)
    assert caught.value.field == "folds"
    assert "fewer folds" in caught.value.advice


def test_train_refuses_folds_and_names_cross_validate(data, whole, tmp_path):
    with pytest.raises(OptionError) as caught:
        ps.train(data, out=tmp_path / "run", folds=2)
    assert caught.value.field == "folds"
    assert "ps.cross_validate(data, folds=" in caught.value.advice
    assert not (tmp_path / "run").exists()
    with pytest.raises(StateError) as caught:
        ps.train(None, out=whole.folder, resume=True)
    assert "ps.cross_validate(None, out=" in caught.value.advice


def test_cross_validate_refuses_the_folder_of_one_run(whole):
    for more in ({}, {"folds": 2}):
        with pytest.raises(StateError) as caught:
            ps.cross_validate(None, out=whole.folder / "fold-1", resume=True, **more)
        assert "fold" in f"{caught.value.advice} {caught.value.expected}"
    with pytest.raises(StateError) as caught:
        ps.cross_validate(None, out=whole.folder / "fold-1", resume=True)
    assert "ps.train(None, out=" in caught.value.advice


def test_folds_are_five_unless_a_number_is_given(data, tmp_path, monkeypatch):
    seen = []

    class Done(Exception):  # noqa: N818
        pass

    def run(training, **_):
        seen.append(training.number)
        raise Done

    monkeypatch.setattr(module.FoldTraining, "run", run)
    for given in ({}, {"folds": 3}):
        with pytest.raises(Done):
            cross_validate(data, tmp_path / "run", **given)
    assert seen == [5, 3]
