"""The job of training: which folder, whose folder, runs that are resumed, and how runs end that were cut."""

import json
import os
import random
import signal

import numpy as np
import pytest

import penstock as ps
from penstock.errors import BusyError, NonFiniteError, OptionError, PathError, StateError, WriteError
from penstock.model.presets import fill_in_preset
from penstock.settings.training import TrainCall
from raising import containing, mentions, raises_with

keras = pytest.importorskip("keras")
from penstock.jobs.train.run_folder.run_folder import choose_folder, claim_folder  # noqa: E402
from penstock.jobs.train.train import TrainJob, plan_training  # noqa: E402
from penstock.shards.staging.lock import WriterLock  # noqa: E402
from penstock.training import run_writer  # noqa: E402
from penstock.tuning import tuner  # noqa: E402
from training_data import Listener  # noqa: E402

OPTIONS = {"epochs": 2, "batch_size": 16, "seed": 3}  # 3 steps an epoch


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    draws = np.random.default_rng(0)
    x = draws.normal(size=64).astype(np.float32)
    table = {"x": x, "y": (3 * x + 1).astype(np.float32)}
    split = "train=0.75,validation=0.25"
    return ps.convert(table, tmp_path_factory.mktemp("job") / "lines", target="y", split=split)


def make(rate=0.1, kind=keras.Model, **choices):
    """Return a line to be fitted, compiled."""
    number = keras.Input((), name="x")
    line = keras.layers.Dense(1, kernel_initializer="zeros")(keras.ops.expand_dims(number, -1))
    model = kind({"x": number}, line)
    if rate is not None:
        model.compile(keras.optimizers.SGD(rate), "mse", **choices)
    return model


def train(model, data, out, **options):
    return ps.train(data, model=model, out=out, **{"watcher": Listener(), **OPTIONS, **options})


def list_names(folder):
    return sorted(path.name for path in folder.iterdir())


def list_weights(run):
    return [weight.__array__().ravel().tolist() for weight in run.model.weights]


class Spoil(keras.callbacks.Callback):
    """Makes a weight NaN behind a step."""

    def __init__(self, step):
        super().__init__()
        self._step = step

    def on_train_batch_end(self, batch, logs=None):
        if int(self.model.optimizer.iterations) == self._step:
            self.model.weights[0].assign([[np.nan]])


def test_folder_is_the_one_that_was_passed(tmp_path):
    assert choose_folder(os.fspath(tmp_path / "here"), "pets.csv") == tmp_path / "here"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("pets", "pets"),
        ("a/b/pets.csv.gz", "pets"),
        ("pets/", "pets"),
        (".hidden", "run"),
        (None, "run"),
        (["a.csv", "b.csv"], "run"),
        (3, "run"),
    ],
)
def test_folder_is_named_after_the_data(tmp_path, monkeypatch, source, name):
    monkeypatch.chdir(tmp_path)
    assert os.fspath(choose_folder(None, source)) == f"runs/{name}"
    (tmp_path / "runs" / name).mkdir(parents=True)
    (tmp_path / "runs" / f"{name}-2").mkdir()
    assert os.fspath(choose_folder(None, source)) == f"runs/{name}-3"


