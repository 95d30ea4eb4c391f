"""The task of each target: found from the fitted pipeline, and undone again in predictions."""

import numpy as np
import pytest

import penstock as ps
from matched_models import INPUTS, TARGETS, fit, write_table
from penstock.errors import OptionError, PenstockError
from penstock.model.task import Task, find_tasks
from penstock.transform import Encode, Keep, Scale
from raising import containing, mentions, raises_with


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("task") / "table")


def write(folder, values, field=None, **choices):
    """Write records with one target."""
    table = {"x": np.arange(float(len(values))), "y": values}
    fields = {} if field is None else {"y": field}
    return ps.convert(table, folder, target="y", fields=fields, split="train=1.0", shuffle=False, **choices)


def find(data, **transforms):
    return find_tasks(ps.Pipeline.fit(data, **transforms))["y"]


def refuse(data, **transforms):
    with pytest.raises(OptionError) as caught:
        find(data, **transforms)
    assert caught.value.field == "y"
    return str(caught.value)


def test_targets_of_each_kind_have_their_task(table):
    tasks = find_tasks(fit(table, ("left",), TARGETS))
    assert list(tasks) == list(TARGETS)
    assert {name: (task.kind, task.labels, task.shape, task.units) for name, task in tasks.items()} == {
        "adopted": ("binary", ("no", "yes"), (), 1),
        "kind": ("multiclass", ("a", "b", "c"), (), 3),
        "tags": ("multilabel", ("x", "y", "z"), (3,), 3),
        "price": ("regression", (), (), 1),
        "stars": ("regression", (), (), 1),
    }
    assert [task.describe() for task in tasks.values()] == [
        containing("binary", 2),
        containing("multiclass", 3),
        containing("multilabel", 3),
        "regression",
        "regression",
    ]


def test_task_is_the_same_of_a_pipeline_that_was_saved(table):
    pipeline = fit(table, INPUTS, TARGETS)
    assert find_tasks(ps.Pipeline.from_json(pipeline.to_json())) == find_tasks(pipeline)


def test_target_whose_spread_is_below_the_smallest_normal_float32_counts_as_constant(tmp_path):
    data = write(tmp_path / "data", np.array([0.0, 7.4e-41] * 10), ps.fields.Number("float32"))
    assert find(data, y=Keep()).deviation == 1.0
    assert find(data, y=Scale()).factor == 1.0


def test_regression_knows_mean_and_deviation_of_the_train_split(tmp_path):
    values = np.array([1.0, 2.0, 6.0, 7.0], np.float32)
    task = find(write(tmp_path / "set", values))
    assert (task.mean, task.deviation) == (pytest.approx(4.0), pytest.approx(values.std(), rel=0.2))


def test_target_that_never_varies_has_a_deviation_of_one(tmp_path):
    task = find(write(tmp_path / "set", np.full(5, 3.5, np.float32)))
    assert (task.mean, task.deviation) == (3.5, 1.0)


@pytest.mark.parametrize(
    ("values", "kind"),
    [([0, 1, 1, 0], "binary"), ([0, 0, 0], "regression"), ([0, 1, 2], "regression"), ([-1, 1], "regression")],
)
def test_whole_numbers_of_zero_and_one_are_two_classes(tmp_path, values, kind):
    task = find(write(tmp_path / "set", np.array(values), ps.fields.Number("int64")))
    assert (task.kind, task.labels) == (kind, (0, 1) if kind == "binary" else ())


def test_fractions_of_zero_and_one_are_numbers(tmp_path):
    assert (
        find(write(tmp_path / "set", np.array([0.0, 1.0]), ps.fields.Number("float32"))).kind == "regression"
    )


def test_vector_is_a_regression_of_several_numbers(tmp_path):
    values = [np.array([n, 2.0 * n, 5.0], np.float32) for n in range(4)]
    task = find(write(tmp_path / "set", values, ps.fields.Tensor((3,), "float32")))
    assert (task.kind, task.shape, task.units) == ("regression", (3,), 3)
    assert task.describe() == containing("regression", 3)


def test_classes_of_numbers_have_numbers_for_labels(tmp_path):
    task = find(write(tmp_path / "set", np.array([5, 3, 5, 9]), ps.fields.Category("int64")))
    assert task.kind == "multiclass"
    assert sorted(task.labels) == [3, 5, 9]


