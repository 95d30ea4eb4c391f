"""Every choice is checked when it is made."""

import dataclasses

import pytest

from penstock.errors import OptionError
from penstock.fields import Category, Number
from penstock.schema.schema import Schema
from penstock.shards.options import ConvertChoices, ConvertOptions, make_options


def test_keywords_of_convert_are_the_attributes_of_its_options():
    names = [field.name for field in dataclasses.fields(ConvertOptions)]
    assert list(ConvertChoices.__annotations__) == names
    documented = [line.split(":")[0].strip() for line in ConvertOptions.__doc__.splitlines() if ": " in line]
    assert set(names) <= set(documented)


def test_texts_stand_for_what_they_mean():
    options = ConvertOptions(split="train=0.9,test=0.1", drop="name", missing="NA")
    assert options.split == {"train": 0.9, "test": 0.1}
    assert options.drop == ("name",)
    assert options.source.missing == ("NA",)
    assert ConvertOptions(drop=["a", "b"]).drop == ("a", "b")


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (
            {"split": "train"},
            "split: expected NAME=SHARE, such as train=0.8,validation=0.1,test=0.1, got 'train'",
        ),
        ({"split": "train=0.5"}, r"shares: expected a sum of 1, got 0\.5"),
        ({"split": {"train": 2}}, "share of 'train': expected a number above 0, up to 1, got 2"),
        ({"split": {"a/b": 1}}, "the name of a split: expected letters, digits and _, got 'a/b'"),
        ({"split": 7}, "split: expected {'train': 0.9, …}, got 7"),
        ({"stratify": "a", "time": "b"}, "the split: expected one way to make it, got stratify and time"),
        ({"group": 5}, "group: expected the name of a column, got 5"),
        ({"stratify": 3}, "stratify: expected the name of a column, got 3"),
        ({"seed": -1}, "seed: expected a whole number of at least 0 and at most 9223372036854775807, got -1"),
        ({"seed": 1.0}, "seed: expected a whole number"),
        ({"seed": True}, "seed: expected a whole number"),
        ({"shuffle": "no"}, "shuffle: expected True or False, got 'no'"),
        ({"overwrite": 1}, "overwrite: expected True or False, got 1"),
        ({"resume": None}, "resume: expected True or False, got None"),
        ({"shard_bytes": 0}, "shard_bytes: expected a whole number of at least 1, got 0"),
        ({"num_shards": 0}, "num_shards: expected a whole number of at least 1, got 0"),
        ({"workers": 0}, "workers: expected a whole number of at least 1, got 0"),
        ({"resize": "big"}, "resize: expected a whole number of at least 1, got 'big'"),
        ({"max_rejects": -1}, "max_rejects: expected a whole number of at least 0, got -1"),
        ({"compression": "zstd"}, "compression: expected 'none' or 'gzip', got 'zstd'"),
        ({"on_error": "ignore"}, "on_error: expected one of 'raise', 'skip', 'collect', got 'ignore'"),
        ({"drop": 5}, "drop: expected a list of texts, got 5"),
        ({"missing": [5]}, r"missing: expected a list of texts, got \[5\]"),
        ({"rename": "a=b"}, "rename: expected {'old': 'new', …}, got 'a=b'"),
        ({"plan": 5}, "plan: expected the path of a plan, or what is in it, got 5"),
        ({"delimiter": "ab"}, "delimiter: expected one ASCII character"),
        ({"encoding": "latin-17"}, "encoding: expected the name of a text encoding, got 'latin-17'"),
        ({"short_rows": "cut"}, "short_rows: expected 'raise' or 'fill', got 'cut'"),
    ],
)
def test_choice_that_cannot_be_is_refused_when_it_is_made(choice, message):
    with pytest.raises(OptionError, match=message):
        make_options(**choice)


def test_workers_are_the_cores_unless_told():
    assert ConvertOptions().num_workers >= 1
    assert ConvertOptions(workers=7).num_workers == 7


def test_strata_of_the_target_need_one_target():
    one = Schema({"a": Number(), "b": Category(role="target")})
    assert ConvertOptions(stratify=True).splits(one).stratify == "b"
    assert ConvertOptions(stratify="a").splits(one).stratify == "a"
    assert ConvertOptions().splits(one).stratify is None
    two = Schema({"a": Number(role="target"), "b": Category(role="target")})
    with pytest.raises(OptionError, match="stratify: expected one target, got 2"):
        ConvertOptions(stratify=True).splits(two)


def test_both_spellings_of_a_tab_are_one_request() -> None:
    assert make_options(delimiter=r"\t") == make_options(delimiter="\t")
