"""`state.json` of a run: the entries that are read, and refused files."""

import json

import pytest

from penstock.training.run_state import read_train_fingerprint


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