@pytest.mark.parametrize("method", ["standard", "minmax", "log1p", "none"])
def test_scaling_of_a_target_is_undone(tmp_path, method):
    values = np.array([-7.0, 0.0, 1.0, 2.5, 300.0], np.float32)
    data = write(tmp_path / "set", values)
    pipeline = ps.Pipeline.fit(data, y=Scale(method))
    (batch,) = data["train"].loader(pipeline, batch_size=8)
    task = find_tasks(pipeline)["y"]
    assert (task.kind, task.method) == ("regression", method)
    np.testing.assert_allclose(task.undo(batch[1]["y"]), values, rtol=2e-5, atol=2e-5)


def test_scaled_target_that_never_varies_is_undone(tmp_path):
    data = write(tmp_path / "set", np.full(4, 3.5, np.float32))
    pipeline = ps.Pipeline.fit(data, y=Scale())
    (batch,) = data["train"].loader(pipeline, batch_size=8)
    assert find_tasks(pipeline)["y"].undo(batch[1]["y"]).tolist() == [3.5] * 4


def test_numbers_that_were_not_scaled_are_left_alone():
    values = np.array([1.0, 2.0], np.float32)
    assert Task("y", "regression").undo(values) is values


def test_pipeline_without_a_target_is_refused(tmp_path):
    data = ps.convert({"x": np.arange(3.0)}, tmp_path / "set", split="train=1.0")
    with raises_with(OptionError, "target=NAME"):
        find_tasks(ps.Pipeline.fit(data))


@pytest.mark.parametrize(("count", "end"), [(2, "The fields are x0, x1."), (11, ", x8, x9, ….")])
def test_fields_to_choose_a_target_from_are_listed(tmp_path, count, end):
    table = {f"x{number}": np.arange(3.0) + number for number in range(count)}
    data = ps.convert(table, tmp_path / "set", split="train=1.0")
    with pytest.raises(OptionError) as caught:
        find_tasks(ps.Pipeline.fit(data))
    assert caught.value.advice.endswith(end)


def test_target_with_one_class_is_refused(tmp_path):
    data = write(tmp_path / "set", ["no"] * 4)
    assert mentions(refuse(data), "'y' 1 'no' target=NAME")


@pytest.mark.parametrize(
    ("transform", "phrase"),
    [
        (Encode(unknown="slot", missing="slot"), "unknown='slot'"),
        (Encode(output="one_hot", unknown="error", missing="error"), "output='one_hot'"),
    ],
)
def test_classes_coded_in_another_way_are_refused(tmp_path, transform, phrase):
    data = write(tmp_path / "set", ["no", "yes"] * 3)
    found = refuse(data, y=transform)
    assert found.startswith("target 'y': ")
    assert "Encode(unknown='error', missing='error')" in found
    assert phrase in found
    assert "Leave out the settings of this field" in found


def test_scaling_that_cannot_be_undone_is_refused(tmp_path):
    data = write(tmp_path / "set", np.arange(6.0))
    found = refuse(data, y=Scale("clip"))
    assert mentions(found, "'y' predictions")
    assert "Scale(" in found


def test_target_with_an_indicator_is_refused(tmp_path):
    data = write(tmp_path / "set", np.arange(6.0))
    with raises_with(OptionError, "target 'y", field="y"):
        find_tasks(ps.Pipeline.fit(data, y=Scale(indicator=True)))


def test_spread_of_another_length_is_refused(tmp_path):
    form = ps.Pipeline.fit(write(tmp_path / "set", np.arange(6.0) / 4)).to_json()
    form["transforms"]["y"]["fitted"]["spread"] = [1.0]
    with raises_with(PenstockError, field="$.transforms.y.fitted.spread", got="(1.0,)"):
        find_tasks(ps.Pipeline.from_json(form))


def test_vector_scaled_element_by_element_is_refused(tmp_path):
    values = [np.array([n, 2.0 * n], np.float32) for n in range(4)]
    data = write(tmp_path / "set", values, ps.fields.Tensor((2,), "float32"))
    assert mentions(refuse(data, y=Scale()), "'y' predictions")
    task = find(data, y=Scale(per="whole"))
    assert (task.shape, task.method) == ((2,), "standard")


def test_matrix_and_list_are_refused(tmp_path):
    expected = "target 'y': expected a number, a class, a set of classes or a vector, got "
    matrix = write(tmp_path / "m", [np.zeros((2, 2))] * 3, ps.fields.Tensor((2, 2), "float64"))
    assert refuse(matrix).startswith(expected)
    lists = write(tmp_path / "l", [[1.0], [2.0, 3.0]], ps.fields.Sequence("float32"))
    assert refuse(lists, y=Keep(ragged=True)).startswith(expected)


def test_units_follow_from_kind_labels_and_shape():
    assert Task("y", "binary", (0, 1)).units == 1
    assert Task("y", "multiclass", (0, 1, 2)).units == 3
    assert Task("y", "regression", shape=(4,)).units == 4
