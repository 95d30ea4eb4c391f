"""Training: non-finite losses, kills at any moment, damaged checkpoints, other pipelines, full disks."""

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

import penstock as ps
from penstock.errors import FieldError, NonFiniteError, StateError
from penstock.training.snapshot import copy_array
from penstock.training.tensor_file import read_tensors
from raising import containing, raises_with
from run_tables import read_tables
from training_data import MODEL, OPTIONS, Listener, read_history, train, write_garden

# All runs, also one in another process, have graphs as they are: test_unlabelled_rows.py has optimized ones.
pytestmark = pytest.mark.plain_graphs
WEIGHTS = "weights.safetensors"


@pytest.fixture(scope="module")
def garden(tmp_path_factory):
    return write_garden(tmp_path_factory.mktemp("garden") / "data")


@pytest.fixture(scope="module")
def whole(garden, tmp_path_factory):
    """A run that nothing went wrong with."""
    return train(garden, tmp_path_factory.mktemp("whole") / "run").folder


@pytest.fixture(scope="module")
def rich(garden, tmp_path_factory):
    """Another one, of a model with a layer of every kind."""
    return train(garden, tmp_path_factory.mktemp("rich") / "run", is_rich=True).folder


def assert_same_run(folder, other):
    # The file itself also has the names of layers, which Keras numbers through a process.
    arrays, others = (read_tensors(each / WEIGHTS)[0] for each in (folder, other))
    assert {name: each.tobytes() for name, each in arrays.items()} == {
        name: each.tobytes() for name, each in others.items()
    }
    assert read_history(folder) == read_history(other)
    states = [json.loads((each / "state.json").read_bytes()) for each in (folder, other)]
    assert states[0]["step"] == states[1]["step"]
    assert [state["status"] for state in states] == ["finished", "finished"]
    choices = [read_tables(each / "run.yaml")["facts"].get("choices") for each in (folder, other)]
    assert choices[0] == choices[1]


class InterruptionError(Exception):
    pass


class Interrupt(keras.callbacks.Callback):
    """Ends training at a step as a fault of somebody else's would."""

    def __init__(self, step):
        super().__init__()
        self.left = [step]  # a list of numbers is not resumed

    def on_train_batch_end(self, batch, logs=None):
        self.left[0] -= 1
        if self.left[0] == 0:
            raise InterruptionError


@pytest.fixture(scope="module")
def interrupted(garden, tmp_path_factory):
    """A run that ended after three steps, with two checkpoints."""
    folder = tmp_path_factory.mktemp("interrupted") / "run"
    with pytest.raises(InterruptionError):
        train(garden, folder, callbacks=[Interrupt(3)])
    return folder


@pytest.fixture
def cut(interrupted, tmp_path):
    """A copy of the run that ended after three steps, which a test can change."""
    return shutil.copytree(interrupted, tmp_path / "run")


class Keeper(keras.callbacks.Callback):
    """Keeps the weights behind every step."""

    def __init__(self):
        super().__init__()
        self.kept = []

    def on_train_batch_end(self, batch, logs=None):
        self.kept.append([copy_array(each) for each in self.model.weights])


def write_with_nan(folder, row):
    """Write records, one of them with a NaN, as a data set."""
    signal_values = np.random.default_rng(1).normal(size=(120, 2)).astype(np.float32)
    signal_values[row, 1] = np.nan
    table = {"signal": list(signal_values), "label": (np.arange(120) % 2).astype(np.int64)}
    fields = {"signal": ps.fields.Tensor((2,), "float32"), "label": ps.fields.Category("int64")}
    return ps.convert(table, folder, target="label", fields=fields, split="train=1.0", shuffle=False)


