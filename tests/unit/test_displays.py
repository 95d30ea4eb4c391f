"""How objects show themselves: short text in a terminal, small and escaped HTML in a notebook."""

import numpy as np
import pytest

import penstock as ps
from penstock.fields import Number, Text
from penstock.model.task import Task
from penstock.score.evaluation import Evaluation
from penstock.score.mistakes import Mistake
from record_files import example, write_plain

HOSTILE = "<script>alert(1)</script>"
LARGEST = 50_000


@pytest.fixture
def dataset(tmp_path):
    rows = [{HOSTILE: f"a{n}", "x": n / 2, "y": n % 2} for n in range(40)]
    return ps.convert(rows, tmp_path / "data", target="y", split="train=0.5,test=0.5")


def is_safe(page: str) -> bool:
    return "<script" not in page and "background" not in page and len(page) < LARGEST


def test_data_set_shows_splits_and_fields(dataset):
    page = dataset._repr_html_()
    assert is_safe(page)
    for name in ("train", "test", "x", "y", "&lt;script&gt;"):
        assert f">{name}" in page


def test_names_are_completed(dataset):
    assert dataset._ipython_key_completions_() == ["train", "test"]
    assert dataset.schema._ipython_key_completions_() == list(dataset.schema)


def test_notes_of_a_data_set_are_shown(tmp_path):
    rows = [example(a=1, b=1), example(a=1.5, b=2)]
    dataset = ps.open(write_plain(tmp_path / "a.tfrecord", rows))
    assert f"a: {dataset.notes['a'][:10]}" in dataset._repr_html_()


def test_wide_schema_has_a_short_text_and_a_small_page():
    schema = ps.Schema({f"field {n}": Number() for n in range(5_000)} | {"y": Text(role="target")})
    assert repr(schema) == "Schema(5001 fields, targets 'y')"
    assert is_safe(schema._repr_html_())
    assert "4,961 more" in schema._repr_html_()


def test_pipeline_shows_its_outputs(dataset):
    pipeline = ps.Pipeline.fit(dataset, **{HOSTILE: None})
    page = pipeline._repr_html_()
    assert is_safe(page)
    assert ">x</td>" in page
    assert "not fed" in page
    assert repr(pipeline).count("\n") == 0


def make_evaluation(num_targets=1):
    tasks = {f"y{n}": Task(f"y{n}", "binary", ("no", "yes")) for n in range(num_targets)}
    return Evaluation(
        split="test",
        records=4,
        tasks=tasks,
        targets={name: {"auc": 0.75, "accuracy": None} for name in tasks},
        intervals={name: {"auc": (0.5, 1.0)} for name in tasks},
        classes={},
        confusion={name: {"labels": [], "matrix": np.zeros((9, 9)).tolist()} for name in tasks},
        importance_by_target={name: {HOSTILE: 0.25} for name in tasks},
        mistakes={
            name: [Mistake(3, "a.tfrecord", 3, "no", "yes", 0.9, 2.0, {"a": HOSTILE})] for name in tasks
        },
        notes=(HOSTILE,),
    )


def test_evaluation_is_one_line_of_text():
    text = repr(make_evaluation())
    assert text.startswith("Evaluation(split 'test', 4 records, y0: ")
    assert "AUC 0.750" in text
    assert len(text) < 120
    assert "… 35 more" in repr(make_evaluation(40))
    assert len(repr(make_evaluation(40))) < 300


def test_evaluation_shows_scores_importance_and_mistakes():
    page = make_evaluation()._repr_html_()
    assert is_safe(page)
    for text in ("0.500 to 1.00", "+0.250", "Worst mistakes", "note: &lt;script&gt;"):
        assert text in page
    assert is_safe(make_evaluation(400)._repr_html_())


def test_evaluation_that_cannot_be_drawn_shows_the_error():
    broken = Evaluation(
        split="test", records=1, tasks={}, targets={"y": {"auc": 1.0}}, intervals={}, classes={}, confusion={}
    )
    assert "KeyError" in broken._repr_html_()
    assert repr(broken) == "Evaluation(split 'test', 1 record, … 1 more)"
