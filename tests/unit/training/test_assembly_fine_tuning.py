"""Fine-tuning of a pretrained image encoder: two stages, recorded, and resumed exactly."""

import json
import warnings

import keras
import numpy as np
import pytest
import yaml

import penstock as ps
from image_files import png, scene
from penstock.settings.training import TrainOptions
from raising import containing
from training_data import Listener

pytest.importorskip("keras")
from penstock.training.assembly import count_head_epochs

SIZE = 32

# Keras gives NumPy arrays in a deprecated way when it saves weights.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    rows = [{"photo": png(scene(SIZE, SIZE, seed)), "kind": "ab"[seed % 2]} for seed in range(24)]
    folder = tmp_path_factory.mktemp("photos") / "data"
    return ps.convert(rows, folder, target="kind", split="train=0.75,validation=0.25")


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    keras.utils.set_random_seed(1)
    path = tmp_path_factory.mktemp("weights") / "small.weights.h5"
    shape = (SIZE, SIZE, 3)
    model = keras.applications.MobileNet(include_top=False, weights=None, input_shape=shape, pooling="avg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.save_weights(path)
    return path


def train(data, out, weights, **options):
    model = ps.options.ModelOptions(preset="small", image="MobileNet", image_weights=weights)
    given = {"epochs": 2, "batch_size": 8, "watcher": Listener(), "model_options": model, **options}
    return ps.train(data, out=out, **given)


class StoppedError(Exception):
    """Raised in the middle of a run."""


class Stop(keras.callbacks.Callback):
    """Stops a run after some steps, counted over both stages."""

    def __init__(self, num_steps):
        super().__init__()
        self.steps = iter(range(num_steps - 1))  # a number would be part of the checkpoints

    def on_train_batch_end(self, batch, logs=None):
        if next(self.steps, None) is None:
            raise StoppedError


def read_weights(run):
    return [np.asarray(each) for each in run.model.get_weights()]


def test_head_has_half_of_the_epochs():
    assert [count_head_epochs(TrainOptions(epochs=number)) for number in (1, 2, 5, 10)] == [1, 1, 2, 5]


def test_encoder_is_fixed_in_the_first_stage_and_trained_in_the_second(photos, weights, tmp_path):
    run = train(photos, tmp_path / "run", weights)
    tables = yaml.safe_load((run.folder / "run.yaml").read_text())
    head, every = tables["facts"]["stages"]
    assert (head["trained"], head["epochs"], head["learning_rate"]) == ("head", 1, 2e-3)
    assert (every["trained"], every["epochs"]) == ("all", 2)
    assert every["learning_rate"] == pytest.approx(1e-4)
    assert run.history[-1]["learning_rate"] < 1.1e-4

    stored = keras.applications.MobileNet(
        include_top=False, weights=str(weights), input_shape=(SIZE, SIZE, 3), pooling="avg"
    )
    first = ps.open_run(run.folder / "head").model.get_layer("photo_MobileNet")
    last = run.model.get_layer("photo_MobileNet")
    for before, fixed in zip(stored.get_weights(), first.get_weights(), strict=True):
        assert np.array_equal(before, fixed)
    changed = {
        variable.name
        for variable, before in zip(last.weights, stored.get_weights(), strict=True)
        if not np.array_equal(np.asarray(variable), before)
    }
    again = ps.open_run(run.folder).model
    assert all(map(np.array_equal, again.get_weights(), run.model.get_weights()))
    assert "kernel" in changed
    assert not changed & {"moving_mean", "moving_variance", "gamma", "beta"}


def build_small(*, weights, input_shape, name="small", **_):
    """Return a model with the kinds of layers that MobileNet has, but few of them."""
    inputs = x = keras.Input(input_shape)
    for layer in (keras.layers.Conv2D(8, 3, 2, use_bias=False), keras.layers.DepthwiseConv2D(3, 2)):
        x = keras.layers.ReLU(6.0)(keras.layers.BatchNormalization()(layer(x)))
    model = keras.Model(inputs, keras.layers.GlobalAveragePooling2D()(x), name=name)
    if weights is not None:
        model.load_weights(weights)
    return model


@pytest.fixture
def small_weights(tmp_path, monkeypatch):
    """Weights of a small encoder in place of MobileNet, which takes seconds for each stage."""
    monkeypatch.setattr(keras.applications, "MobileNet", build_small)
    weights = tmp_path / "small.weights.h5"
    build_small(weights=None, input_shape=(SIZE, SIZE, 3)).save_weights(weights)
    return weights


def test_run_that_stops_in_either_stage_is_resumed_exactly(photos, small_weights, tmp_path):
    weights = small_weights  # resume does not depend on the depth of the encoder
    whole = train(photos, tmp_path / "whole", weights)
    folder = tmp_path / "stopped"
    options = {"checkpoint_steps": 1}
    # Three steps per epoch: the run stops in the first stage, and once resumed again in the second.
    for num_steps, is_head_finished in ((2, False), (3, True)):
        with pytest.raises(StoppedError):
            train(photos, folder, weights, resume=is_head_finished, callbacks=[Stop(num_steps)], **options)
        state = json.loads((folder / "head" / "state.json").read_bytes())
        assert (state["status"] == "finished") == is_head_finished
    again = train(photos, folder, weights, resume=True, callbacks=[Stop(10**6)], **options)
    for found, expected in zip(read_weights(again), read_weights(whole), strict=True):
        assert np.array_equal(found, expected)


class StopBetweenStages(Listener):
    """Stops a run when its first stage is finished."""

    def note(self, text):
        if text.startswith("Second stage"):
            raise StoppedError
        super().note(text)


def test_resume_between_the_stages_does_not_say_that_the_run_is_finished(photos, small_weights, tmp_path):
    with pytest.raises(StoppedError):
        train(photos, tmp_path / "run", small_weights, watcher=StopBetweenStages())
    notes = []
    for _ in range(2):
        listener = Listener()
        run = train(photos, tmp_path / "run", small_weights, resume=True, watcher=listener)
        assert len(run.history) == len(listener.epochs or run.history) == 2
        notes.append([each for each in listener.notes if "finished" in each or "stage" in each])
    assert notes[0] == [containing("First stage", "already finished"), containing("Second stage")]
    assert notes[1] == [containing("The run was already finished")]