def test_t01_one_nan_in_one_row_stops_at_its_step_and_names_the_record(tmp_path):
    path = str(write_with_nan(tmp_path / "data", row=77).paths[0])
    schema = {
        "signal": ps.fields.Tensor((2,), "float32"),
        "label": ps.fields.Category("int64", role="target"),
    }
    (tmp_path / "alone").mkdir()
    alone = tmp_path / "alone" / "signals.tfrecord"
    alone.write_bytes(Path(path).read_bytes())
    data = ps.open(alone, fields=schema, target="label")
    keeper = Keeper()
    options = {**OPTIONS, "checkpoint_steps": 4, "epochs": 1}
    with pytest.raises(NonFiniteError) as caught:
        ps.train(data, out=tmp_path / "run", callbacks=[keeper], watcher=Listener(), **options)
    error = caught.value
    loader = data["all"].loader(ps.Pipeline.fit(data), batch_size=16, shuffle=True, seed=4)
    steps = [step for step in range(loader.num_steps(0)) if 77 in {place.row for place in loader.where(step)}]
    assert (error.epoch, error.step) == (0, steps[0])
    assert (str(alone), 77) in error.records
    assert len(error.records) == 16
    assert (error.path, error.record, error.field) == (str(alone), 77, "signal")
    assert (error.expected, error.got) == (containing("finite"), containing("nan", 16, "'signal'"))
    # The weights are those before the step, though no checkpoint was there.
    arrays, _ = read_tensors(tmp_path / "run" / WEIGHTS)
    good = keeper.kept[steps[0] - 1]
    assert all(np.isfinite(array).all() for array in arrays.values())
    assert [array.tobytes() for array in arrays.values()] == [array.tobytes() for array in good]
    state = json.loads((tmp_path / "run" / "state.json").read_bytes())
    assert (state["status"], state["step"]) == ("failed", steps[0])


def test_t01_loss_that_overflows_on_sound_records_advises_a_lower_rate(garden, tmp_path):
    pipeline = ps.Pipeline.fit(garden, photo=None, note=None, hours=None)
    number = keras.Input((), name="height")
    kind = keras.Input((), name="kind", dtype="int32")
    hidden = keras.layers.Dense(1)(keras.ops.stack([number, keras.ops.cast(kind, "float32")], axis=-1))
    model = keras.Model({"height": number, "kind": kind}, hidden)
    model.compile(keras.optimizers.SGD(1e30), "mse")
    advice = containing("learning rate")
    with raises_with(NonFiniteError, got=containing("finite"), field=None, advice=advice):
        ps.train(garden, model=model, pipeline=pipeline, out=tmp_path / "run", watcher=Listener(), **OPTIONS)


def test_t02_nan_that_the_manifest_lists_is_named_before_the_first_step(tmp_path):
    data = write_with_nan(tmp_path / "data", row=77)
    with pytest.raises(FieldError) as caught:
        ps.train(data, out=tmp_path / "run", watcher=Listener(), **OPTIONS)
    assert (caught.value.field, caught.value.expected) == ("signal", containing("finite"))
    assert caught.value.got == containing("NaN", "1 of 120", 77)
    assert "signal=None" in caught.value.advice
    assert "signal=Scale(nan='missing')" in caught.value.advice
    assert not (tmp_path / "run").exists()


KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import keras
import tensorflow
from training_data import MODEL, OPTIONS, Listener
import penstock as ps

tensorflow.config.optimizer.set_experimental_options({{"disable_meta_optimizer": True}})

