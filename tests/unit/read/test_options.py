"""The options of reading, checked when they are made."""

import dataclasses

import pytest

import penstock as ps
from penstock.errors import OptionError


def test_options_have_defaults_and_are_frozen():
    options = ps.ReadOptions()
    assert dataclasses.asdict(options) == {
        "compression": "auto",
        "max_skipped": 1000,
        "max_record_bytes": 1 << 30,
        "allow_trailing_zeros": False,
        "strict": False,
    }
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.strict = True


def test_options_are_named_never_counted():
    with pytest.raises(TypeError):
        ps.ReadOptions("gzip")


@pytest.mark.parametrize(
    ("name", "least", "value"),
    [
        ("max_skipped", 0, -1),
        ("max_skipped", 0, 1.5),
        ("max_skipped", 0, True),
        ("max_skipped", 0, None),
        ("max_record_bytes", 1, 0),
        ("max_record_bytes", 1, "1 GB"),
    ],
)
def test_option_out_of_its_range_is_refused(name, least, value):
    with pytest.raises(OptionError) as caught:
        ps.ReadOptions(**{name: value})
    assert isinstance(caught.value, ValueError)
    assert str(caught.value) == f"{name}: expected a whole number of at least {least}, got {value!r}."


def test_least_values_are_taken():
    assert ps.ReadOptions(max_skipped=0, max_record_bytes=1).max_skipped == 0
