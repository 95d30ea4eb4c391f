"""The best epoch: its weights are kept, and the run stops when none was better for a while."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from penstock.errors import OptionError

pytest.importorskip("keras")
from penstock.model.stopping import BestEpoch


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


@pytest.mark.parametrize(("patience", "num_epochs"), [(0, 2), (1, 3), (2, 7), (None, 8)])
def test_run_stops_when_more_epochs_than_its_patience_were_no_better(patience, num_epochs):
    assert train(make(patience=patience), [3.0, 4.0, 5.0, 2.0, 6.0, 7.0, 8.0, 9.0]) == num_epochs


def test_patience_begins_anew_with_a_better_epoch():
    callback = make(patience=1)
    assert train(callback, [3.0, 4.0, 2.0, 4.0, 1.0, 2.0, 2.0, 0.0]) == 7
    assert callback.best_epoch == 4


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


def test_last_epoch_is_kept_where_nothing_tells():
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
    with pytest.raises(OptionError) as caught:
        train(make(monitor="val_los"), [1.0])
    assert str(caught.value) == (
        "monitor: expected a name of the history, got 'val_los'. Did you mean 'val_loss'?"
    )
    with pytest.raises(OptionError, match=r"got 'zzzzzz'\. There are loss, val_loss\."):
        train(make(monitor="zzzzzz"), [1.0])
