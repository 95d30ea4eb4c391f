"""`loader.to_keras()` on JAX: Keras does not wait after each step, and the loader's state is still exact."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("keras")
pytest.importorskip("jax")

# The steps only note their batches: the tests compare the batches, and the position of the loader.
SETUP = """
import sys, threading, warnings
from pathlib import Path
from local_threads import local_threads
import jax.numpy as jnp
import keras
from keras.src.backend.jax.trainer import JAXEpochIterator
from keras.src.callbacks import callback_list
from keras.src.trainers.epoch_iterator import EpochIterator
from pets_data import make_loader, write_pets

warnings.simplefilter("error")
pets = write_pets(Path(sys.argv[1]), 26)

def start_at_first_batch(self):
    yield from self.data_adapter.get_jax_iterator()

def fetch_before_step(self):
    first, last, batches = EpochIterator.__next__(self)
    return first, last, iter(batches)

take_step = JAXEpochIterator.__next__
KINDS = {  # what Keras does on a CPU, on one accelerator, on several, and with torch
    "cpu": lambda self: self.data_adapter.get_jax_iterator(),
    "ahead": lambda self: self._one_batch_ahead_iterator(self.data_adapter.get_jax_iterator()),
    "distributed": start_at_first_batch,
    "torch": lambda self: self.data_adapter.get_numpy_iterator(),
}

def make_model(seen, steps_per_execution=1):
    inputs = {name: keras.Input((), name=name) for name in ("number", "age", "kind")}
    outputs = keras.layers.Dense(1)(keras.ops.expand_dims(inputs["age"], 1))
    model = keras.Model(inputs, outputs)
    model.compile("sgd", "mse", steps_per_execution=steps_per_execution)

    def train(state, iterator):
        for number in range(steps_per_execution):
            try:
                seen.append(next(iterator)[0]["number"].tolist())
            except StopIteration:
                if number == 0:
                    raise
        return {"loss": jnp.float32(0)}, state

    model.train_function = train
    return model

def read(loader, num_epochs):
    return [inputs["number"].tolist() for epoch in range(num_epochs) for inputs, *_ in loader.read(epoch)]

class Places(keras.callbacks.Callback):
    def __init__(self, loader):
        super().__init__()
        self.loader, self.begins, self.ends = loader, [], []

    def on_train_batch_begin(self, batch, logs=None):
        self.begins.append(self.loader.position)

    def on_test_begin(self, logs=None):
        self.ends.append(self.loader.position)

    def on_epoch_end(self, epoch, logs=None):
        self.ends.append(self.loader.position)

class PlacesAtStepEnd(Places):
    def on_train_batch_end(self, batch, logs=None):
        self.ends.append(self.loader.position)
"""

# In a separate file, so that a failed assertion shows its line.
CHECKS = """
from setup_jax import *

# The logs of steps, which wait for the device, are read in other threads than the thread of `fit`.
# This comes first: the threads of a run that fails, below, may end later.
threads = []
make_logs = callback_list.python_utils.pythonify_logs

def note(logs):
    if logs:
        threads.append(threading.get_ident())
    return make_logs(logs)

callback_list.python_utils.pythonify_logs = note
loader = make_loader(pets)
feed = loader.to_keras()
make_model([]).fit(feed, epochs=2, verbose=0, callbacks=[feed.callback])
assert len([each for each in threads if each != threading.get_ident()]) == 14, len(threads)
callback_list.python_utils.pythonify_logs = make_logs

