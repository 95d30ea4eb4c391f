"""What was told of columns on the command line reaches the job."""

import argparse

from penstock.cli.overrides import read_overrides
from penstock.cli.planning import add_planning
from penstock.errors import OptionError
from raising import raises_with


def tell(*argv: str):
    parser = argparse.ArgumentParser()
    parser.add_argument("--plan-file")
    add_planning(parser)
    return read_overrides(parser.parse_args(argv))


def test_same_thing_told_twice_is_told_once():
    assert tell("--number", "a", "--number", "a").types == {"a": "number"}


def test_roles_of_one_column_that_contradict_are_refused():
    with raises_with(OptionError, "column", field="a"):
        tell("--target", "a", "--id", "a")


def test_no_target_is_none():
    assert tell().target is None
    assert tell("--target", "a", "--target", "b").target == ["a", "b"]
