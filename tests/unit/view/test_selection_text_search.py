"""Search for texts in columns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.columns import Bytes, Ragged
from penstock.schema.array import Sequence
from penstock.schema.scalar import Category, Image, Number, Text
from penstock.schema.schema import Schema
from penstock.view.selection import find_text, list_searchable


def find(texts, wanted, present=None):
    column = Bytes.from_values([text.encode() for text in texts], present)
    return find_text({"text": column}, ["text"], wanted, len(texts)).tolist()


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("cat", [True, True, False, False]),
        ("CAT", [True, True, False, False]),
        ("cats", [False, True, False, False]),
        ("Über", [False, False, True, False]),
        ("ÜBER", [False, False, True, False]),
        ("<b>", [False, False, False, True]),
    ],
)
def test_text_is_found_in_upper_and_lower_case(wanted, found):
    assert find(["A cat", "CATS and cats", "über allem", "<b>"], wanted) == found


def test_text_is_not_found_across_two_values():
    assert find(["ab", "cd"], "bc") == [False, False]
    assert find(["", "abc", ""], "b") == [False, True, False]


def test_missing_value_is_not_searched():
    assert find(["cat", "cat"], "cat", np.array([True, False])) == [True, False]


def test_lists_of_texts_are_searched():
    words = Bytes.from_values([b"red", b"cat", b"dog", b"cat"])
    column = Ragged(words, np.array([0, 2, 3, 3, 4]))
    assert find_text({"w": column}, ["w"], "cat", 4).tolist() == [True, False, False, True]


def test_fields_with_texts_are_searchable():
    schema = Schema(
        {
            "a": Text(),
            "b": Category(),
            "c": Category("int64"),
            "d": Image(),
            "e": Number(),
            "f": Sequence("string"),
            "g": Sequence("int64"),
        }
    )
    assert list_searchable(schema) == ("a", "b", "f")


@given(st.lists(st.text("abAB ", max_size=6), max_size=12), st.text("abAB ", min_size=1, max_size=3))
def test_search_agrees_with_python(texts, wanted):
    assert find(texts, wanted) == [wanted.lower() in text.lower() for text in texts]