for kind, get_iterator in KINDS.items():
    JAXEpochIterator._get_iterator = get_iterator
    JAXEpochIterator.__next__ = fetch_before_step if kind == "torch" else take_step
    for batch_size, num_steps in ((4, 7), (13, 2), (26, 1)):
        case = (kind, batch_size)

        # Whole epochs, with a validation at the end of each.
        seen, loader = [], make_loader(pets, batch_size=batch_size)
        feed, places, model = loader.to_keras(), Places(loader), make_model(seen)
        held = make_loader(pets, batch_size=batch_size, seed=5).to_keras()
        model.fit(feed, epochs=3, validation_data=held, verbose=0, callbacks=[feed.callback, places])
        assert seen == read(loader, 3), case
        steps = [(epoch, step) for epoch in range(3) for step in range(num_steps)]
        normal = [(at + 1, 0) if step == loader.num_steps(at) else (at, step) for at, step in places.begins]
        assert normal == steps, (case, places.begins)
        ends = [(epoch, num_steps) for epoch in range(3) for _ in range(2)]
        assert places.ends == ends, (case, places.ends)

        # A callback for which Keras waits sees the state after each step.
        seen, loader = [], make_loader(pets, batch_size=batch_size)
        feed, places, model = loader.to_keras(), PlacesAtStepEnd(loader), make_model(seen)
        model.fit(feed, epochs=2, verbose=0, callbacks=[feed.callback, places])
        expected = [(epoch, step + 1) for epoch in range(2) for step in [*range(num_steps), num_steps - 1]]
        assert places.ends == expected, (case, places.ends)

        # Each position that a run can resume at; a further fit continues after it.
        for taken in range(1, 2 * num_steps):
            seen, loader = [], make_loader(pets, batch_size=batch_size)
            epoch, step = divmod(taken, num_steps)
            loader.load_state_dict(loader.state_at(step, epoch))
            feed, model = loader.to_keras(), make_model(seen)
            model.fit(feed, initial_epoch=epoch, epochs=3, verbose=0, callbacks=[feed.callback])
            assert seen == read(loader, 3)[taken:], (case, taken)
            assert loader.position == (2, num_steps), (case, taken)
            model.fit(feed, epochs=1, verbose=0, callbacks=[feed.callback])
            assert seen == read(loader, 4)[taken:], (case, taken)

    # Several steps per execution, the last of them incomplete; also in a resumed epoch.
    for taken in (0, 2, 5) if kind != "torch" else ():  # which does one step at a time
        seen, loader = [], make_loader(pets)
        loader.load_state_dict(loader.state_at(taken, 0))
        feed, model = loader.to_keras(), make_model(seen, steps_per_execution=3)
        model.fit(feed, epochs=2, verbose=0, callbacks=[feed.callback])
        assert seen == read(loader, 2)[taken:], (kind, taken)
        assert loader.position == (1, 7), (kind, taken)

    # Epochs that are cut: Keras starts a new iteration after six batches, the batches of one epoch.
    seen, loader = [], make_loader(pets, last="drop")
    feed, model = loader.to_keras(), make_model(seen)
    model.fit(feed, epochs=5, steps_per_epoch=3, verbose=0, callbacks=[feed.callback])
    assert seen == read(loader, 3)[:15], kind
    assert loader.position == (2, 3), kind

    # An endless loader.
    seen, loader = [], make_loader(pets, repeat=None)
    feed, model = loader.to_keras(), make_model(seen)
    for _ in range(2):
        model.fit(feed, epochs=2, steps_per_epoch=4, verbose=0, callbacks=[feed.callback])
    assert seen == read(loader, 3)[:16], kind
    assert loader.position == (2, 2), kind

    # A training that another callback stops continues at the next batch.
    class Stop(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            self.model.stop_training = batch == 2

    seen, loader = [], make_loader(pets)
    feed, model = loader.to_keras(), make_model(seen)
    model.fit(feed, epochs=2, verbose=0, callbacks=[feed.callback, Stop()])
    assert (loader.position, len(seen)) == ((0, 3), 3), kind
    assert not local_threads(), kind
    model.fit(feed, epochs=2, verbose=0, callbacks=[feed.callback])
    assert seen == read(loader, 2), kind

    # A step that fails is not counted, also not by a later evaluation.
    seen, loader = [], make_loader(pets)
    feed, model = loader.to_keras(), make_model(seen)
    train = model.train_function

    def fail(state, iterator):
        if len(seen) == 4:
            raise KeyError("step")
        return train(state, iterator)

    model.train_function = fail
    try:
        model.fit(feed, epochs=1, verbose=0, callbacks=[feed.callback])
    except KeyError:
        assert loader.position == (0, 4), kind
        model.evaluate(make_loader(pets, seed=5).to_keras(), verbose=0, callbacks=[feed.callback])
        assert loader.position == (0, 4), kind
    else:
        raise AssertionError(kind)

# Keras may raise another error than the one that ended the batches: the loader keeps it.
loader = make_loader(pets, seed=5)
feed = loader.to_keras()
for shard in Path(sys.argv[1]).rglob("*.tfrecord"):
    shard.touch()
try:
    make_model([]).fit(feed, epochs=1, verbose=0, callbacks=[feed.callback])
except Exception:
    assert type(loader.last_error).__name__ == "ChangedFileError", loader.last_error
else:
    raise AssertionError("changed files were read")

print("as expected")
"""


def test_state_is_exact_although_keras_does_not_wait_after_each_step(tmp_path) -> None:
    (tmp_path / "setup_jax.py").write_text(SETUP)
    program = tmp_path / "checks.py"
    program.write_text(CHECKS)
    environment = {
        **os.environ,
        "PYTHONPATH": os.fspath(Path(__file__).parents[1]),
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu",
    }
    command = [sys.executable, os.fspath(program), os.fspath(tmp_path / "pets")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "as expected\n", done.stderr[-4000:]
