"""`loader.to_keras()`: which batches `fit`, `evaluate` and `predict` see, and where the loader is then."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from local_threads import local_threads
from penstock.transform.pipeline import Pipeline
from pets_data import freeze, make_loader, make_pipeline, read_epochs, write_pets
from raising import containing, raises_with

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
keras = pytest.importorskip("keras")
from keras.src.trainers.epoch_iterator import EpochIterator  # noqa: E402

NUM_RECORDS = 26
NUM_STEPS = 7


@pytest.fixture(scope="module")
def pets(tmp_path_factory) -> ps.Dataset:
    return write_pets(tmp_path_factory.mktemp("narrow") / "pets", NUM_RECORDS)


@pytest.fixture(scope="module")
def wide(tmp_path_factory) -> ps.Dataset:
    return write_pets(tmp_path_factory.mktemp("wide") / "pets", NUM_RECORDS, is_wide=True)


class Seeing(keras.Model):
    """Keeps what it is trained on, what it is tested on, and what it predicts from."""

    def begin(self, **options: Any) -> Seeing:
        self.trained: list[Any] = []
        self.tested: list[Any] = []
        self.compile("sgd", "binary_crossentropy", **{"run_eagerly": True, **options})
        return self

    def train_step(self, data: Any) -> Any:
        self.trained.append(freeze(data))
        return super().train_step(data)

    def test_step(self, data: Any) -> Any:
        self.tested.append(freeze(data))
        return super().test_step(data)


def make_model(**options: Any) -> Seeing:
    keras.utils.set_random_seed(0)
    number, kind = (
        keras.Input((), dtype=each, name=name) for name, each in (("number", "int64"), ("kind", "int32"))
    )
    age = keras.Input((), name="age")
    joined = keras.ops.stack([keras.ops.cast(each, "float32") for each in (number, age, kind)], axis=1)
    adopted = keras.layers.Dense(1, "sigmoid")(joined / 30)
    return Seeing({"number": number, "age": age, "kind": kind}, adopted).begin(**options)


def wanted(loader: Any, num_epochs: int) -> list[Any]:
    """What a model with one output is to see: its target and weight without a dict around them."""
    return [(batch[0], *(part["adopted"] for part in batch[1:])) for batch in read_epochs(loader, num_epochs)]


class StateAt(keras.callbacks.Callback):
    """Takes the state of a loader behind a step, and ends the training there."""

    def __init__(self, loader: Any, num_steps: int) -> None:
        super().__init__()
        self.loader, self.steps_left = loader, num_steps

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.steps_left -= 1
        if self.steps_left == 0:
            self.state = self.loader.state_dict()
            self.weights = [np.copy(each) for each in self.model.get_weights()]
            self.model.stop_training = True


@pytest.mark.parametrize(("batch_size", "num_steps"), [(4, 7), (13, 2), (26, 1)])
@pytest.mark.parametrize("is_followed", [True, False])
def test_fit_sees_epochs_of_loader_in_order(pets, batch_size, num_steps, is_followed) -> None:
    loader = make_loader(pets, batch_size=batch_size)
    other = make_loader(pets, batch_size=batch_size, seed=5)
    feed, model = loader.to_keras(), make_model()
    callbacks = [feed.callback] if is_followed else []
    model.fit(feed, epochs=3, verbose=0, validation_data=other.to_keras(), callbacks=callbacks)
    assert model.trained == wanted(loader, 3)
    assert model.tested == wanted(other, 3)
    assert loader.position == other.position == (2, num_steps)
    model.fit(feed, initial_epoch=3, epochs=4, verbose=0)
    assert model.trained == wanted(loader, 4)


def test_fit_of_a_compiled_graph_learns_the_same(pets) -> None:
    losses = []
    for run_eagerly in (True, False):
        seeing = make_model()
        model = keras.Model(seeing.input, seeing.output)
        model.compile("sgd", "binary_crossentropy", run_eagerly=run_eagerly)
        losses.append(model.fit(make_loader(pets).to_keras(), epochs=2, verbose=0).history["loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_weights_and_static_shapes_of_padded_batches_reach_the_model(pets) -> None:
    loader = make_loader(pets, last="pad")
    feed, model = loader.to_keras(), make_model()
    assert feed.batch_size == 4
    model.fit(feed, verbose=0)
    assert model.trained == wanted(loader, 1)
    dtype, shape, weights = model.trained[-1][2]
    assert (dtype, shape) == ("<f4", (4,))
    assert np.frombuffer(weights, dtype).tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("is_followed", [True, False])
def test_steps_per_epoch_cut_epochs_without_loss(pets, is_followed) -> None:
    loader = make_loader(pets, last="drop")  # 6 batches
    feed, model = loader.to_keras(), make_model()
    callbacks = [feed.callback] if is_followed else []
    model.fit(feed, epochs=5, steps_per_epoch=3, verbose=0, callbacks=callbacks)
    assert model.trained == wanted(loader, 3)[:15]
    assert loader.position == (2, 3)


def test_endless_loader_feeds_steps_across_epochs(pets) -> None:
    loader = make_loader(pets, repeat=None)
    feed, model = loader.to_keras(), make_model()
    assert feed.num_batches is None
    model.fit(feed, epochs=2, steps_per_epoch=5, verbose=0)
    assert loader.position == (1, 3)
    model.fit(feed, epochs=1, steps_per_epoch=5, verbose=0, callbacks=[feed.callback])
    assert model.trained == wanted(loader, 3)[:15]
    assert loader.position == (2, 1)


def test_repeated_epochs_are_one_epoch_of_keras(pets) -> None:
    loader = make_loader(pets, repeat=2)
    feed, model = loader.to_keras(), make_model()
    model.fit(feed, epochs=2, verbose=0)
    assert model.trained == wanted(loader, 4)


@pytest.mark.parametrize("is_followed", [True, False])
def test_several_steps_per_execution_end_with_the_epoch(pets, is_followed) -> None:
    loader = make_loader(pets)
    feed, model = loader.to_keras(), make_model(steps_per_execution=3)
    callbacks = [feed.callback] if is_followed else []
    model.fit(feed, epochs=2, verbose=0, callbacks=callbacks)
    assert model.trained == wanted(loader, 2)
    assert loader.position == (1, NUM_STEPS)


def test_batches_of_buckets_are_fed_once_and_in_order(wide) -> None:
    pipeline = make_pipeline(wide, photo=None, tokens=None)
    loader = make_loader(wide, pipeline, bucket_by="tokens", max_tokens=8, bucket_records=8)
    lengths = [loader.num_steps(epoch) for epoch in range(4)]
    assert len(set(lengths)) > 1
    feed, model = loader.to_keras(), make_model()
    model.fit(feed, epochs=3, verbose=0)
    assert len(model.trained) == 3 * lengths[0]
    assert model.trained == wanted(loader, 4)[: 3 * lengths[0]]


@pytest.fixture(scope="module")
def whole(pets) -> Seeing:
    """A model that was trained for three epochs of three batches, uninterrupted."""
    model = make_model()
    model.fit(make_loader(pets, batch_size=9).to_keras(), epochs=3, verbose=0)
    return model


@pytest.mark.parametrize("num_taken", range(1, 9))
def test_resumed_fit_sees_the_rest_byte_for_byte(pets, whole, num_taken) -> None:
    first = make_model()
    stopped = make_loader(pets, batch_size=9)
    taking = StateAt(stopped, num_taken)
    first.fit(stopped.to_keras(), epochs=3, verbose=0, callbacks=[taking])
    assert (taking.state["epoch"] * 3 + taking.state["step"]) == num_taken

    fresh = make_loader(pets, batch_size=9, num_threads=1)
    fresh.load_state_dict(taking.state)
    feed, second = fresh.to_keras(), make_model()
    second.set_weights(taking.weights)
    second.fit(feed, initial_epoch=num_taken // 3, epochs=3, verbose=0, callbacks=[feed.callback])
    assert first.trained + second.trained == whole.trained
    assert fresh.position == (2, 3)
    assert [each.tobytes() for each in second.get_weights()] == [
        each.tobytes() for each in whole.get_weights()
    ]


def test_resumed_fit_without_callback_sees_the_same_with_a_warning(pets) -> None:
    loader = make_loader(pets)
    loader.load_state_dict(loader.state_at(5, 1))
    model = make_model()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(loader.to_keras(), initial_epoch=1, epochs=3, verbose=0)
    assert any("ran out of data" in str(each.message) for each in caught)
    assert model.trained == wanted(loader, 3)[NUM_STEPS + 5 :]
    assert loader.position == (2, NUM_STEPS)


def test_resumed_fit_stops_when_asked(pets) -> None:
    loader = make_loader(pets)
    loader.load_state_dict(loader.state_at(5, 1))
    feed, model = loader.to_keras(), make_model()
    stopping = StateAt(loader, 2)  # where the first, short epoch ends
    model.fit(feed, initial_epoch=1, epochs=3, verbose=0, callbacks=[stopping, feed.callback])
    assert loader.position == (1, NUM_STEPS)
    stopping = StateAt(loader, 3)
    model.fit(feed, initial_epoch=2, epochs=4, verbose=0, callbacks=[feed.callback, stopping])
    assert loader.position == (2, 3)


def test_fit_with_callback_continues_where_the_last_was_stopped(pets) -> None:
    loader = make_loader(pets)
    feed, model = loader.to_keras(), make_model()
    model.fit(feed, epochs=2, verbose=0, callbacks=[feed.callback, StateAt(loader, 3)])
    assert not local_threads()
    model.fit(feed, epochs=2, verbose=0, callbacks=[feed.callback])
    assert model.trained == wanted(loader, 2)


def test_fit_without_callback_begins_a_stopped_epoch_anew(pets) -> None:
    loader = make_loader(pets)
    feed, model = loader.to_keras(), make_model()
    model.fit(feed, epochs=2, verbose=0, callbacks=[StateAt(loader, 3)])
    assert loader.position == (0, 3)
    model.fit(feed, epochs=1, verbose=0)
    assert model.trained == wanted(loader, 1)[:3] + wanted(loader, 1)


def test_validation_steps_see_the_same_batches_each_time(pets) -> None:
    loader, other = make_loader(pets), make_loader(pets, seed=5)
    model = make_model()
    model.fit(loader.to_keras(), epochs=2, verbose=0, validation_data=other.to_keras(), validation_steps=2)
    assert model.tested == wanted(other, 1)[:2] * 2


def test_evaluate_and_predict_see_every_record_once(pets) -> None:
    loader = make_loader(pets, shuffle=False)
    feed, model = loader.to_keras(), make_model()
    model.evaluate(feed, verbose=0)
    assert model.tested == wanted(loader, 1)
    rows = pets["train"].columns(fields=["number"])["number"].values
    predicted = model.predict(feed, verbose=0)
    inputs = [inputs for inputs, *_ in loader.read(0)]
    alone = [model(each).numpy() for each in inputs]
    assert np.array_equal(np.concatenate([each["number"] for each in inputs]), rows)
    assert np.allclose(predicted, np.concatenate(alone))


def test_several_targets_are_dicts_with_their_weights(tmp_path) -> None:
    roles = {"age": "input", "kind": "target", "size": "target", "trust": "weight"}
    fields = {name: ps.fields.Number("float32", role=role) for name, role in roles.items()}
    columns = {name: np.arange(10, dtype=np.float32) + at for at, name in enumerate(roles)}
    pets = ps.convert(columns, tmp_path / "pets", fields=fields, split="train=1.0")
    loader = make_loader(pets, Pipeline.fit(pets))
    age = keras.Input((), name="age")
    outputs = {name: keras.layers.Dense(1, name=name)(age[:, None]) for name in ("kind", "size")}
    model = Seeing({"age": age}, outputs).begin()
    model.compile("sgd", {"kind": "mse", "size": "mae"}, run_eagerly=True)
    model.fit(loader.to_keras(), verbose=0)
    assert model.trained == read_epochs(loader, 1)
    assert [set(part) for part in model.trained[0]] == [{"age"}, {"kind", "size"}, {"kind", "size"}]


def test_records_without_targets_are_predicted(tmp_path) -> None:
    columns = {"age": np.arange(10, dtype=np.float32)}
    pets = ps.convert(columns, tmp_path / "pets", split="train=1.0")
    loader = make_loader(pets, Pipeline.fit(pets, age={"kind": "keep"}), shuffle=False, last="pad")
    age = keras.Input((), name="age")
    model = keras.Model({"age": age}, 2 * age)
    ages = np.concatenate([inputs["age"] for inputs, *_ in loader.read(0)])
    assert model.predict(loader.to_keras(), verbose=0).tolist() == (2 * ages).tolist()


def test_loader_error_ends_fit_with_its_text(tmp_path) -> None:
    pets = write_pets(tmp_path / "pets", NUM_RECORDS)
    pipeline = make_pipeline(pets)
    (shard,) = (tmp_path / "pets").glob("*.tfrecord")
    content = bytearray(shard.read_bytes())
    content[-20] ^= 1
    shard.write_bytes(content)
    loader = ps.open(tmp_path / "pets")["train"].loader(pipeline, batch_size=4)
    feed, model = loader.to_keras(), make_model()
    with pytest.raises(Exception, match=shard.name):
        model.fit(feed, verbose=0, callbacks=[feed.callback])
    assert isinstance(loader.last_error, ps.errors.CorruptRecordError)
    assert loader.last_error.record == NUM_RECORDS - 1
    assert loader.position == (0, NUM_STEPS - 1)
    assert not local_threads()


class AheadIterator(EpochIterator):
    """Fetches one batch ahead, as Keras does on JAX's accelerators."""

    def _get_iterator(self) -> Any:
        return self._hold_back(self.data_adapter.get_jax_iterator())

    def _hold_back(self, batches: Any) -> Any:
        held = next(batches)
        for batch in batches:
            yield held
            held = batch
        yield held


