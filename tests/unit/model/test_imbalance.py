"""Class weights: what classes count, what is chosen by itself, what a person may say."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from fit_sources import fit, numbers, strings
from penstock.errors import OptionError
from penstock.model import imbalance
from penstock.model.imbalance import count_classes, weigh_classes
from penstock.model.task import Task
from penstock.schema.scalar import Category, Number
from penstock.transform import Encode, Keep

YES_NO = ["no"] * 9 + ["yes"]
SOLD = Task("sold", "binary", ("no", "yes"))


class Split:
    """A split of columns in memory."""

    name = "train"

    def __init__(self, make, values):
        self._make = make
        self._values = values
        self.spans = []

    def __len__(self):
        return len(self._values)

    def columns(self, start=0, stop=None, fields=None):
        (name,) = fields
        self.spans.append((start, stop))
        return {name: self._make(self._values[start:stop])}


def make(values, task=SOLD):
    """Return a split with a target, and a pipeline that codes it."""
    transform = fit(Encode(unknown="error", missing="error"), Category("string"), strings(values), task.name)
    return Split(strings, values), SimpleNamespace(transforms={task.name: transform})


def test_records_of_each_class_are_counted_over_all_blocks(monkeypatch):
    monkeypatch.setattr(imbalance, "_BLOCK_ROWS", 4)
    split, pipeline = make(YES_NO)
    labels = pipeline.transforms["sold"].fitted.values
    counts = count_classes(split, pipeline, Task("sold", "binary", labels))
    assert dict(zip(labels, counts, strict=True)) == {"no": 9, "yes": 1}
    assert split.spans == [(0, 4), (4, 8), (8, 12)]


def test_numbers_that_are_kept_are_counted_as_they_are():
    kept = fit(Keep(), Number("int64"), numbers([0, 1, 1], "int64"), "sold")
    split = Split(lambda values: numbers(values, "int64"), [0, 1, 1, 1])
    pipeline = SimpleNamespace(transforms={"sold": kept})
    assert count_classes(split, pipeline, Task("sold", "binary", (0, 1))) == (1, 3)


def test_class_without_records_counts_none():
    split, pipeline = make(["a", "b", "c"], Task("sold", "multiclass", ("a", "b", "c")))
    labels = pipeline.transforms["sold"].fitted.values
    split = Split(strings, [labels[0]] * 3)
    task = Task("sold", "multiclass", labels)
    assert count_classes(split, pipeline, task) == (3, 0, 0)
    assert weigh_classes(split, pipeline, {"sold": task}, "balanced") == {"sold": (1.0, 1.0, 1.0)}
    assert weigh_classes(split, pipeline, {"sold": task}, "auto") == {}


def test_balanced_classes_count_the_same_in_all():
    split, pipeline = make(YES_NO)
    labels = pipeline.transforms["sold"].fitted.values
    tasks = {"sold": Task("sold", "binary", labels)}
    (weights,) = weigh_classes(split, pipeline, tasks, "balanced").values()
    assert dict(zip(labels, weights, strict=True)) == pytest.approx({"no": 10 / 18, "yes": 5.0})
    assert weigh_classes(split, pipeline, tasks, "auto") == {"sold": weights}
    assert weigh_classes(split, pipeline, tasks, "none") == {}


def test_auto_weighs_nothing_where_no_class_is_rare():
    split, pipeline = make(["no"] * 7 + ["yes"] * 3)
    tasks = {"sold": Task("sold", "binary", pipeline.transforms["sold"].fitted.values)}
    assert weigh_classes(split, pipeline, tasks, "auto") == {}
    assert list(weigh_classes(split, pipeline, tasks, "balanced")) == ["sold"]


@pytest.mark.parametrize("chosen", ["auto", "balanced"])
def test_targets_without_one_class_a_record_are_passed_over(chosen):
    tasks = {"price": Task("price", "regression"), "tags": Task("tags", "multilabel", ("a", "b"), (2,))}
    split = Split(strings, YES_NO)
    assert weigh_classes(split, SimpleNamespace(transforms={}), tasks, chosen) == {}
    assert split.spans == []


TASKS = {"sold": SOLD, "stars": Task("stars", "multiclass", (1, 2, 5)), "price": Task("price", "regression")}


def weigh(chosen):
    return weigh_classes(Split(strings, []), SimpleNamespace(transforms={}), TASKS, chosen)


def test_weights_that_are_given_stand_in_the_order_of_the_labels():
    assert weigh({"sold": {"yes": 3, "no": 0.5}}) == {"sold": (0.5, 3.0)}
    assert weigh({"sold": {"yes": 2.0}}) == {"sold": (1.0, 2.0)}
    assert weigh({"sold": {"no": 0}}) == {"sold": (0.0, 1.0)}
    assert weigh({}) == {}


def test_labels_that_are_numbers_may_be_given_as_texts():
    expected = {"stars": (1.0, 1.0, 4.0)}
    assert weigh({"stars": {5: 4.0}}) == weigh({"stars": {"5": 4.0}}) == expected


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (
            {"solt": {}},
            "class_weights['solt']: expected a target with one class a record, got 'solt'. "
            "Did you mean 'sold'?",
        ),
        ({"price": {}}, "class_weights['price']: expected a target with one class a record, got 'price'."),
        ({"sold": [1, 2]}, "class_weights['sold']: expected weights by label, got [1, 2]."),
        ({"sold": "balanced"}, "class_weights['sold']: expected weights by label, got 'balanced'."),
        ({"sold": {"maybe": 1}}, "class_weights['sold']: expected labels among no, yes, got 'maybe'."),
        ({"sold": {True: 1}}, "class_weights['sold']: expected labels among no, yes, got True."),
        ({"sold": {"yes": -1}}, "class_weights['sold']['yes']: expected a number of at least 0, got -1."),
        ({"sold": {"yes": "2"}}, "class_weights['sold']['yes']: expected a number of at least 0, got '2'."),
        ({"sold": {"yes": True}}, "class_weights['sold']['yes']: expected a number of at least 0, got True."),
        (
            {"sold": {"yes": math.nan}},
            "class_weights['sold']['yes']: expected a number of at least 0, got nan.",
        ),
        (
            {"sold": {"yes": math.inf}},
            "class_weights['sold']['yes']: expected a number of at least 0, got inf.",
        ),
    ],
)
def test_weights_that_cannot_be_are_refused(chosen, message):
    with pytest.raises(OptionError) as caught:
        weigh(chosen)
    assert str(caught.value) == message


def test_counts_are_plain_numbers():
    split, pipeline = make(YES_NO)
    counts = count_classes(split, pipeline, SOLD)
    assert [type(each) for each in counts] == [int, int]
    assert not isinstance(counts[0], np.generic)
