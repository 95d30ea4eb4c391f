"""How the worst mistakes are worded."""

import numpy as np

from penstock.errors import FieldError
from penstock.model.task import Task
from penstock.score.mistakes import find_worst, read_inputs, show_prediction, show_truth

LABELS = Task("tags", "multilabel", ("x", "y", "z"), (3,))
CLASSES = Task("breed", "multiclass", (b"a", "b", 7))
VECTORS = Task("place", "regression", shape=(2,))


def test_answers_are_labels_sets_of_labels_or_numbers() -> None:
    assert show_truth(LABELS, np.array([1, 0, 1])) == ["x", "z"]
    assert show_prediction(LABELS, np.array([0.2, 0.9, 0.1])) == (["y"], None)
    assert show_truth(CLASSES, 0) == "a"
    assert show_prediction(CLASSES, np.array([0.2, 0.2, 0.6])) == (7, 0.6)
    assert show_truth(VECTORS, np.array([1.5, np.inf])) == [1.5, None]
    binary = Task("adopted", "binary", ("no", "yes"))
    assert show_prediction(binary, np.float64(0.25)) == ("no", 0.75)


def test_worst_are_wrong_records_alone_by_their_loss() -> None:
    truth = np.array([0, 1, 2, 0])
    chances = np.array([[0.4, 0.3, 0.3], [0.5, 0.3, 0.2], [0.9, 0.1, 0.0], [0.1, 0.8, 0.1]])
    assert find_worst(CLASSES, truth, chances, 5).tolist() == [2, 3, 1]
    assert find_worst(CLASSES, truth, chances, 1).tolist() == [2]
    vectors = np.array([[1.0, 1.0], [2.0, 2.0]])
    assert find_worst(VECTORS, vectors, vectors + np.array([[0.0], [3.0]]), 5).tolist() == [1]


def test_record_that_cannot_be_read_whole_has_no_inputs() -> None:
    class Broken:
        def __getitem__(self, row):
            raise FieldError("value of field 'photo'", record=row)

    assert read_inputs(Broken(), 3, ()) == {}
