"""The name that was probably meant."""

import pytest

from penstock.errors import UnknownNameError
from penstock.foundation.wording import find_nearest, unknown_name
from raising import mentions


@pytest.mark.parametrize(
    ("name", "names", "nearest"),
    [
        ("lable", ["label", "title"], "label"),
        ("image", ["image/encoded", "images"], "images"),
        ("PRICE", ["size", "price"], "price"),
        ("Y", ["x", "y"], "y"),
        ("PRIZE", ["price", "prices"], "price"),
        ("Age", ["Ages", "AGE"], "AGE"),
        ("zzz", ["label"], None),
        ("label", [], None),
        ("", ["label"], None),
    ],
)
def test_nearest_of_names_is_the_likest(name, names, nearest):
    assert find_nearest(name, names) == nearest


def test_nearest_among_huge_names_is_found_at_once():
    names = [f"{i}" + "x" * 65_536 for i in range(200)]
    assert find_nearest("y" * 65_536, names) is None  # the run's time limit is what a slow search would meet


def test_error_of_many_names_lists_the_first():
    error = unknown_name("q", [f"field_{i}" for i in range(100)], what="split")
    assert isinstance(error, UnknownNameError)
    assert mentions(error, "'q' 'field_0' 'field_1'")
    assert str(error).endswith("'field_7', ….")


def test_error_of_name_that_is_no_string_shows_it():
    assert mentions(str(unknown_name(3, ["a"])), "3 'a'")
