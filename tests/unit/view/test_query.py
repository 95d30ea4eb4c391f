"""Parameters of addresses: limits, and errors that name the parameter."""

import pytest

from penstock.errors import OptionError
from penstock.view.query import MAX_PAGE_SIZE, Query, parse_number, parse_query


def test_parameters_make_a_query_and_its_address_gives_them_back():
    query = parse_query(
        {"split": "a&b=c", "filter": "age < 3", "page": "2", "size": "50", "layout": "table"}, "train"
    )
    assert query == Query(split="a&b=c", filter="age < 3", page=2, size=50, layout="table")
    assert query.to_address() == "/?split=a%26b%3Dc&filter=age+%3C+3&layout=table&page=2&size=50"
    assert query.change(filter="").page == 0


def test_empty_and_unknown_parameters_are_ignored():
    assert parse_query({"filter": "", "page": "", "other": "x"}, "train") == Query(split="train")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("size", "0"),
        ("size", str(MAX_PAGE_SIZE + 1)),
        ("size", "9" * 5000),
        ("page", "-1"),
        ("page", "1.5"),
        ("page", "1e3"),
        ("page", "²"),
        ("page", "9" * 20),
        ("shard", "../../etc/passwd"),
        ("layout", "list"),
        ("show", "everything"),
        ("order", "up"),
        ("filter", "a" * 2001),
        ("search", "a" * 201),
        ("split", "a" * 70_001),
    ],
)
def test_parameter_beyond_its_limits_is_an_error_by_its_name(name, value):
    with pytest.raises(OptionError) as caught:
        parse_query({name: value}, "train")
    assert caught.value.field == name


def test_number_may_have_separators():
    assert parse_number("row", " 1,234 ") == 1234


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", "b == 1"),
        (" b == 1 ", "b == 1"),
        ("a < 3", "a < 3 and b == 1"),
        ("a < 3 and b == 1", "a < 3 and b == 1"),
        ("a < 3 or a > 5", "(a < 3 or a > 5) and b == 1"),
        ("a < 3 or c and b == 1", "(a < 3 or c and b == 1) and b == 1"),
        ("color == 'orange'", "color == 'orange' and b == 1"),
    ],
)
def test_condition_is_added_to_the_whole_filter(given, expected):
    narrowed = Query(filter=given, page=3, sort="bytes:").narrow("b == 1")
    assert (narrowed.filter.strip(), narrowed.page, narrowed.sort) == (expected, 0, "bytes:")
