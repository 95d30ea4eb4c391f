"""`check_labels` and `read_tasks`: labels that a loss cannot take are named by their record."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import penstock as ps
from matched_models import fit, write_table
from penstock.columns import Dense
from penstock.errors import FieldError, OptionError
from penstock.model.task import find_tasks
from penstock.transform import Keep
from raising import containing, raises_with

keras = pytest.importorskip("keras")
from penstock.model import class_outputs  # noqa: E402
from penstock.model.class_outputs import check_labels, read_tasks  # noqa: E402
from penstock.model.compatibility import check_model  # noqa: E402

layers = keras.layers


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("labels") / "table")


class Column:
    """A split of one field."""

    name = "held"

    def __init__(self, values: Any, present: Any = None) -> None:
        self.values = np.asarray(values)
        self.present = None if present is None else np.asarray(present)
        self.spans: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self.values)

    def columns(self, start: int = 0, stop: int | None = None, fields: Any = None) -> Any:
        (name,) = fields
        self.spans.append((start, stop))
        present = None if self.present is None else self.present[start:stop]
        return {name: Dense(self.values[start:stop], present)}


def make_model(units: int, loss: Any = None, activation: str | None = "softmax") -> Any:
    left = keras.Input((1,), name="left")
    model = keras.Model({"left": left}, layers.Dense(units, activation)(left))
    if loss is not None:
        model.compile(loss=loss)
    return model


def test_whole_numbers_are_classes_where_the_loss_is_sparse(table):
    pipeline = fit(table, ("left",), ("stars",))
    tasks = find_tasks(pipeline)
    assert tasks["stars"].kind == "regression"
    model = make_model(3, "sparse_categorical_crossentropy")
    found = read_tasks(model, tasks)["stars"]
    assert (found.kind, found.labels, found.units) == ("multiclass", (0, 1, 2), 3)
    check_model(model, pipeline, tasks)
    assert read_tasks(make_model(1, "mse", None), tasks) == tasks


@pytest.mark.parametrize(
    ("values", "facts"),
    [
        ([0, 1, 3], "'stars' 'held' 2 0 2 3"),
        ([0, -1, 3], "'stars' 'held' 1 0 2 -1"),
        ([0.5, 1.0], "'stars' 'held' 0 0 2 0.5"),
        ([1.0, np.nan], "'stars' 'held' 1 0 2 nan"),
    ],
)
def test_label_outside_the_classes_is_named(table, values, facts):
    pipeline = fit(table, ("left",), ("stars",))
    model = make_model(3, keras.losses.SparseCategoricalCrossentropy())
    with raises_with(FieldError, facts, field="stars"):
        check_labels(model, find_tasks(pipeline), pipeline, Column(values))


def test_labels_are_read_block_by_block_and_missing_ones_passed_over(table, monkeypatch):
    monkeypatch.setattr(class_outputs, "_BLOCK_ROWS", 2)
    pipeline = fit(table, ("left",), (), stars=Keep("float32", missing=0))
    model = make_model(3, "sparse_categorical_crossentropy")
    split = Column([0, 9, 2, 1, 7], [True, False, True, True, True])
    with raises_with(FieldError, field="stars", record=4, expected=containing(0, 2), got=7):
        check_labels(model, find_tasks(pipeline), pipeline, split)
    assert split.spans == [(0, 2), (2, 4), (4, 5)]


def test_kept_truths_must_be_0_or_1_in_every_split(tmp_path):
    columns = {"left": np.arange(8.0), "sold": np.arange(8) % 2}
    fields = {"sold": ps.fields.Number("int64")}
    data = ps.convert(columns, tmp_path / "t", target="sold", fields=fields, split="train=1.0")
    pipeline = ps.Pipeline.fit(data)
    tasks = find_tasks(pipeline)
    assert tasks["sold"].kind == "binary"
    model = make_model(1, activation="sigmoid")
    check_labels(model, tasks, pipeline, data["train"])
    with raises_with(FieldError, field="sold", record=1, expected=containing(0, 1), got=2):
        check_labels(model, tasks, pipeline, Column([0, 2]))


def test_shares_are_taken_by_a_binary_loss_and_numbers_beyond_are_not(table):
    pipeline = fit(table, ("left",), ("price",))
    model = make_model(1, "binary_crossentropy", "sigmoid")
    tasks = find_tasks(pipeline)
    check_labels(model, tasks, pipeline, Column([0.0, 0.25, 1.0]))
    with raises_with(FieldError, "'train'", field="price", record=0, expected=containing(0, 1)):
        check_labels(model, tasks, pipeline, table["train"])


def test_label_without_a_code_is_named_with_its_split_and_record(table, tmp_path):
    pipeline = fit(table, ("left",), ("kind",))
    model = make_model(3, "sparse_categorical_crossentropy")
    check_labels(model, find_tasks(pipeline), pipeline, table["train"])
    known = find_tasks(pipeline)["kind"].labels[0]
    columns = {"left": [0.0, 1.0, 2.0], "kind": [known, known, "yeti"]}
    fields = {"kind": ps.fields.Category()}
    other = ps.convert(
        columns, tmp_path / "o", target="kind", fields=fields, split="train=1.0", shuffle=False
    )
    with raises_with(FieldError, "split 'train'", field="kind", record=2, got="'yeti'"):
        check_labels(model, find_tasks(pipeline), pipeline, other["train"])


@pytest.mark.parametrize("loss", ["categorical_crossentropy", "kl_divergence", "categorical_hinge"])
def test_loss_that_takes_rows_is_refused_for_codes(table, loss):
    pipeline = fit(table, ("left",), ("kind",))
    with raises_with(
        OptionError, field="kind", got=containing(f"'{loss}'"), advice=containing("'sparse_categorical_cross")
    ):
        check_labels(make_model(3, loss), find_tasks(pipeline), pipeline, table["train"])


def test_numbers_are_not_read(table):
    unread: Any = SimpleNamespace(name="train")
    pipeline = fit(table, ("left",), ("price",))
    check_labels(make_model(1, "mse", None), find_tasks(pipeline), pipeline, unread)
    classes = fit(table, ("left",), ("kind",))
    with pytest.raises(TypeError, match="SimpleNamespace"):  # classes are read
        check_labels(make_model(3), find_tasks(classes), classes, unread)
