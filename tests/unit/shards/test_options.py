"""Every choice is checked when it is made."""

import dataclasses

import pytest

from penstock.errors import OptionError
from penstock.fields import Category, Number
from penstock.schema.schema import Schema
from penstock.shards.options import ConvertChoices, ConvertOptions, make_options
from raising import raises_with


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
    ("choice", "facts"),
    [
        ({"split": "train"}, "split NAME=SHARE train=0.8,validation=0.1,test=0.1 'train'"),
        ({"split": "train=0.5"}, "shares 1 0.5"),
        ({"split": {"train": 2}}, "share 'train' 0 1 2"),
        ({"split": {"a/b": 1}}, "split 'a/b'"),
        ({"split": 7}, "split 0.9 7"),
        ({"stratify": "a", "time": "b"}, "split stratify time"),
        ({"group": 5}, "group column 5"),
        ({"stratify": 3}, "stratify column 3"),
        ({"seed": -1}, "seed 0 9223372036854775807 -1"),
        ({"seed": 1.0}, "seed"),
        ({"seed": True}, "seed"),
        ({"shuffle": "no"}, "shuffle True False 'no'"),
        ({"overwrite": 1}, "overwrite True False 1"),
        ({"resume": None}, "resume True False None"),
        ({"shard_bytes": 0}, "shard_bytes 1 0"),
        ({"num_shards": 0}, "num_shards 1 0"),
        ({"workers": 0}, "workers 1 0"),
        ({"engine": "spark"}, "engine local ray spark"),
        ({"address": "head:6379"}, "address local head:6379"),
        ({"resize": "big"}, "resize 1 'big'"),
        ({"max_rejects": -1}, "max_rejects 0 -1"),
        ({"compression": "zstd"}, "compression 'none' 'gzip' 'zstd'"),
        ({"on_error": "ignore"}, "on_error 'raise' 'skip' 'collect' 'ignore'"),
        ({"drop": 5}, "drop list 5"),
        ({"missing": [5]}, "missing list [5]"),
        ({"rename": "a=b"}, "rename 'new' 'a=b'"),
        ({"plan": 5}, "plan 5"),
        ({"delimiter": "ab"}, "delimiter ASCII"),
        ({"encoding": "latin-17"}, "encoding text 'latin-17'"),
        ({"short_rows": "cut"}, "short_rows 'raise' 'fill' 'cut'"),
    ],
)
def test_choice_that_cannot_be_is_refused_when_it_is_made(choice, facts):
    with raises_with(OptionError, facts):
        make_options(**choice)


def test_workers_are_the_cores_by_default():
    assert ConvertOptions().num_workers >= 1
    assert ConvertOptions(workers=7).num_workers == 7


def test_strata_of_the_target_need_one_target():
    one = Schema({"a": Number(), "b": Category(role="target")})
    assert ConvertOptions(stratify=True).splits(one).stratify == "b"
    assert ConvertOptions(stratify="a").splits(one).stratify == "a"
    assert ConvertOptions().splits(one).stratify is None
    two = Schema({"a": Number(role="target"), "b": Category(role="target")})
    with raises_with(OptionError, "stratify", got="2"):
        ConvertOptions(stratify=True).splits(two)


def test_both_spellings_of_a_tab_are_one_request() -> None:
    assert make_options(delimiter=r"\t") == make_options(delimiter="\t")
