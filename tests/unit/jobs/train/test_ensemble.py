"""Ensembles: members that are separate runs, their average, and the resume of interrupted ones."""

import numpy as np
import pytest

import penstock as ps
from penstock.errors import NonFiniteError, OptionError, StateError
from penstock.training.tensor_file import read_tensors
from run_tables import read_tables
from training_data import Interruption, Listener, interrupt_after

keras = pytest.importorskip("keras")
from penstock.jobs.train import ensemble as module  # noqa: E402

ROWS = 80
SMALL = ps.options.ModelOptions(preset="small", units=(8,), members=1)
OPTIONS = {"epochs": 2, "batch_size": 16, "seed": 5, "patience": None, "checkpoint_steps": 1}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    draws = np.random.default_rng(1)
    x = draws.normal(0, 1, (ROWS, 2)).astype(np.float32)
    table = {"a": x[:, 0], "b": x[:, 1], "sold": np.where(x.sum(1) > 0, "yes", "no").tolist()}
    return ps.convert(
        table, tmp_path_factory.mktemp("data") / "toys", target="sold", split="train=0.7,validation=0.3"
    )


def train(data, out, **options):
    given = {"watcher": Listener(), "model_options": SMALL, **OPTIONS, **options}
    return ps.train(data, out=out, **given)


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory):
    return train(data, tmp_path_factory.mktemp("whole") / "run", ensemble=2)


def read_weights(folder):
    return {name: each.tobytes() for name, each in read_tensors(folder / "weights.safetensors")[0].items()}


def assert_same_ensemble(folder, other):
    for name in ("member-1", "member-2"):
        assert read_weights(folder / name) == read_weights(other / name)
    first, second = (read_tables(each / "run.yaml") for each in (folder, other))
    for each in (first, second):
        assert each["facts"].pop("seconds")["training"] > 0
    assert first["facts"] == second["facts"]
    assert first["ensemble"] == second["ensemble"] == {"members": 2}
    assert ps.open_run(folder).choices == ps.open_run(other).choices


def read_inputs(run, split):
    with split.loader(run.pipeline, batch_size=64).read(0) as batches:
        return next(iter(batches))


def test_member_equals_a_single_run_with_its_seed(data, whole, tmp_path):
    single = train(data, tmp_path / "single", seed=6)
    assert read_weights(whole.folder / "member-2") == read_weights(single.folder)
    member = ps.open_run(whole.folder / "member-2")
    assert member.history[-1]["epoch"] == 2
    assert member.config.train.seed == 6
    assert not member.members


def test_opened_ensemble_predicts_the_mean_of_its_members(data, whole):
    opened = ps.open_run(whole.folder)
    inputs, targets, *_ = read_inputs(opened, data["validation"])
    members = [np.asarray(each.model.predict_on_batch(inputs)) for each in opened.members]
    assert not np.array_equal(*members)
    found = np.asarray(opened.model.predict_on_batch(inputs))
    np.testing.assert_allclose(found, np.mean(members, axis=0), rtol=1e-6)
    np.testing.assert_array_equal(opened.predictor()(inputs)["sold"], whole.predictor()(inputs)["sold"])
    accuracy = np.mean((opened.predictor()(inputs)["sold"] >= 0.5) == targets["sold"])
    assert opened.config.facts.scores["average"]["sold"]["accuracy"] == pytest.approx(accuracy)
    assert opened.choices["sold"].records == len(data["validation"])
    assert "2 members" in repr(opened)


def test_evaluation_has_the_scores_of_members_and_average(data, whole):
    found = ps.evaluate(whole, split="validation", importance=False, bootstrap=0)
    stored = whole.config.facts.scores
    assert found.members == {name: stored[name] for name in ("member-1", "member-2")}
    assert found.targets == stored["average"]
    assert found.to_json()["members"] == found.members
    assert "average" in str(found)


def test_predictions_are_predictions_of_the_average(data, whole):
    table = ps.predict(whole.folder, data["validation"]).to_arrow()
    inputs, *_ = read_inputs(whole, data["validation"])
    np.testing.assert_allclose(
        table["sold_probability_yes"].to_numpy(), whole.predictor()(inputs)["sold"], rtol=1e-6
    )


