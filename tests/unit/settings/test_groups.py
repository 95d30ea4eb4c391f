"""Groups of options are checked when they are made."""

import pytest

from penstock.errors import OptionError
from penstock.settings.groups import MAX_SPLITS, Splits, TextFiles
from raising import raises_with


def test_usual_options_of_text_files():
    options = TextFiles()
    assert (options.delimiter, options.encoding, options.missing, options.short_rows) == (
        None,
        "utf-8",
        ("",),
        "raise",
    )


def test_options_of_text_files_are_normalised():
    options = TextFiles(encoding="Latin-1", missing=["", "NA"], header=None)
    assert (options.encoding, options.missing, options.header) == ("iso8859-1", ("", "NA"), "none")


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"delimiter": ""}, "delimiter ASCII"),
        ({"delimiter": ";;"}, "';;'"),
        ({"delimiter": '"'}, "delimiter '\"'"),
        ({"delimiter": "\n"}, "delimiter '\\n'"),
        ({"delimiter": "§"}, "'§'"),
        ({"delimiter": b","}, "b','"),
        ({"encoding": "utf-9"}, "encoding text 'utf-9'"),
        ({"encoding": "base64"}, "'base64'"),
        ({"encoding": None}, "None"),
        ({"header": "last"}, "header 'first' 'none' 'last'"),
        ({"missing": (None,)}, "missing (None,)"),
        ({"short_rows": "skip"}, "short_rows 'raise' 'fill' 'skip'"),
    ],
)
def test_impossible_options_of_text_files_are_refused(options, facts):
    with raises_with(OptionError, facts):
        TextFiles(**options)


def test_usual_splits():
    split = Splits()
    assert split.shares == {"train": 0.8, "validation": 0.1, "test": 0.1}
    assert split.strata is None


def test_shares_parse_in_their_order():
    shares = Splits(split="train=0.7, dev=0.2,test=.1").shares
    assert list(shares.items()) == [("train", 0.7), ("dev", 0.2), ("test", 0.1)]


def test_strata_are_values_of_a_named_field():
    assert Splits(stratify="breed").strata == "breed"
    assert Splits(stratify=True).strata is None


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"split": {"train": 0.8, "test": 0.1}}, "split sum 1 0.1"),
        ({"split": {"train": 1.0, "test": 0}}, "split['test'] above 0"),
        ({"split": {"a/b": 1.0}}, "split letters 'a/b'"),
        ({"split": {}}, f"split 1 {MAX_SPLITS} {{}}"),
        ({"split": {f"s{n}": 1 / 256 for n in range(256)}}, f"split 1 {MAX_SPLITS}"),
        ({"split": "train"}, "split train=0.9,test=0.1 'train'"),
        ({"split": "a=0.5,a=0.5"}, "split once"),
        ({"split": "a=0.5"}, "split sum 1 'a=0.5'"),
        ({"split": "a=nan"}, "split above 0 a=nan"),
        ({"split": 7}, "split 7"),
        ({"split": "a=1", "split_by": "fold"}, "split split_by a"),
        ({"stratify": "breed", "time": "when"}, "time stratify 'when'"),
        ({"stratify": ""}, "stratify field ''"),
        ({"group": 5}, "group column 5"),
    ],
)
def test_impossible_splits_are_refused(options, facts):
    with raises_with(OptionError, facts):
        Splits(**options)