class Kill(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if int(self.model.optimizer.iterations) == {step}:
            os.kill(os.getpid(), signal.SIGKILL)

data = ps.open({data!r})
ps.train(data, out={out!r}, watcher=Listener(), model_options=MODEL, callbacks=[Kill()], **OPTIONS)
"""


def test_t03_run_killed_within_an_epoch_and_resumed_ends_with_the_same_weights(garden, rich, tmp_path):
    folder = tmp_path / "run"
    tests = str(Path(__file__).parent.parent)
    program = KILLED.format(tests=tests, step=9, data=str(garden.paths[0].parent), out=str(folder))
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, timeout=300)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-2000:]
    assert not (folder / WEIGHTS).exists()
    state = json.loads((folder / "state.json").read_bytes())
    assert (state["step"], state["loader"]["step"], state["status"]) == (8, 2, "running")

    class Kill(keras.callbacks.Callback):  # the run was begun with such a one
        pass

    listener = Listener()
    again = ps.train(
        ps.open(garden.paths[0].parent), out=folder, resume=True, watcher=listener, callbacks=[Kill()]
    )
    assert listener.notes == [containing("step 8")]
    assert_same_run(again.folder, rich)


@pytest.mark.parametrize("step", [1, 5, 6, 7])
def test_t03_run_ended_at_any_step_and_resumed_ends_with_the_same_weights(garden, whole, tmp_path, step):
    folder = tmp_path / "run"
    with pytest.raises(InterruptionError):
        train(garden, folder, callbacks=[Interrupt(step)])
    train(garden, folder, callbacks=[Interrupt(0)], resume=True)
    assert_same_run(folder, whole)


# Keras reads its own learning rate by a call that NumPy warns of.
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_t03_callbacks_of_keras_are_resumed_too(garden, tmp_path):
    def make():
        return [
            keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=0, min_delta=10.0),
            keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9),
        ]

    def build():
        with_seed = keras.Sequential(
            [keras.layers.Dropout(0.5, seed=1), keras.layers.Dense(1, kernel_initializer="ones")]
        )
        number = keras.Input((), name="height")
        model = keras.Model({"height": number}, with_seed(number[:, None]))
        model.compile(keras.optimizers.Adam(0.01), "mse")
        return model

    pipeline = ps.Pipeline.fit(garden, photo=None, note=None, hours=None, kind=None)
    given = {**OPTIONS, "epochs": 3, "watcher": Listener()}
    ps.train(
        garden,
        model=build(),
        pipeline=pipeline,
        out=tmp_path / "whole",
        callbacks=[*make(), Interrupt(0)],
        **given,
    )
    with pytest.raises(InterruptionError):
        ps.train(
            garden,
            model=build(),
            pipeline=pipeline,
            out=tmp_path / "cut",
            callbacks=[*make(), Interrupt(9)],
            **given,
        )
    ps.train(
        garden,
        model=build(),
        pipeline=pipeline,
        out=tmp_path / "cut",
        callbacks=[*make(), Interrupt(0)],
        resume=True,
        **given,
    )
    assert_same_run(tmp_path / "cut", tmp_path / "whole")


def test_t04_run_that_ends_while_it_chooses_on_validation_is_resumed(garden, whole, tmp_path, monkeypatch):
    def fail(*_):
        raise InterruptionError

    with monkeypatch.context() as patch:
        patch.setattr("penstock.training.loaders.choose_on_validation", fail)
        with pytest.raises(InterruptionError):
            train(garden, tmp_path / "run")
    with pytest.raises(StateError):
        ps.open_run(tmp_path / "run")
    run = train(garden, tmp_path / "run", resume=True)
    assert_same_run(tmp_path / "run", whole)
    again = train(garden, tmp_path / "run", resume=True)  # finished
    assert run.choices == again.choices == ps.open_run(whole).choices
    assert [choice.records for choice in run.choices.values()] == [len(garden["validation"])]


def test_t04_damaged_checkpoint_gives_way_to_the_one_before(garden, whole, tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(InterruptionError):
        train(garden, folder, callbacks=[Interrupt(7)])
    newest, older = sorted((folder / "checkpoints").iterdir(), reverse=True)
    assert [newest.name, older.name] == ["step-0000000006.safetensors", "step-0000000004.safetensors"]
    data = bytearray(newest.read_bytes())
    data[-5] ^= 1
    newest.write_bytes(data)
    (folder / "checkpoints" / ".tmp-0123").write_bytes(data[:100])  # what a killed writer leaves
    listener = Listener()
    train(garden, folder, callbacks=[Interrupt(0)], resume=True, watcher=listener)
    assert listener.notes == [containing("step 4")]
    assert_same_run(folder, whole)


def test_t04_run_whose_checkpoints_are_all_damaged_is_refused(garden, cut):
    for path in (cut / "checkpoints").iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    with raises_with(StateError, what=containing("checkpoints"), got=containing("2 ", "damaged")):
        train(garden, cut, callbacks=[Interrupt(0)], resume=True)


def test_t09_pipeline_of_another_data_set_beside_weights_is_refused(garden, whole, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("run.yaml", WEIGHTS, "history.csv", "state.json"):
        (folder / name).write_bytes((whole / name).read_bytes())
    form = json.loads((whole / "pipeline.json").read_bytes())
    form["transforms"]["height"]["fitted"]["shift"][0] += 1.0
    (folder / "pipeline.json").write_text(json.dumps(form))
    with raises_with(StateError, path=str(folder / WEIGHTS), what=containing("pipeline.json")):
        ps.open_run(folder)


@pytest.mark.parametrize(
    ("name", "expected", "got"),
    [("seed", 3, 4), ("epochs", 2, 9), ("batch_size", 16, 8)],
)
def test_t09_run_is_not_resumed_with_other_choices(garden, cut, name, expected, got):
    facts = {"expected": containing(expected), "got": containing(got)}
    with raises_with(StateError, what=containing(name), **facts):
        train(garden, cut, callbacks=[Interrupt(0)], resume=True, **{name: got})


def test_t09_run_is_not_resumed_on_another_data_set(garden, cut, tmp_path):
    other = write_garden(tmp_path / "other", height=np.arange(120.0))
    with pytest.raises(StateError, match=r"\b(pipeline|data)\b"):
        train(other, cut, callbacks=[Interrupt(0)], resume=True)


class SmallDisk(keras.callbacks.Callback):
    """Lets no file grow beyond a few bytes during some steps."""

    def __init__(self, steps):
        super().__init__()
        self._steps = steps
        self._num = 0

    def on_train_batch_begin(self, batch, logs=None):
        self._num += 1
        size = 2000 if self._num in self._steps else resource.RLIM_INFINITY
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def on_train_end(self, logs=None):
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def test_t11_disk_that_is_full_for_a_while_ends_no_run(garden, whole, tmp_path):
    listener = Listener()
    folder = tmp_path / "run"
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        train(garden, folder, callbacks=[SmallDisk({3, 4, 5})], watcher=listener)
    finally:
        signal.signal(signal.SIGXFSZ, handler)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    reason = os.strerror(errno.EFBIG)
    assert listener.notes == [containing("step-0000000004.safetensors: ", reason)]
    assert_same_run(folder, whole)
    assert not [path for path in (folder / "checkpoints").iterdir() if path.name.startswith(".tmp")]


JAX = """
import os, sys
os.environ["KERAS_BACKEND"] = "jax"
sys.path.insert(0, {tests!r})
import keras
from training_data import Listener, train
import penstock as ps

class Interrupt(keras.callbacks.Callback):
    def __init__(self, step):
        super().__init__()
        self.left = [step]  # a list of numbers is not resumed

    def on_train_batch_end(self, batch, logs=None):
        self.left[0] -= 1
        if self.left[0] == 0:
            raise KeyError("step")

data = ps.open({data!r})
train(data, {out!r} + "/whole", callbacks=[Interrupt(0)], is_rich={is_rich})
try:
    train(data, {out!r} + "/cut", callbacks=[Interrupt(9)], is_rich={is_rich})
except KeyError:
    train(data, {out!r} + "/cut", callbacks=[Interrupt(0)], is_rich={is_rich}, resume=True)
print(keras.backend.backend())
"""


# JAX takes half a minute to compile recurrent and convolutional layers three times.
@pytest.mark.parametrize("is_rich", [False, pytest.param(True, marks=pytest.mark.long)])
def test_t03_run_resumed_on_jax_ends_with_the_same_weights(garden, tmp_path, is_rich):
    tests = str(Path(__file__).parent.parent)
    data = str(garden.paths[0].parent)
    program = JAX.format(tests=tests, data=data, out=str(tmp_path), is_rich=is_rich)
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=300
    )
    assert done.stdout.endswith("jax\n"), done.stderr[-2000:]
    assert_same_run(tmp_path / "cut", tmp_path / "whole")


def test_run_that_has_ended_is_not_trained_again(garden, whole):
    listener = Listener()
    before = (whole / WEIGHTS).read_bytes()
    again = train(garden, whole, resume=True, watcher=listener)
    assert len(listener.notes) == 1
    assert (whole / WEIGHTS).read_bytes() == before
    assert len(again.history) == 2


def test_model_is_the_same_whatever_random_numbers_were_drawn_before(garden, whole, tmp_path):
    np.random.default_rng()
    keras.utils.set_random_seed(12345)
    run = train(garden, tmp_path / "run")
    assert_same_run(run.folder, whole)
    assert MODEL.preset == "small"
