"""Every option of a conversion is checked when it is made; earlier keywords are taken."""

import pytest

import penstock as ps
from penstock.errors import OptionError
from penstock.settings.conversion import ConvertOptions
from raising import raises_with


def test_texts_stand_for_their_meaning():
    options = ConvertOptions(split="train=0.9,test=0.1", drop="name", missing="NA")
    assert options.split == {"train": 0.9, "test": 0.1}
    assert (options.drop, options.missing) == (("name",), ("NA",))
    assert ConvertOptions(drop=["a", "b"]).drop == ("a", "b")
    assert ConvertOptions(delimiter=r"\t") == ConvertOptions(delimiter="\t")


@pytest.mark.parametrize(
    ("choice", "facts"),
    [
        ({"split": "train=0.5"}, "split 1 0.5"),
        ({"stratify": "a", "time": "b"}, "time stratify"),
        ({"seed": -1}, "seed 0 9223372036854775807 -1"),
        ({"seed": 1.0}, "seed"),
        ({"seed": True}, "seed"),
        ({"shuffle": "no"}, "shuffle True False 'no'"),
        ({"overwrite": 1}, "overwrite True False 1"),
        ({"resume": None}, "resume True False None"),
        ({"shard_bytes": 0}, "shard_bytes 1 0"),
        ({"num_shards": 0}, "num_shards 1 0"),
        ({"num_threads": 0}, "num_threads 1 0"),
        ({"engine": "spark"}, "engine local ray spark"),
        ({"address": "head:6379"}, "address local head:6379 engine='ray'"),
        ({"resize": "big"}, "resize 1 'big'"),
        ({"max_skipped": -1}, "max_skipped 0 -1"),
        ({"compression": "zstd"}, "compression 'none' 'gzip' 'zstd'"),
        ({"on_error": "ignore"}, "on_error 'raise' 'skip' 'collect' 'ignore'"),
        ({"drop": 5}, "drop list 5"),
        ({"missing": [5]}, "missing list [5]"),
        ({"rename": "a=b"}, "rename by name 'a=b'"),
        ({"plan": 5}, "plan 5"),
        ({"delimiter": "ab"}, "delimiter ASCII"),
        ({"encoding": "latin-17"}, "encoding text 'latin-17'"),
        ({"short_rows": "cut"}, "short_rows 'raise' 'fill' 'cut'"),
        ({"shard_size": 5}, "option 'shard_size' ConvertOptions"),
    ],
)
def test_choice_that_cannot_be_is_refused_when_it_is_made(choice, facts):
    with raises_with(OptionError, facts):
        ConvertOptions(**choice)


def test_keywords_of_earlier_versions_are_taken_with_a_warning(tmp_path):
    with pytest.warns(FutureWarning, match="workers is now num_threads") as caught:
        data = ps.convert({"a": [1, 2, 3]}, tmp_path / "out", workers=1)
    assert (caught[0].filename, len(data["train"])) == (__file__, 1)
    with pytest.warns(FutureWarning, match="max_rejects is now max_skipped"):
        assert ConvertOptions(max_rejects=5).max_skipped == 5


def test_unknown_keyword_of_convert_names_the_nearest(tmp_path):
    with raises_with(OptionError, "ps.convert 'num_shard' num_shards"):
        ps.convert({"a": [1, 2, 3]}, tmp_path / "out", num_shard=1)
