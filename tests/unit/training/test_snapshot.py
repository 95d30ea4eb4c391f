"""The state of a model in training: taken and restored, with any weights and callbacks."""

import json
import math
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from penstock.errors import StateError
from penstock.training.snapshot import (
    Snapshot,
    copy_array,
    pair_weights,
    restore_callbacks,
    restore_model,
    take_snapshot,
)
from raising import containing, raises_with


class Variable:
    """As Keras has them."""

    def __init__(self, path, values, dtype=np.float32):
        self.path = path
        self.array = np.array(values, dtype)

    @property
    def shape(self):
        return self.array.shape

    def __array__(self):
        return self.array

    def assign(self, array):
        assert array.dtype == self.array.dtype
        self.array = array


class GpuValue:
    """A value as torch has it on a GPU."""

    def __array__(self):
        raise TypeError("can't convert cuda:0 device type tensor to numpy.")


def test_value_on_a_gpu_is_copied_by_the_backend(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    monkeypatch.setattr(keras.ops, "convert_to_numpy", lambda value: np.array([1.0, 2.0], np.float32))
    assert copy_array(GpuValue()).tolist() == [1.0, 2.0]


def make_model(scale=1.0, with_optimizer=True):
    kernel = Variable("dense/kernel", [[scale], [2 * scale]])
    seed = Variable("dropout/seed", [7, scale], np.uint32)
    optimizer = SimpleNamespace(variables=[Variable("adam/iteration", 4 * scale, np.int64)])
    metrics = [Variable("mean/total", 3 * scale), Variable("mean/count", scale)]
    return SimpleNamespace(
        variables=[kernel, seed],
        optimizer=optimizer if with_optimizer else None,
        metrics_variables=metrics,
    )


def list_values(model):
    held = [*model.variables, *model.optimizer.variables, *model.metrics_variables]
    return [each.array.tolist() for each in held]


class Best:
    """A callback of some kind."""

    def __init__(self):
        self.best = math.inf
        self.wait = 0
        self.name = "loss"
        self.is_on = True
        self.nothing = None
        self.rate = np.float32(0.5)
        self.best_weights = []
        self.function = len
        self.numbers = [1, 2]
        self.model = self._model = self.params = self.validation_data = "not state"


def test_snapshot_names_every_variable_by_group_and_number():
    snapshot = take_snapshot(make_model(), [])
    arrays = {name: array.tolist() for name, array in snapshot.arrays.items()}
    assert len(arrays.pop("seed/0")) == 2  # the seed of Keras itself
    assert arrays == {
        "model/0": [[1.0], [2.0]],
        "model/1": [7, 1],
        "optimizer/0": 4,
        "metrics/0": 3.0,
        "metrics/1": 1.0,
    }
    assert snapshot.paths["model/1"] == "dropout/seed"
    assert snapshot.paths["optimizer/0"] == "adam/iteration"


def test_snapshot_is_a_copy():
    model = make_model()
    snapshot = take_snapshot(model, [])
    model.variables[0].array += 1
    assert snapshot.arrays["model/0"].tolist() == [[1.0], [2.0]]
    assert copy_array(model.variables[0]) is not model.variables[0].array


def test_variables_that_jax_has_elsewhere_are_fetched_first():
    model = make_model()
    model.jax_state_sync = lambda: model.variables[0].assign(np.array([[5], [6]], np.float32))
    assert take_snapshot(model, []).arrays["model/0"].tolist() == [[5.0], [6.0]]


def test_model_is_restored():
    snapshot = take_snapshot(make_model(2.0), [])
    model = make_model()
    restore_model(model, snapshot)
    assert list_values(model) == list_values(make_model(2.0))


def test_metrics_are_left_where_an_epoch_begins():
    model = make_model()
    restore_model(model, take_snapshot(make_model(2.0), []), with_metrics=False)
    assert [each.array.item() for each in model.metrics_variables] == [3.0, 1.0]
    assert model.variables[0].array.tolist() == [[2.0], [4.0]]


def test_model_without_an_optimizer_has_no_variables_of_one():
    snapshot = take_snapshot(make_model(with_optimizer=False), [])
    assert not [name for name in snapshot.arrays if name.startswith("optimizer")]
    with raises_with(StateError, "1 0"):
        restore_model(make_model(), snapshot)


def test_model_with_more_variables_is_refused():
    model = make_model()
    model.variables.append(Variable("dense/bias", [0.0]))
    with raises_with(StateError, expected=3, got=2):
        restore_model(model, take_snapshot(make_model(), []))


def test_model_of_another_shape_is_refused_with_the_variable():
    model = make_model()
    model.variables[0] = Variable("dense/kernel", [[1.0, 2.0]])
    with raises_with(StateError, "shape 'dense/kernel' 0 (1, 2) (2, 1)"):
        restore_model(model, take_snapshot(make_model(), []))


def test_callbacks_remember_scalars_and_lists_of_arrays_through_json():
    one, two = Best(), Best()
    one.best, one.wait = 0.25, 3
    one.best_weights = [np.arange(3.0), np.array(True)]
    two.best = -math.inf
    two.rate = np.float32(math.nan)
    snapshot = take_snapshot(make_model(), [one, two])
    one.best_weights[0][:] = 0
    assert snapshot.callbacks[0] == {
        "kind": "Best",
        "values": {
            "best": 0.25,
            "wait": 3,
            "name": "loss",
            "is_on": True,
            "nothing": None,
            "rate": 0.5,
        },
        "arrays": {"best_weights": 2},
        "is_aimed": False,
    }
    kept = json.loads(json.dumps(list(snapshot.callbacks), allow_nan=False))
    others = [Best(), Best()]
    restore_callbacks(others, Snapshot(snapshot.arrays, {}, kept))
    assert (others[0].best, others[0].wait, others[0].nothing) == (0.25, 3, None)
    assert [each.tolist() for each in others[0].best_weights] == [[0.0, 1.0, 2.0], True]
    assert (others[1].best, others[1].best_weights) == (-math.inf, [])
    assert math.isnan(others[1].rate)
    assert (others[0].function, others[0].numbers) == (len, [1, 2])
    assert others[0].model == "not state"


def test_eleven_callbacks_do_not_take_the_arrays_of_each_other():
    callbacks = [Best() for _ in range(11)]
    for number, each in enumerate(callbacks):
        each.best_weights = [np.array(number)]
    snapshot = take_snapshot(make_model(), callbacks)
    others = [Best() for _ in range(11)]
    restore_callbacks(others, snapshot)
    assert [int(each.best_weights[0]) for each in others] == list(range(11))


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([None]), np.array([1j])])
def test_list_of_arrays_that_no_file_can_hold_is_no_state(array):
    callback = Best()
    callback.best_weights = [np.zeros(1), array]
    snapshot = take_snapshot(make_model(), [callback])
    assert snapshot.callbacks[0]["arrays"] == {}
    assert not [name for name in snapshot.arrays if name.startswith("callback")]


