"""Class weights: what classes count, the automatic choice, and declared weights."""

import math

import numpy as np
import pytest

from penstock.errors import OptionError
from penstock.model.task import Task
from penstock.training.class_weights import compute_class_weights, count_classes, list_single_record_classes
from raising import raises_with

SOLD = Task("sold", "binary", ("no", "yes"))
YES_NO = [{"sold": np.array([0] * 5, np.int32)}, {"sold": np.array([0, 0, 0, 0, 1], np.int32)}]


def test_records_of_each_class_are_counted_over_all_batches():
    assert count_classes(YES_NO, {"sold": SOLD}) == {"sold": (9, 1)}
    numbers = [{"sold": np.array([0.0, 1.0, 1.0, 1.0], np.float32)}]
    assert count_classes(numbers, {"sold": SOLD}) == {"sold": (1, 3)}


def test_class_without_records_counts_none():
    tasks = {"sold": Task("sold", "multiclass", ("a", "b", "c"))}
    counts = count_classes([{"sold": np.zeros(3, np.int32)}], tasks)
    assert counts == {"sold": (3, 0, 0)}
    assert compute_class_weights(counts, tasks, "balanced") == {"sold": (1.0, 1.0, 1.0)}
    assert compute_class_weights(counts, tasks, "auto") == {}


def test_balanced_classes_count_the_same_in_all():
    counts, tasks = {"sold": (9, 1)}, {"sold": SOLD}
    (weights,) = compute_class_weights(counts, tasks, "balanced").values()
    assert weights == pytest.approx((10 / 18, 5.0))
    assert compute_class_weights(counts, tasks, "auto") == {"sold": weights}
    assert compute_class_weights(counts, tasks, "none") == {}


def test_auto_weighs_nothing_where_no_class_is_rare():
    assert compute_class_weights({"sold": (7, 3)}, {"sold": SOLD}, "auto") == {}
    assert list(compute_class_weights({"sold": (7, 3)}, {"sold": SOLD}, "balanced")) == ["sold"]


@pytest.mark.parametrize("chosen", ["auto", "balanced"])
def test_targets_without_one_class_a_record_are_passed_over(chosen):
    tasks = {"price": Task("price", "regression"), "tags": Task("tags", "multilabel", ("a", "b"), (2,))}
    counts = count_classes(iter(()), tasks)
    assert counts == {}
    assert compute_class_weights(counts, tasks, chosen) == {}


def test_classes_with_a_single_record_are_noted():
    tasks = {"sold": SOLD, "stars": Task("stars", "multiclass", (1, 2, 5))}
    (note,) = list_single_record_classes({"sold": (9, 2), "stars": (1, 5, 1)}, tasks)
    assert "'stars'" in note
    assert "1, 5" in note
    assert list(list_single_record_classes({"sold": (0, 2)}, tasks)) == []


TASKS = {"sold": SOLD, "stars": Task("stars", "multiclass", (1, 2, 5)), "price": Task("price", "regression")}


def weigh(chosen):
    return compute_class_weights({}, TASKS, chosen)


def test_weights_that_are_given_stand_in_the_order_of_the_labels():
    assert weigh({"sold": {"yes": 3, "no": 0.5}}) == {"sold": (0.5, 3.0)}
    assert weigh({"sold": {"yes": 2.0}}) == {"sold": (1.0, 2.0)}
    assert weigh({"sold": {"no": 0}}) == {"sold": (0.0, 1.0)}
    assert weigh({}) == {}


def test_labels_that_are_numbers_may_be_given_as_texts():
    expected = {"stars": (1.0, 1.0, 4.0)}
    assert weigh({"stars": {5: 4.0}}) == weigh({"stars": {"5": 4.0}}) == expected


@pytest.mark.parametrize(
    ("chosen", "facts"),
    [
        ({"solt": {}}, "class_weights['solt'] target class 'solt' 'sold'"),
        ({"price": {}}, "class_weights['price'] target class 'price'"),
        ({"sold": [1, 2]}, "class_weights['sold'] weights label [1, 2]"),
        ({"sold": "balanced"}, "class_weights['sold'] weights label 'balanced'"),
        ({"sold": {"maybe": 1}}, "class_weights['sold'] labels 'maybe'"),
        ({"sold": {True: 1}}, "class_weights['sold'] labels True"),
        ({"sold": {"yes": -1}}, "class_weights['sold']['yes'] 0 -1"),
        ({"sold": {"yes": "2"}}, "class_weights['sold']['yes'] 0 '2'"),
        ({"sold": {"yes": True}}, "class_weights['sold']['yes'] 0 True"),
        ({"sold": {"yes": math.nan}}, "class_weights['sold']['yes'] 0 nan"),
        ({"sold": {"yes": math.inf}}, "class_weights['sold']['yes'] 0 inf"),
    ],
)
def test_weights_that_cannot_be_are_refused(chosen, facts):
    with raises_with(OptionError, facts):
        weigh(chosen)


def test_counts_are_plain_numbers():
    counts = count_classes(YES_NO, {"sold": SOLD})["sold"]
    assert [type(each) for each in counts] == [int, int]