@pytest.mark.parametrize("kind", [EpochIterator, AheadIterator])
@pytest.mark.parametrize("is_built", [True, False])
@pytest.mark.parametrize("batch_size", [4, 13, 26])
def test_backends_that_build_from_a_first_batch_see_every_epoch(pets, kind, is_built, batch_size) -> None:
    loader = make_loader(pets, batch_size=batch_size)
    iterator, seen = kind(x=loader.to_keras()), []
    if not is_built:
        next(iter(iterator))
    iterator.reset()
    for _ in range(3):
        for _, _, batches in iterator:
            seen += map(freeze, batches)
    assert seen == wanted(loader, 3)


def test_lists_are_refused_where_the_backend_has_none(wide) -> None:
    pipeline = make_pipeline(wide, tokens={"kind": "keep", "ragged": True})
    feed = make_loader(wide, pipeline).to_keras()
    facts = {"what": containing("'tokens'", "Keras"), "expected": containing("array")}
    with raises_with(ps.errors.OptionError, **facts):
        feed.get_jax_iterator()


TWO_DEVICES = """
import sys
from pathlib import Path
import keras
import tensorflow as tf
from pets_data import make_loader, write_pets

(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
pets = write_pets(Path(sys.argv[1]), 28)
seen, places = [], []

class Seeing(keras.Model):
    def train_step(self, data):
        tf.py_function(lambda numbers: seen.extend(numbers.numpy().tolist()), [data[0]["number"]], [])
        return super().train_step(data)

class Noting(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        places.append(loader.position)

with strategy.scope():
    inputs = {name: keras.Input((), name=name) for name in ("number", "age", "kind")}
    model = Seeing(inputs, keras.layers.Dense(1)(inputs["age"][:, None]))
    model.compile("sgd", "mse")
for batch_size, num_steps in ((4, 7), (14, 2), (28, 1)):
    for is_followed in (True, False):
        loader = make_loader(pets, batch_size=batch_size)
        feed = loader.to_keras()
        seen.clear(), places.clear()
        callbacks = [feed.callback, Noting()] if is_followed else []
        model.fit(feed, epochs=3, verbose=0, callbacks=callbacks)
        numbers = [inputs["number"].tolist() for epoch in range(3) for inputs, *_ in loader.read(epoch)]
        for each in numbers:  # the order of the devices is theirs
            assert sorted(seen[:len(each)]) == sorted(each), (batch_size, is_followed)
            del seen[:len(each)]
        assert not seen
        if is_followed:
            assert places == [(epoch, step + 1) for epoch in range(3) for step in range(num_steps)]
print("as wanted")
"""


def test_fit_on_several_devices_sees_epochs_in_order(tmp_path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.fspath(Path(__file__).parents[1])}
    command = [sys.executable, "-c", TWO_DEVICES, os.fspath(tmp_path / "pets")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "as wanted\n", done.stderr