def test_other_callbacks_are_refused():
    class Other(Best):
        pass

    snapshot = take_snapshot(make_model(), [Best()])
    with raises_with(StateError, "callbacks", got=containing("Best")):
        restore_callbacks([Other(), Best()], snapshot)
    with raises_with(StateError, "callbacks"):
        restore_callbacks([], snapshot)


class Aimed:
    """A callback that finds out at the first epoch whether more is better, and turns a sign then."""

    def __init__(self):
        self.monitor_op = None
        self.min_delta = 0.5

    def _set_monitor_op(self):
        self.monitor_op = max
        self.min_delta *= -1

    def see(self):
        if self.monitor_op is None:
            self._set_monitor_op()


@pytest.mark.parametrize("is_seen", [False, True])
def test_callback_that_has_found_its_direction_does_not_turn_again(is_seen):
    one, other = Aimed(), Aimed()
    if is_seen:
        one.see()
    restore_callbacks([other], take_snapshot(make_model(), [one]))
    assert (other.monitor_op is max, other.min_delta) == (is_seen, one.min_delta)
    other.see()
    assert other.min_delta == -0.5


@pytest.mark.parametrize(
    ("stored", "wanted", "numbers"),
    [
        (["a/kernel", "c/kernel"], ["a/kernel", "c/kernel"], [0, 1]),
        (["a/kernel", "c/kernel"], ["c/kernel", "a/kernel"], [1, 0]),  # branches built in another order
        (["dense/kernel", "dense_1/kernel"], ["dense_7/kernel", "dense_8/kernel"], [0, 1]),
        (["branch_1/kernel", "branch_2/kernel"], ["branch_2/kernel", "branch_1/kernel"], [1, 0]),
        (["a_3/kernel", "c/bias"], ["c/bias", "a/kernel"], [1, 0]),
    ],
)
def test_weights_are_paired_by_name(stored, wanted, numbers):
    assert pair_weights(stored, wanted) == numbers


@pytest.mark.parametrize(
    ("stored", "wanted", "facts"),
    [
        (["a/kernel"], ["a/kernel", "a/bias"], "weights 1 2"),
        (["a/kernel", "c/kernel"], ["a/kernel", "d/kernel"], "1 'c/kernel' 'd/kernel'"),
    ],
)
def test_weights_that_fit_nowhere_are_refused(stored, wanted, facts):
    with raises_with(StateError, facts):
        pair_weights(stored, wanted)