def test_folder_is_named_after_the_folder_of_an_opened_data_set(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert os.fspath(choose_folder(None, data)) == "runs/lines"


def test_folder_in_which_nothing_came_to_be_is_gone(tmp_path):
    folder = tmp_path / "runs" / "one"
    with claim_folder(folder, may_hold=False):
        assert (folder / "owner.json").is_file()
    assert not folder.exists()
    with claim_folder(folder, may_hold=False):
        (folder / "kept").write_bytes(b"")
    assert list_names(folder) == ["kept"]


def test_folder_that_holds_something_is_refused_unless_it_may(tmp_path):
    (tmp_path / "mine").write_bytes(b"")
    with pytest.raises(PathError) as caught, claim_folder(tmp_path, may_hold=False):
        pass
    assert mentions(caught.value, f"{tmp_path} resume=True")
    with claim_folder(tmp_path, may_hold=True):
        pass
    assert list_names(tmp_path) == ["mine"]


def test_file_instead_of_a_folder_is_refused(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"")
    with (
        raises_with(PathError, advice=containing("resume=True")),
        claim_folder(file, may_hold=False),
    ):
        pass
    with raises_with(WriteError, "(File exists)"), claim_folder(file, may_hold=True):
        pass


def test_folder_that_another_run_has_is_refused(tmp_path):
    lock = WriterLock(tmp_path)
    try:
        with raises_with(BusyError, f"process {os.getpid()}"), claim_folder(tmp_path, may_hold=True):
            pass
    finally:
        lock.release()


def test_folder_is_free_again_after_an_error(data, tmp_path):
    with raises_with(OptionError, "epochs", expected=containing(1), got="0"):
        train(make(), data, tmp_path / "run", epochs=0)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("given", "facts"),
    [
        (3, "source"),
        ({"x": [1]}, "target column target=NAME"),
        (np.zeros(1), "{'values': array}"),
    ],
)
def test_data_that_cannot_be_trained_on_is_refused(tmp_path, given, facts):
    with raises_with(OptionError, facts):
        train(make(), given, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_nothing_to_train_on_is_refused(tmp_path):
    with raises_with(StateError, f"{tmp_path} resume=True"):
        plan_training(TrainJob(options=TrainCall(resume=True)), tmp_path)


def test_option_that_does_not_exist_is_refused(data, tmp_path):
    with raises_with(OptionError, got="'epoch'", advice=containing("'epochs'")):
        train(make(), data, tmp_path / "run", epoch=3)


def test_target_may_be_named_when_the_data_does_not(tmp_path):
    path = tmp_path / "set"
    ps.convert({"x": np.arange(8.0), "y": np.arange(8.0)}, path, split="train=1.0")
    plan = plan_training(TrainJob(data=path, options=TrainCall(target="y")), tmp_path / "run")
    assert list(plan.pipeline.targets) == ["y"]
    with raises_with(ps.errors.UnknownNameError, field="z", got="'z'"):
        plan_training(TrainJob(data=path, options=TrainCall(target="z")), tmp_path / "run")


@pytest.mark.parametrize("name", ["validation", "dev"])
def test_only_split_is_not_validated_with_too(tmp_path, name):
    table = {"x": np.arange(8.0), "y": np.arange(8.0), "part": [name] * 8}
    data = ps.convert(table, tmp_path / "set", target="y", split_by="part")
    plan = plan_training(TrainJob(data=data), tmp_path / "run")
    assert plan.make_loaders().validation is None


def test_resume_of_nothing_starts_a_new_run_and_completes_it(data, tmp_path):
    folder = tmp_path / "run"
    listener = Listener()
    run = train(make(), data, folder, resume=True, watcher=listener)
    assert listener.notes == [containing("compiled", "optimizer")]
    assert [row["step"] for row in run.history] == [3, 6]
    assert [each for each in list_names(folder) if each != "logs"] == [
        "checkpoints",
        "fields.json",
        "history.csv",
        "pipeline.json",
        "run.yaml",
        "state.json",
        "weights.safetensors",
    ]
    assert json.loads((folder / "state.json").read_bytes())["status"] == "finished"
    assert run.data == data.paths[0].parent.resolve()
    # A run of one's own model asks for it again, and takes the rest from its folder.
    with raises_with(OptionError, "model model=build"):
        plan_training(TrainJob(options=TrainCall(resume=True)), folder)
    again = plan_training(TrainJob(options=TrainCall(resume=True, model=make())), folder)
    assert (again.options.epochs, again.options.seed, again.options.batch_size) == (2, 3, 16)
    assert again.data.paths == data.paths
    assert again.pipeline.fingerprint() == run.pipeline.fingerprint()


def test_run_killed_before_its_end_was_recorded_has_its_best_weights(data, tmp_path, monkeypatch):
    options = {"epochs": 2}
    whole = train(make(2.6), data, tmp_path / "whole", **options)  # diverges: the first epoch is the best
    assert whole.history[0]["val_loss"] < whole.history[1]["val_loss"]

    def kill(*_):
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(run_writer, "save_weights", kill)
        with pytest.raises(RuntimeError, match="killed"):
            train(make(2.6), data, tmp_path / "cut", **options)
    listener = Listener()
    cut = train(make(2.6), data, tmp_path / "cut", resume=True, watcher=listener, **options)
    assert list_weights(cut) == list_weights(whole)
    assert mentions(listener.ends[0], "epoch 1 val_data_loss")


def test_run_interrupted_within_a_step_and_resumed_ends_with_the_same_weights(data, tmp_path):
    class Interrupted(keras.Model):
        """Gets a signal while a step is done: Python hears of it behind the step."""

        left = 0

        def train_step(self, batch):
            logs = super().train_step(batch)
            Interrupted.left -= 1
            if Interrupted.left == 0:
                signal.raise_signal(signal.SIGINT)  # to this thread: Python must not lose it in a destructor
            return logs

    def make_eager():
        return make(kind=Interrupted, run_eagerly=True)

    whole = train(make_eager(), data, tmp_path / "whole", epochs=1)
    Interrupted.left = 2
    # Where tests run in the background of a shell, nobody hears of this signal.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            train(make_eager(), data, tmp_path / "cut", epochs=1)
    finally:
        signal.signal(signal.SIGINT, handler)
    cut = train(make_eager(), data, tmp_path / "cut", epochs=1, resume=True)
    assert list_weights(cut) == list_weights(whole)
    assert [row["step"] for row in cut.history] == [3]


def test_weights_that_the_last_step_made_nan_are_reported_with_its_records(data, tmp_path):
    with pytest.raises(NonFiniteError) as caught:
        train(make(), data, tmp_path / "run", epochs=1, callbacks=[Spoil(3)])
    assert (caught.value.epoch, caught.value.step, len(caught.value.records)) == (0, 2, 16)


def test_model_that_penstock_compiled_is_compiled_again(data, tmp_path):
    model = make(rate=None)
    train(model, data, tmp_path / "one", epochs=1)
    options = {"learning_rate": 0.5, "schedule": "cosine", "patience": None}
    run = train(model, data, tmp_path / "two", epochs=1, **options)
    assert run.history[0]["learning_rate"] == pytest.approx(0.005, rel=0.01)


def test_run_resumes_with_the_model_that_it_began_with(data, tmp_path):
    def build(dropout):
        model = make()
        model.built_from = fill_in_preset(ps.options.ModelOptions(dropout=dropout))
        return model

    class Kill(keras.callbacks.Callback):
        is_on = True

        def on_train_batch_end(self, batch, logs=None):
            if Kill.is_on and batch == 1:
                raise InterruptedError

    options = {"epochs": 1, "checkpoint_steps": 1, "callbacks": [Kill()]}
    with pytest.raises(InterruptedError):
        train(build(0.1), data, tmp_path / "run", **options)
    Kill.is_on = False
    with raises_with(StateError, expected=containing("'dropout'", "0.1"), got=containing("'dropout'", "0.6")):
        train(build(0.6), data, tmp_path / "run", resume=True, **options)
    # What leaves the weights as they are may be another.
    free = {"num_threads": 0, "cache": "memory", "checkpoint_steps": 7, "checkpoint_seconds": 1}
    run = train(build(0.1), data, tmp_path / "run", resume=True, **{**options, **free})
    assert [row["step"] for row in run.history] == [3]


@pytest.mark.parametrize("is_built", [False, True])
def test_random_draws_after_a_run_are_those_without_it(data, tmp_path, is_built):
    def draw():
        numbers = [random.random(), float(np.random.rand())]  # noqa: S311
        return [*numbers, float(keras.random.uniform(())), float(keras.random.normal(()))]

    keras.utils.set_random_seed(9)
    wanted = [draw() for _ in range(2)]
    model = None if is_built else make()
    keras.utils.set_random_seed(9)
    train(model, data, tmp_path / "run", epochs=1)
    assert [draw() for _ in range(2)] == wanted


def test_history_has_the_validation_loss_with_penalties_and_without(data, tmp_path):
    run = train(None, data, tmp_path / "run", epochs=1, model_options=ps.options.ModelOptions(l2=0.01))
    weights = [each for each in run.model.trainable_variables if each.regularizer is not None]
    penalty = sum(float(each.regularizer(each)) for each in weights)
    row = run.history[0]
    assert penalty > 0
    assert row["val_loss"] - row["val_data_loss"] == pytest.approx(penalty, rel=1e-3)
    assert run.config.train.monitor == "val_data_loss"
    assert row["waiting_seconds"] >= 0
    assert row["validation_seconds"] > 0
    assert row["waiting_seconds"] + row["validation_seconds"] <= row["seconds"]


def test_nearly_equal_texts_in_two_splits_are_noted_once_for_a_new_run(data, tmp_path, monkeypatch):
    seen = []

    def note(given, pipeline):
        seen.append((given.splits, set(pipeline.inputs)))
        yield "nearly the same text"

    monkeypatch.setattr(tuner, "note_repeated_texts", note)
    listener = Listener()
    train(make(), data, tmp_path / "run", watcher=listener)
    assert listener.notes.count("nearly the same text") == 1
    assert [inputs for _, inputs in seen] == [{"x"}]
    train(make(), data, tmp_path / "run", watcher=Listener(), resume=True)
    assert len(seen) == 1
