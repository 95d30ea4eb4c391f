"""The best epoch: its weights are kept, and the run stops when none was better for a while."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from penstock.errors import OptionError
from raising import containing, raises_with

keras = pytest.importorskip("keras")
from penstock.training.callbacks import AveragedWeights, BestEpoch, DataLoss  # noqa: E402
from penstock.training.snapshot import copy_array  # noqa: E402


class Weight:
    """As Keras has them."""

    def __init__(self):
        self.array = np.zeros(2)

    def __array__(self):
        return self.array

    def assign(self, array):
        self.array = np.array(array)


def make(monitor="val_loss", *, is_lower_better=True, patience=None):
    callback = BestEpoch(monitor, is_lower_better=is_lower_better, patience=patience)
    callback.set_model(SimpleNamespace(weights=[Weight()], stop_training=False))
    return callback


def train(callback, values):
    """Let epochs pass, each with weights of its number; return how many there were."""
    for epoch, value in enumerate(values):
        callback.model.weights[0].array[:] = epoch
        callback.on_epoch_end(epoch, {"loss": 1.0, "val_loss": value})
        if callback.model.stop_training:
            return epoch + 1
    return len(values)


def restored(callback):
    callback.restore()
    return callback.model.weights[0].array.tolist()


def test_lowest_is_best_and_its_weights_come_back():
    callback = make()
    assert train(callback, [3.0, 1.0, 2.0, 1.5]) == 4
    assert (callback.best, callback.best_epoch, callback.num_waited) == (1.0, 1, 2)
    assert restored(callback) == [1.0, 1.0]


def test_highest_is_best_where_more_is_better():
    callback = make(is_lower_better=False)
    train(callback, [0.1, 0.9, 0.5])
    assert (callback.best, callback.best_epoch) == (0.9, 1)
    assert restored(callback) == [1.0, 1.0]


def test_epoch_that_is_only_as_good_is_not_better():
    callback = make()
    train(callback, [2.0, 2.0, 2.0])
    assert (callback.best_epoch, callback.num_waited) == (0, 2)


@pytest.mark.parametrize(("patience", "num_epochs"), [(0, 2), (1, 2), (2, 3), (3, 7), (None, 8)])
def test_run_stops_after_as_many_epochs_without_a_better_one_as_its_patience(patience, num_epochs):
    assert train(make(patience=patience), [3.0, 4.0, 5.0, 2.0, 6.0, 7.0, 8.0, 9.0]) == num_epochs


@pytest.mark.parametrize("patience", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(8))
def test_run_stops_at_the_epoch_at_which_early_stopping_of_keras_does(patience, seed):
    values = np.random.default_rng(seed).integers(0, 6, 20).tolist()
    if seed % 2:
        values[3] = values[4] = math.nan
    theirs = keras.callbacks.EarlyStopping("val_loss", patience=patience, mode="min")
    theirs.set_model(SimpleNamespace(weights=[Weight()], stop_training=False))
    theirs.on_train_begin()
    assert train(make(patience=patience), values) == train(theirs, values)


def test_patience_restarts_with_a_better_epoch():
    callback = make(patience=2)
    assert train(callback, [3.0, 4.0, 2.0, 4.0, 1.0, 2.0, 2.0, 0.0]) == 7
    assert callback.best_epoch == 4


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_validations_that_are_not_finite_count_towards_patience(value):
    callback = make(patience=2)
    assert train(callback, [value, 2.0, value, value, 1.0]) == 4
    assert (callback.best, callback.best_epoch) == (2.0, 1)
    assert train(make(patience=3), [value] * 9) == 3


def make_penalized(method=None):
    """Return a model whose kernel of one weight, 2, costs a tenth of its square."""
    own = {} if method is None else {method: lambda self, *args, **more: getattr(keras.Model, method)}
    kind = type("Own", (keras.Model,), own)
    x = keras.Input((1,))
    dense = keras.layers.Dense(
        1, kernel_initializer=keras.initializers.Constant(2.0), kernel_regularizer=keras.regularizers.L2(0.1)
    )
    return kind(x, dense(x))


def test_validation_loss_without_penalties_has_a_separate_name():
    model = make_penalized()
    model.compile("sgd", "mse")
    x, y = np.zeros((4, 1)), np.ones((4, 1))
    history = model.fit(x, y, epochs=2, validation_data=(x, y), callbacks=[DataLoss()], verbose=0).history
    plain = keras.Model(model.inputs, model.outputs)
    errors = np.square(plain.predict(x, verbose=0) - y).mean()
    assert history["val_data_loss"][-1] == pytest.approx(errors, rel=1e-5)
    kernel = float(model.weights[0].__array__()[0, 0])
    penalty = history["val_loss"][-1] - history["val_data_loss"][-1]
    assert penalty == pytest.approx(0.1 * kernel**2, rel=1e-4)


@pytest.mark.parametrize(("method", "wanted"), [(None, 0.6), ("test_step", 1.0), ("compute_loss", 1.0)])
def test_loss_that_a_model_computes_itself_is_left_alone(method, wanted):
    callback, logs = DataLoss(), {"loss": 3.0, "val_loss": 1.0}
    callback.set_model(make_penalized(method))
    callback.on_epoch_end(0, logs)
    assert logs == {"loss": 3.0, "val_loss": 1.0, "val_data_loss": pytest.approx(wanted)}


def test_without_validation_nothing_is_added():
    callback, logs = DataLoss(), {"loss": 3.0}
    callback.set_model(make_penalized())
    callback.on_epoch_end(0, logs)
    assert logs == {"loss": 3.0}


@pytest.mark.parametrize("is_lower_better", [False, True])
def test_epoch_that_is_no_number_is_never_best(is_lower_better):
    callback = make(is_lower_better=is_lower_better)
    train(callback, [math.nan, 2.0, math.nan])
    assert (callback.best, callback.best_epoch) == (2.0, 1)
    assert restored(callback) == [1.0, 1.0]


def test_model_keeps_its_weights_where_no_epoch_was_best():
    callback = make()
    train(callback, [math.nan, math.nan])
    assert (callback.best_epoch, callback.best_weights) == (-1, [])
    assert restored(callback) == [1.0, 1.0]


def test_last_epoch_is_kept_without_validation():
    callback = make(monitor=None, patience=0)
    assert train(callback, [1.0, 2.0, 3.0]) == 3
    assert (callback.best_epoch, callback.best_weights, callback.num_waited) == (2, [], 0)
    assert restored(callback) == [2.0, 2.0]


def test_best_weights_are_copies():
    callback = make()
    train(callback, [1.0])
    callback.model.weights[0].array += 7
    assert restored(callback) == [0.0, 0.0]


def test_monitor_that_is_not_in_the_history_is_refused_with_the_nearest():
    with raises_with(OptionError, "monitor 'val_los' 'val_loss'"):
        train(make(monitor="val_los"), [1.0])
    with raises_with(OptionError, got="'zzzzzz'", advice=containing("loss", "val_loss")):
        train(make(monitor="zzzzzz"), [1.0])


def make_averaging(averaging=0.5):
    """Return a model of one weight, compiled with a moving average of it."""
    number = keras.Input((1,))
    model = keras.Model(number, keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")(number))
    optimizer = keras.optimizers.SGD(0.1, use_ema=bool(averaging), ema_momentum=averaging)
    model.compile(optimizer=optimizer, loss="mse")
    optimizer.build(model.trainable_variables)
    return model


class SeeWeights(keras.callbacks.Callback):
    """Notes the weight at the end of steps, validations and epochs."""

    def __init__(self):
        super().__init__()
        self.steps, self.tests, self.epochs = [], [], []

    def _see(self):
        return float(copy_array(self.model.weights[0]).item())

    def on_train_batch_end(self, batch, logs=None):
        self.steps.append(self._see())

    def on_test_batch_end(self, batch, logs=None):
        self.tests.append(self._see())

    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append(self._see())


@pytest.mark.parametrize("monitor", ["val_loss", None])
def test_validation_and_best_weights_are_averages_and_training_continues_with_the_weights(monitor):
    model, seen = make_averaging(), SeeWeights()
    best = BestEpoch(monitor, is_lower_better=True, patience=None)
    x, y = np.ones((8, 1), np.float32), np.full((8, 1), 5.0, np.float32)
    held = None if monitor is None else (x[:4], y[:4])
    model.fit(
        x,
        y,
        batch_size=4,
        epochs=3,
        validation_data=held,
        verbose=0,
        callbacks=[AveragedWeights(), best, seen],
    )
    average, averages = None, []
    for weight in seen.steps:
        average = weight if average is None else 0.5 * average + 0.5 * weight
        averages.append(average)
    by_epoch = averages[1::2]
    assert seen.epochs == seen.steps[1::2]
    assert seen.tests == pytest.approx([] if monitor is None else by_epoch, rel=1e-6)
    best.restore()
    assert float(copy_array(model.weights[0]).item()) == pytest.approx(by_epoch[-1], rel=1e-6)


def test_optimizer_without_averages_changes_nothing():
    model, seen = make_averaging(0.0), SeeWeights()
    x, y = np.ones((4, 1), np.float32), np.full((4, 1), 5.0, np.float32)
    model.fit(x, y, epochs=2, validation_data=(x, y), verbose=0, callbacks=[AveragedWeights(), seen])
    assert seen.tests == seen.steps == seen.epochs
