"""Numbers for the splits and strata that rows name."""

import numpy as np
import pytest

from penstock.errors import OptionError
from penstock.shards.splits import names as module
from penstock.shards.splits.names import SplitNames, Strata
from raising import containing, raises_with


def digests(*rows):
    return np.array(rows, np.uint64)


def test_names_are_numbered_by_first_appearance_over_all_blocks():
    names = SplitNames()
    assert names.code([b"test", b"train", b"test"], 3).tolist() == [0, 1, 0]
    assert names.code([b"extra", b"train"], 2).tolist() == [2, 1]
    assert names.code("test", 4).tolist() == [0, 0, 0, 0]
    assert names.in_order() == ("test", "train", "extra")


def test_names_that_mean_a_usual_split_are_taken_as_it():
    names = SplitNames()
    assert names.code([b"val", b"validation", b"dev", b"Training"], 4).tolist() == [0, 0, 0, 1]
    assert names.in_order() == ("validation", "train")


@pytest.mark.parametrize("value", [b"", b"a/b", b"..", b"a b", b"caf\xc3\xa9", b"\xff", b"x" * 101])
def test_value_that_cannot_name_a_file_is_refused(value):
    with raises_with(OptionError, "split_by", expected=containing(100, "'_'")):
        SplitNames().code([value], 1)


def test_too_many_names_are_refused_with_a_hint():
    names = [f"name_{number}".encode() for number in range(201)]
    SplitNames().code(names[:200], 200)
    with raises_with(OptionError, "200"):
        SplitNames().code(names, 201)


def test_strata_are_numbered_by_first_appearance_over_all_blocks():
    strata = Strata()
    assert strata.code(digests([9, 1], [4, 1], [9, 1])).tolist() == [0, 1, 0]
    assert strata.code(digests([7, 1], [9, 1])).tolist() == [2, 0]


def test_strata_that_share_one_word_of_their_digests_are_different():
    strata = Strata()
    assert strata.code(digests([9, 1], [9, 2], [8, 2], [9, 1])).tolist() == [0, 1, 2, 0]
    assert strata.code(digests([9, 3], [9, 2])).tolist() == [3, 1]


def test_too_many_strata_are_refused(monkeypatch):
    monkeypatch.setattr(module, "_MAX_STRATA", 3)
    with raises_with(OptionError, "stratify", expected=containing(3)):
        Strata().code(digests(*([number, 0] for number in range(4))))
