"""What a run's files say of it: forms that no run writes are refused, before they do harm."""

import json

import pytest

from penstock.errors import SchemaError
from penstock.training.run_files import check_facts, read_train_fingerprint
from raising import mentions, raises_with

SOUND = {
    "keras": "3.15.1",
    "targets": {"y": {"kind": "multiclass", "labels": 10}, "price": {"kind": "regression", "labels": 0}},
    "logits": {"y": True, "price": False},
}


@pytest.mark.parametrize("facts", [SOUND, {}, {"targets": None, "logits": None}, {"other": [3]}])
def test_info_of_a_run_is_accepted(facts):
    before = json.dumps(facts)
    check_facts(facts, "run.yaml")
    assert json.dumps(facts) == before
    with pytest.raises(SchemaError):
        check_facts({**facts, "logits": 3}, "run.yaml")


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (3, "facts 3"),
        ({"targets": 3}, "facts.targets 3"),
        ({"targets": {1: {}}}, "facts.targets 1"),
        ({"targets": {"y": 3}}, "facts.targets.y 3"),
        ({"targets": {"y": {}}}, "facts.targets.y.kind 'binary' 'multiclass'"),
        ({"targets": {"y": {"kind": ["binary"]}}}, "facts.targets.y.kind 'binary'"),
        ({"targets": {"y": {"kind": "binary"}}}, "targets.y.labels 1"),
        ({"targets": {"y": {"kind": "multiclass", "labels": 10_000_000_000}}}, "1,000,000 10000000000"),
        ({"targets": {"y": {"kind": "multiclass", "labels": 0}}}, "1 1,000,000 0"),
        ({"targets": {"y": {"kind": "multiclass", "labels": True}}}, "True"),
        ({"targets": {"y": {"kind": "multiclass", "labels": 2.0}}}, "2.0"),
        ({"targets": {"y": {"kind": "regression", "labels": -1}}}, "0 1,000,000 -1"),
        ({"logits": "x"}, "facts.logits 'x'"),
        ({"logits": {"y": "x"}}, "facts.logits.y 'x'"),
        ({"logits": {"y": 1}}, "facts.logits.y 1"),
    ],
)
def test_info_that_no_run_writes_is_refused_with_its_path(facts, message):
    with raises_with(SchemaError, "runs/a/run.yaml") as caught:
        check_facts(facts, "runs/a/run.yaml")
    assert mentions(caught.value, message)


@pytest.mark.parametrize(
    "form", [{"identity": {"data": "ab"}}, {}, [], {"identity": 3}, {"identity": {"data": 3}}]
)
def test_fingerprint_of_the_train_split_is_read_if_it_exists(form, tmp_path):
    (tmp_path / "state.json").write_text(json.dumps(form))
    is_sound = form == {"identity": {"data": "ab"}}
    assert read_train_fingerprint(tmp_path) == ("ab" if is_sound else None)


def test_missing_or_damaged_state_has_no_fingerprint(tmp_path):
    assert read_train_fingerprint(tmp_path) is None
    (tmp_path / "state.json").write_text("{")
    assert read_train_fingerprint(tmp_path) is None
    (tmp_path / "state.json").write_text("[" * 100_000)
    assert read_train_fingerprint(tmp_path) is None
