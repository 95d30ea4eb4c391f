"""Ensembles: the members are found, each learns from its own loss, and their mean is what counts."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.foundation.json_form import Document, JsonValue
from penstock.model.presets import read_model_options
from penstock.model.task import Task, find_tasks

keras = pytest.importorskip("keras")
from built_models import AGE, BREED, NOTE, YES, build_both, make_pipeline  # noqa: E402
from fit_sources import numbers  # noqa: E402
from penstock.fields import Category, Number  # noqa: E402
from penstock.settings.model import ModelOptions  # noqa: E402
from penstock.training.compilation import CompilePlan, TaskLoss, compile_model  # noqa: E402
from penstock.training.members import MeanMetric, find_members, without_part_outputs  # noqa: E402
from penstock.transform import Encode, Keep  # noqa: E402

PRICE = (Number(role="target"), Keep("float32"), numbers([10, 20, 30, 40, 50, 90]))
KIND = (Category(role="target"), Encode(), BREED[2])
TARGETS = {"binary": {"y": YES}, "regression": {"y": PRICE}, "multiclass": {"y": KIND}}
SEVERAL = {"y": YES, "a/b": KIND, "price (€)": PRICE}
TASKS = {
    "binary": (Task("y", "binary", ("no", "yes")), np.array([0, 1, 1], np.int32)),
    "multiclass": (Task("y", "multiclass", ("a", "b", "c")), np.array([0, 2, 1], np.int32)),
    "multilabel": (Task("y", "multilabel", ("a", "b"), (2,)), np.array([[0, 1], [1, 1], [0, 0]], np.float32)),
    "regression": (Task("y", "regression", mean=3.0, deviation=2.0), np.array([1, 5, 3], np.float32)),
    "vector": (Task("y", "regression", shape=(2,)), np.array([[1, 5], [2, 2], [0, 3]], np.float32)),
}


def draw_predictions(task: Task, num_members: int = 4) -> np.ndarray:
    values = np.random.default_rng(1).uniform(0.1, 0.9, (3, num_members, task.units)).astype(np.float32)
    return values / values.sum(axis=-1, keepdims=True) if task.kind == "multiclass" else values


@pytest.mark.parametrize("name", [*TARGETS, "several"])
def test_outputs_are_the_means_of_the_members(name):
    targets = TARGETS.get(name, SEVERAL)
    pipeline, inputs = make_pipeline({"age": AGE, "breed": BREED, **targets})
    built, written = build_both(pipeline, ModelOptions(members=3))
    for model in (built, written):  # also found in the code that a user edits
        members, counts = find_members(model, find_tasks(pipeline))
        means, each = model(inputs), members(inputs)
        if name != "several":
            means, each = {"y": means}, {"y": each}
        assert means.keys() == each.keys() == targets.keys()
        for target, values in each.items():
            assert values.shape[1] == 3
            np.testing.assert_allclose(means[target], np.mean(values, axis=1), rtol=1e-5)
        assert counts == dict.fromkeys(targets, 3)
        assert [id(each) for each in members.variables] == [id(each) for each in model.variables]


@pytest.mark.parametrize("name", [*TARGETS, "several"])
def test_outputs_of_single_inputs_are_trained_and_not_predicted(name):
    targets = TARGETS.get(name, SEVERAL)
    pipeline, inputs = make_pipeline({"age": AGE, "note": NOTE, **targets})
    built, written = build_both(pipeline, ModelOptions(members=3))
    for model in (built, written):
        members, counts = find_members(model, find_tasks(pipeline))
        means, each = model(inputs), members(inputs)
        if name != "several":
            means, each = {"y": means}, {"y": each}
        assert counts == dict.fromkeys(targets, 3)
        for target, values in each.items():
            assert values.shape[1] == 4
            np.testing.assert_allclose(means[target], np.mean(values[:, :3], axis=1), rtol=1e-5)
        # The output of the note does not depend on the age.
        older = {**inputs, "age": inputs["age"] + 1}
        moved = members(older) if name == "several" else {"y": members(older)}
        for target, values in each.items():
            np.testing.assert_allclose(values[:, 3], moved[target][:, 3], rtol=1e-5)
            assert not np.allclose(values[:, :3], moved[target][:, :3])


@pytest.mark.parametrize("name", [*TARGETS, "several"])
def test_predictions_do_not_need_the_outputs_of_single_inputs(name):
    pipeline, inputs = make_pipeline({"age": AGE, "note": NOTE, **TARGETS.get(name, SEVERAL)})
    tasks = find_tasks(pipeline)
    for model in build_both(pipeline, ModelOptions(members=3)):
        weights = {each.path for each in model.weights}
        served = without_part_outputs(model, tasks)
        expected, found = (keras.tree.flatten(each(inputs)) for each in (model, served))
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        left = weights - {each.path for each in served.weights}
        assert len(left) == 2 * len(tasks)  # kernel and bias of one layer per target
        assert all("_of_note" in path for path in left)
        assert {each.path for each in model.weights} == weights
        assert find_members(model, tasks).counts == dict.fromkeys(tasks, 3)
        assert without_part_outputs(served, tasks) is served


def test_models_of_other_forms_are_kept_for_predictions():
    x = keras.Input((4,), name="x")
    joined = keras.layers.Concatenate(axis=1)([keras.layers.Reshape((4, 1))(x)] * 2)
    members = keras.layers.Conv1D(1, 3, padding="same", name="y_members")(joined)  # mixes the members
    model = keras.Model({"x": x}, keras.layers.GlobalAveragePooling1D(name="y")(members[:, :4]))
    assert without_part_outputs(model, {"y": TASKS["binary"][0]}) is model


EARLIER = read_model_options(JsonValue({"members": 3}, Document("run")))


@pytest.mark.parametrize(
    ("inputs", "options"),
    [
        ({"note": NOTE}, ModelOptions(members=3)),  # a single input: the members are its outputs
        ({"age": AGE, "breed": BREED}, ModelOptions(members=3)),  # a table has no separate encoder
        ({"age": AGE, "breed": (BREED[0], Encode("one_hot"), BREED[2])}, ModelOptions(members=3)),
        ({"age": AGE, "note": NOTE}, ModelOptions(members=3, part_outputs=False)),
        ({"age": AGE, "note": NOTE}, EARLIER),  # a run of an earlier version
    ],
)
def test_models_without_outputs_of_single_inputs(inputs, options):
    pipeline, batch = make_pipeline({**inputs, "y": YES})
    built, _ = build_both(pipeline, options)
    members, counts = find_members(built, find_tasks(pipeline))
    assert members(batch).shape[1] == counts["y"] == 3


@pytest.mark.parametrize(
    ("parts", "num_outputs"),
    [
        ({"age": AGE, "y_members": NOTE, "y": YES}, 4),
        ({"цена": NOTE, "цвет": NOTE, "y": YES}, 5),  # names without a letter of ASCII
        ({f"{'long' * 10}_{each}": NOTE for each in ("en", "de", "fr")} | {"y": YES}, 6),
        ({"age": AGE, "note": NOTE, "α": YES, "β": KIND}, 4),
    ],
)
def test_equal_names_of_layers_lose_no_output(parts, num_outputs):
    pipeline, inputs = make_pipeline(parts)
    for model in build_both(pipeline, ModelOptions(members=3)):
        members, counts = find_members(model, find_tasks(pipeline))
        outputs = members(inputs)
        for values in outputs.values() if isinstance(outputs, dict) else [outputs]:
            assert values.shape[1] == num_outputs
        assert set(counts.values()) == {3}


def test_other_slices_of_members_are_not_trained_as_members():
    x = keras.Input((3,), name="x")
    members = keras.layers.Reshape((3, 1), name="y_members")(x)
    for cut, is_found in ((members[:, :2], True), (members[:, 1:], False), (members[:, ::2], False)):
        model = keras.Model({"x": x}, keras.layers.GlobalAveragePooling1D(name="y")(cut))
        assert (find_members(model, {"y": TASKS["binary"][0]}) is not None) == is_found


def test_members_differ():
    pipeline, inputs = make_pipeline({"age": AGE, "y": YES})
    built, _ = build_both(pipeline, ModelOptions(members=3))
    values = np.array(find_members(built, find_tasks(pipeline)).model(inputs))
    assert (np.ptp(values, axis=1) > 1e-4).all()


def test_models_without_members_have_none():
    pipeline, _ = make_pipeline({"age": AGE, "y": YES})
    built, _ = build_both(pipeline, ModelOptions(members=1))
    assert find_members(built, find_tasks(pipeline)) is None
    tokens = keras.Input((4, 2), name="x")
    pooled = keras.layers.GlobalAveragePooling1D(name="y")(keras.layers.Dense(1)(tokens))
    assert find_members(keras.Model({"x": tokens}, pooled), {"y": TASKS["binary"][0]}) is None


@pytest.mark.parametrize(("name", "weights"), [*((name, None) for name in TASKS), ("binary", (0.5, 2.0))])
def test_loss_is_the_loss_of_the_mean_and_its_gradient_the_mean_gradient_of_the_members(name, weights):
    tf = pytest.importorskip("tensorflow")
    if keras.backend.backend() != "tensorflow":
        pytest.skip("gradients are computed with TensorFlow")
    task, truth = TASKS[name]
    predicted = draw_predictions(task)
    together = TaskLoss(task, class_weights=weights, num_members=4)
    alone = TaskLoss(task, class_weights=weights)
    variable = tf.Variable(predicted)
    with tf.GradientTape(persistent=True) as tape:
        loss = together(truth, variable)
        mean = tf.add_n([alone(truth, variable[:, number]) for number in range(4)]) / 4
    assert float(loss) == pytest.approx(float(alone(truth, predicted.mean(axis=1))), rel=1e-5)
    assert float(loss) < float(mean)  # all of these losses are convex
    np.testing.assert_allclose(
        tape.gradient(loss, variable), tape.gradient(mean, variable), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize(("name", "weights"), [*((name, None) for name in TASKS), ("binary", (0.5, 2.0))])
@pytest.mark.parametrize("num_parts", [2, 6])
def test_losses_of_single_inputs_are_in_the_gradient_alone(name, weights, num_parts):
    tf = pytest.importorskip("tensorflow")
    if keras.backend.backend() != "tensorflow":
        pytest.skip("gradients are computed with TensorFlow")
    task, truth = TASKS[name]
    predicted = draw_predictions(task, 3 + num_parts)
    together = TaskLoss(task, class_weights=weights, num_members=3)
    alone = TaskLoss(task, class_weights=weights)
    variable = tf.Variable(predicted)
    with tf.GradientTape(persistent=True) as tape:
        loss = together(truth, variable)
        each = [alone(truth, variable[:, number]) for number in range(3 + num_parts)]
        expected = tf.add_n(each[:3]) / 3 + {2: 0.3, 6: 0.15}[num_parts] * tf.add_n(each[3:])
    assert float(loss) == pytest.approx(float(alone(truth, predicted[:, :3].mean(axis=1))), rel=1e-5)
    np.testing.assert_allclose(
        tape.gradient(loss, variable), tape.gradient(expected, variable), rtol=1e-4, atol=1e-6
    )


def test_metrics_are_metrics_of_the_mean():
    metric = MeanMetric(keras.metrics.MeanAbsoluteError(name="mae"), 2)
    truth, predicted = np.array([[1.0], [2.0]]), np.array([[[0.0], [4.0], [9.0]], [[2.0], [3.0], [9.0]]])
    metric.update_state(truth, predicted, np.array([1.0, 3.0]))
    assert metric.name == "mae"
    assert float(metric.result()) == pytest.approx((1 * 1 + 3 * 0.5) / 4)
    assert len(metric.variables) == len(metric.metric.variables) > 0
    metric.reset_state()
    assert float(metric.result()) == 0.0


def test_fit_of_the_members_changes_the_predictions_of_the_model():
    pipeline, inputs = make_pipeline({"age": AGE, "y": YES})
    built, _ = build_both(pipeline, ModelOptions(members=3, dropout=0))
    tasks = find_tasks(pipeline)
    members, counts = find_members(built, tasks)
    compile_model(members, tasks, CompilePlan(learning_rate=0.01), {"y": False}, counts)
    truth = np.array([0, 1, 0, 1, 1, 0], np.int32)
    before = np.array(built(inputs))
    logs = members.fit(inputs, truth, epochs=5, verbose=0).history
    after = np.array(built(inputs))
    assert not np.allclose(before, after)
    assert logs["loss"][-1] < logs["loss"][0]
    found = members.evaluate(inputs, truth, verbose=0, return_dict=True)
    chances = np.where(truth == 1, after[:, 0], 1 - after[:, 0])
    assert found["loss"] == pytest.approx(-np.log(chances).mean(), rel=1e-4)
    assert found["accuracy"] == pytest.approx(np.mean(chances > 0.5))
