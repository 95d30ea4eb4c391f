"""`compile_model`: rates by step, losses and metrics by name, weights that count, plans that are refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from penstock.errors import OptionError
from penstock.model.task import Task
from penstock.settings.training import TrainOptions
from raising import raises_with

keras = pytest.importorskip("keras")
from penstock.training.compilation import (  # noqa: E402
    CompilePlan,
    WarmupCosine,
    compile_model,
    make_optimizer,
    plan_compilation,
)

layers = keras.layers
TASKS = {
    "adopted": Task("adopted", "binary", ("no", "yes")),
    "kind": Task("kind", "multiclass", ("a", "b", "c")),
    "tags": Task("tags", "multilabel", ("x", "y"), (2,)),
    "price": Task("price", "regression", mean=100.0, deviation=10.0),
}
X = {"x": np.linspace(-1, 1, 12, dtype=np.float32).reshape(6, 2)}
Y = {
    "adopted": np.array([0, 1, 1, 0, 1, 0], np.int32),
    "kind": np.array([0, 1, 2, 2, 1, 0], np.int32),
    "tags": np.array([[0, 1], [1, 1], [0, 0], [1, 0], [1, 1], [0, 1]], np.float32),
    "price": np.array([90, 100, 110, 120, 80, 100], np.float32),
}


def make_model(*names: str, as_dict: bool = True, activation: str | None = None) -> Any:
    keras.utils.set_random_seed(3)
    x = keras.Input((2,), name="x")
    squash = {"adopted": "sigmoid", "tags": "sigmoid", "kind": "softmax", "price": None}
    heads = {
        name: layers.Dense(TASKS[name].units, activation or squash[name], name=f"head_{name}")(x)
        for name in names
    }
    return keras.Model({"x": x}, heads if as_dict else next(iter(heads.values())))


def compile_plain(model: Any, tasks: dict[str, Task], plan: CompilePlan) -> None:
    """Compile a model for a batch or two, for which a trace would take longer than it saves."""
    compile_model(model, tasks, plan)
    model.run_eagerly = True


def chosen(*names: str) -> dict[str, Task]:
    return {name: TASKS[name] for name in names}


def test_rate_rises_evenly_and_falls_along_a_cosine_to_a_hundredth():
    rate = WarmupCosine(2.0, 4, 12)
    found = [float(rate(step)) for step in range(14)]
    falling = [2 * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * i / 8))) for i in range(9)]
    assert found == pytest.approx([0.5, 1.0, 1.5, 2.0, *falling, 0.02], rel=1e-5)


def test_rate_without_an_end_stays_at_its_peak():
    assert [float(WarmupCosine(0.5, 2)(step)) for step in (0, 1, 2, 10**6)] == [0.25, 0.5, 0.5, 0.5]


def test_rate_of_an_optimizer_follows_its_steps_alone():
    optimizer = make_optimizer(CompilePlan(learning_rate=1.0, warmup_steps=2, total_steps=10))
    optimizer.build([keras.Variable(np.zeros(1, np.float32))])
    optimizer.iterations.assign(6)
    assert float(optimizer.learning_rate) == pytest.approx(float(WarmupCosine(1.0, 2, 10)(6)))


@pytest.mark.parametrize(
    ("name", "kind"),
    [("adamw", "AdamW"), ("adam", "Adam"), ("sgd", "SGD"), ("rmsprop", "RMSprop"), ("lion", "Lion")],
)
def test_optimizers_go_by_name_and_clip_all_gradients_together(name, kind):
    optimizer = make_optimizer(CompilePlan(optimizer=name, clip=0.5, weight_decay=0.1))
    assert type(optimizer).__name__ == kind
    assert optimizer.global_clipnorm == 0.5
    assert bool(optimizer.weight_decay) is (name in ("adamw", "lion"))
    assert make_optimizer(CompilePlan(optimizer=name, clip=0)).global_clipnorm is None


def test_kernels_decay_and_biases_do_not():
    model = make_model("price", as_dict=False)
    compile_plain(model, chosen("price"), CompilePlan(learning_rate=0.1, weight_decay=0.5))
    kernel = model.get_weights()[0]
    model.layers[-1].bias.assign([3.0])
    model.train_on_batch(X, Y["price"], sample_weight=np.zeros(6, np.float32))
    np.testing.assert_allclose(model.get_weights()[0], kernel * (1 - 0.1 * 0.5), rtol=1e-5)
    np.testing.assert_allclose(model.get_weights()[1], [3.0], rtol=1e-6)


@pytest.mark.parametrize("as_dict", [False, True])
@pytest.mark.parametrize(
    ("name", "metrics"),
    [
        ("adopted", {"accuracy", "auc"}),
        ("kind", {"accuracy"}),
        ("tags", {"auc"}),
        ("price", {"mae", "rmse"}),
    ],
)
def test_logs_of_one_target_have_short_names(name, metrics, as_dict):
    model = make_model(name, as_dict=as_dict)
    compile_plain(model, chosen(name), CompilePlan())
    logs = model.test_on_batch(X, Y[name], return_dict=True)
    assert set(logs) == {"loss", *metrics}


def test_logs_of_several_targets_begin_with_the_target_and_losses_are_weighed():
    model = make_model(*TASKS)
    plan = CompilePlan(loss_weights={"price": 0.5, "kind": 2})
    compile_plain(model, TASKS, plan)
    logs = model.test_on_batch(X, Y, return_dict=True)
    assert set(logs) == {
        *("loss", "adopted_loss", "kind_loss", "tags_loss", "price_loss"),
        *("adopted_accuracy", "adopted_auc", "kind_accuracy", "tags_auc", "price_mae", "price_rmse"),
    }
    given = logs["adopted_loss"] + 2 * logs["kind_loss"] + logs["tags_loss"] + 0.5 * logs["price_loss"]
    assert logs["loss"] == pytest.approx(given, rel=1e-5)
    predicted = model.predict_on_batch(X)["price"][:, 0]
    assert logs["price_loss"] == pytest.approx(np.mean(((predicted - Y["price"]) / 10) ** 2), rel=1e-5)
    assert logs["price_mae"] == pytest.approx(np.mean(np.abs(predicted - Y["price"])), rel=1e-5)


@pytest.mark.parametrize(
    ("options", "days"),
    [
        ({"unit": "days"}, 1.0),
        ({"unit": "days", "method": "standardize", "shift": 19_000.0, "factor": 0.01}, 100.0),
        ({"unit": "microseconds", "method": "standardize", "factor": 1 / 172_800_000_000}, 2.0),
        ({"unit": "days", "method": "log1p", "factor": 0.01}, 1.0),
    ],
)
def test_errors_of_dates_are_in_days(options, days):
    task = {"due": Task("due", "regression", **options)}
    inputs = {"x": keras.Input((2,), name="x")}
    model = keras.Model(inputs, {"due": layers.Dense(1, name="due")(inputs["x"])})
    compile_model(model, task, CompilePlan())
    truth = np.array([0, 1, -1, 2, 0.5, 3], np.float32)
    for _ in range(2):  # the second batch counts alone
        logs = model.test_on_batch(X, truth, return_dict=True)
    errors = days * (model.predict_on_batch(X)["due"][:, 0] - truth)
    assert logs["mae"] == pytest.approx(np.mean(np.abs(errors)), rel=1e-5)
    assert logs["rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-5)


def test_weights_of_a_batch_count_in_loss_and_metrics_of_each_target():
    weights = {"adopted": np.array([1, 0, 0, 0, 0, 0], np.float32), "price": np.ones(6, np.float32)}
    model = make_model("adopted", "price")
    compile_plain(model, chosen("adopted", "price"), CompilePlan(class_weights={"adopted": (3.0, 1.0)}))
    targets = {name: Y[name] for name in weights}
    logs = model.test_on_batch(X, targets, sample_weight=weights, return_dict=True)
    chance = float(model.predict_on_batch(X)["adopted"][0, 0])
    assert logs["adopted_loss"] == pytest.approx(-3 * math.log(1 - chance) / 6, rel=1e-4)
    assert logs["adopted_accuracy"] == float(chance < 0.5)


def test_metrics_of_logits_equal_metrics_of_their_probabilities():
    plain, squashed = make_model("adopted", activation="linear"), make_model("adopted")
    squashed.set_weights(plain.get_weights())
    found = []
    for model in (plain, squashed):
        compile_plain(model, chosen("adopted"), CompilePlan())
        found.append(model.test_on_batch(X, Y["adopted"], return_dict=True))
    assert found[0] == pytest.approx(found[1], rel=1e-4)


def test_training_makes_the_loss_of_every_target_smaller():
    model = make_model("kind", "price")
    plan = CompilePlan(optimizer="sgd", learning_rate=0.1, total_steps=30)
    compile_model(model, chosen("kind", "price"), plan)
    targets = {name: Y[name] for name in ("kind", "price")}
    first = model.train_on_batch(X, targets, return_dict=True)
    for _ in range(30):
        model.reset_metrics()
        last = model.train_on_batch(X, targets, return_dict=True)
    assert last["kind_loss"] < first["kind_loss"]
    assert last["price_loss"] < first["price_loss"]
    assert not model.jit_compile or keras.backend.backend() != "tensorflow"


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"optimizer": "a"}, "optimizer 'adamw' 'adam' 'sgd' 'rmsprop' 'lion' 'a'"),
        ({"learning_rate": 0}, "learning_rate 0 0"),
        ({"weight_decay": -1}, "weight_decay 0 -1"),
        ({"clip": math.nan}, "clip 0 nan"),
        ({"warmup_steps": 1.5}, "warmup_steps 0 1.5"),
        ({"total_steps": -1}, "total_steps 0 -1"),
        ({"class_weights": {"y": ("x",)}}, "class_weights['y'][0] 0 'x'"),
        ({"loss_weights": {"y": True}}, "loss_weights['y'] 0 True"),
    ],
)
def test_plan_with_a_value_that_it_cannot_have_is_refused(options, facts):
    with raises_with(OptionError, facts):
        CompilePlan(**options)


@pytest.mark.parametrize(
    ("options", "last"),
    [
        ({"schedule": "cosine"}, 0.01),
        ({"schedule": "one_cycle"}, 0.001),
        ({"schedule": "cosine", "final_rate": 0}, 0.0),
        ({"schedule": "one_cycle", "final_rate": 0.5}, 0.5),
        ({"schedule": "constant", "final_rate": 0.5}, 1.0),
    ],
)
def test_schedule_ends_with_the_final_rate(options, last):
    plan = plan_compilation(TrainOptions(learning_rate=0.1, **options), 100)
    rate = WarmupCosine(plan.learning_rate, plan.warmup_steps, plan.total_steps, plan.floor)
    assert float(rate(100)) == pytest.approx(0.1 * last)


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"loss_weights": {"prize": 1}}, "loss_weights['prize'] 'adopted' 'price'"),
        ({"class_weights": {"price": (1,)}}, "class_weights['price'] target class"),
        ({"class_weights": {"adopted": (1, 2, 3)}}, "class_weights['adopted'] 2 weights"),
    ],
)
def test_plan_that_does_not_fit_the_tasks_is_refused(options, facts):
    with raises_with(OptionError, facts):
        compile_model(make_model("adopted", "price"), chosen("adopted", "price"), CompilePlan(**options))