class Ending(Listener):
    """A watcher who ends the process at a note."""

    def note(self, text):
        super().note(text)
        if text.startswith("member-2"):
            raise Interruption


def fail(*_):
    raise Interruption


def test_ensemble_that_is_interrupted_anywhere_ends_with_the_same_weights(data, whole, tmp_path, monkeypatch):
    out = tmp_path / "run"

    def interrupt(data, watcher=None, **options):
        with pytest.raises(Interruption):
            train(data, out, watcher=watcher or Listener(), **options)
        with pytest.raises(StateError) as caught:
            ps.open_run(out)
        assert caught.value.got == "an unfinished one"

    with monkeypatch.context() as patch:
        interrupt_after(patch, "member-1", 2)
        interrupt(data, ensemble=2)
    assert not (out / "member-1" / "weights.safetensors").exists()
    interrupt(None, Ending(), resume=True)
    assert (out / "member-1" / "weights.safetensors").exists()
    assert not (out / "member-2").exists()
    with monkeypatch.context() as patch:
        interrupt_after(patch, "member-2", 5)
        interrupt(None, resume=True)
    assert (out / "member-2").exists()
    for where in [(module, "score_runs"), (module.RunWriter, "finish_runs")]:
        with monkeypatch.context() as patch:
            patch.setattr(*where, fail)
            interrupt(None, resume=True)
    train(None, out, resume=True, ensemble=2)
    assert_same_ensemble(out, whole.folder)
    listener = Listener()
    train(None, out, resume=True, watcher=listener)
    assert not listener.epochs
    assert_same_ensemble(out, whole.folder)


def test_other_numbers_of_members_and_other_options_are_refused(data, whole, tmp_path):
    with pytest.raises(StateError) as caught:
        train(None, whole.folder, resume=True, ensemble=3)
    assert (caught.value.expected, caught.value.got) == (2, 3)
    with pytest.raises(StateError) as caught:
        train(None, whole.folder, resume=True, learning_rate=0.5)
    assert caught.value.got == 0.5
    with pytest.raises(StateError):
        train(None, whole.folder / "member-1", resume=True, ensemble=2)
    for number in (1, 0, 1001, True, "3"):
        with pytest.raises(OptionError) as caught:
            train(data, tmp_path / "bad", ensemble=number)
        assert caught.value.field == "ensemble"
    assert not (tmp_path / "bad").exists()


def build():
    a, b = keras.Input((), name="a"), keras.Input((), name="b")
    x = keras.ops.stack([a, b], axis=-1)
    return keras.Model({"a": a, "b": b}, keras.layers.Dense(1, activation="sigmoid", name="sold")(x))


def test_own_models_of_an_ensemble_come_from_a_function(data, tmp_path):
    with pytest.raises(OptionError) as caught:
        train(data, tmp_path / "one", ensemble=2, model=build(), model_options=None)
    assert "model=build" in caught.value.advice
    run = train(data, tmp_path / "run", ensemble=2, model=build, model_options=None)
    with pytest.raises(OptionError):
        ps.open_run(run.folder)
    with pytest.raises(OptionError):
        ps.open_run(run.folder, model=build())
    opened = ps.open_run(run.folder, model=build)
    inputs, *_ = read_inputs(run, data["validation"])
    np.testing.assert_array_equal(opened.predictor()(inputs)["sold"], run.predictor()(inputs)["sold"])
    assert read_weights(run.folder / "member-1") != read_weights(run.folder / "member-2")


def test_fault_of_one_member_keeps_the_others(data, tmp_path, monkeypatch):
    run = module.Fit.run

    def fail(self, *, resume=False):
        if self.folder.name == "member-2":
            raise NonFiniteError("loss")
        return run(self, resume=resume)

    listener = Listener()
    monkeypatch.setattr(module.Fit, "run", fail)
    with pytest.raises(NonFiniteError):
        train(data, tmp_path / "run", ensemble=2, watcher=listener)
    assert any("member-1" in note and "kept" in note for note in listener.notes)
    assert ps.open_run(tmp_path / "run" / "member-1").history
