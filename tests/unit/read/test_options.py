"""The options of reading, checked when they are made."""

import dataclasses

import pytest

import penstock as ps
from penstock.errors import OptionError
from raising import containing, mentions, raises_with


def test_options_have_defaults_and_are_frozen():
    options = ps.options.ReadOptions()
    assert dataclasses.asdict(options) == {
        "compression": "auto",
        "max_skipped": 1000,
        "max_record_bytes": 1 << 30,
        "allow_trailing_zeros": False,
        "strict": False,
        "store_cache_bytes": None,
    }
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.strict = True


def test_options_are_named_never_counted():
    with pytest.raises(TypeError):
        ps.options.ReadOptions("gzip")


@pytest.mark.parametrize(
    ("name", "expected", "value", "usual"),
    [
        ("max_skipped", "0", -1, 1000),
        ("max_skipped", "0", 1.5, 1000),
        ("max_skipped", "0", True, 1000),
        ("max_skipped", "0", None, 1000),
        ("max_record_bytes", "1 1099511627776", 0, 1 << 30),
        ("max_record_bytes", "1 1099511627776", "1 GB", 1 << 30),
        ("max_record_bytes", "1 1099511627776", 2**40 + 1, 1 << 30),
        ("max_record_bytes", "1 1099511627776", 2**64 - 1, 1 << 30),
        ("strict", "True False", "yes", False),
        ("allow_trailing_zeros", "True False", 1, False),
    ],
)
def test_option_out_of_its_range_is_refused(name, expected, value, usual):
    with pytest.raises(OptionError) as caught:
        ps.options.ReadOptions(**{name: value})
    assert isinstance(caught.value, ValueError)
    assert mentions(caught.value, f"{name} {expected} {value!r} {usual}")


def test_number_too_long_to_be_printed_is_refused():
    with raises_with(OptionError, got=containing(33220)):
        ps.options.ReadOptions(max_record_bytes=10**10_000)


def test_least_and_largest_values_are_taken():
    assert ps.options.ReadOptions(max_skipped=0, max_record_bytes=1).max_skipped == 0
    assert ps.options.ReadOptions(max_record_bytes=1 << 40).max_record_bytes == 1 << 40
