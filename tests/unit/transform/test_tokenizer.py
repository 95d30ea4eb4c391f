"""Texts are cut as a Hugging Face tokenizer.json says, whose content the transform keeps."""

import json
import sys

import pytest

from fit_sources import fit, run, strings
from penstock.errors import MissingPackageError, NoSuchPathError, OptionError, PathError
from penstock.schema.scalar import Text
from penstock.transform.text import Tokenize
from raising import raises_with


def make_tokenizer(**changes):
    vocabulary = {"[PAD]": 3, "[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "the": 4, "cat": 5, "sat": 9}
    special = {name: {"id": name, "ids": [vocabulary[name]], "tokens": [name]} for name in ("[CLS]", "[SEP]")}
    ends = [{"SpecialToken": {"id": name, "type_id": 0}} for name in ("[CLS]", "[SEP]")]
    single = [ends[0], {"Sequence": {"id": "A", "type_id": 0}}, ends[1]]
    form = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": single,
            "pair": [*single, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": special,
        },
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }
    return {**form, **changes}


@pytest.fixture
def path(tmp_path):
    pytest.importorskip("tokenizers")
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(make_tokenizer(), indent=2), "utf-8")
    return file


def test_tokenizer_file_says_how_texts_are_cut_and_travels_with_the_pipeline(path):
    transform = fit(Tokenize(tokenizer=path), Text(optional=True), strings(["never read"]))
    wanted = [[1, 4, 0, 5, 9, 2], [1, 2, 3, 3, 3, 3], [1, 2, 3, 3, 3, 3], [1, 0, 2, 3, 3, 3]]
    texts = strings(["The DOG cat sat", "", None, b"\xff"])
    assert run(transform, texts).tolist() == wanted
    assert (transform.num_codes, transform.tokens[4:]) == (10, ("the", "cat", "", "", "", "sat"))
    form = json.loads(json.dumps(transform.to_json()))
    path.unlink()
    again = Tokenize.from_json(form)
    assert again == transform
    assert run(again, texts).tolist() == wanted


def test_tokenizer_file_with_a_length_keeps_its_special_tokens(path):
    texts = strings(["the cat sat the", "cat"])

    def cut(**options):
        return run(fit(Tokenize(tokenizer=path, **options), Text(), texts), texts)

    assert cut(length=4).tolist() == [[1, 4, 5, 2], [1, 5, 2, 3]]
    assert cut(length=4, keep="tail").tolist() == [[1, 9, 4, 2], [1, 5, 2, 3]]
    assert cut(multiple=4).tolist() == [[1, 4, 5, 9, 4, 2, 3, 3], [1, 5, 2, 3, 3, 3, 3, 3]]
    masked = cut(length=4, mask=True)
    assert masked["x_mask"].tolist() == [[True] * 4, [True, True, True, False]]
    ragged = cut(ragged=True, length=4)
    assert [ragged[0].tolist(), ragged[1].tolist()] == [[1, 4, 5, 2], [1, 5, 2]]


def test_tokenizer_file_brings_its_own_length_and_padding():
    pytest.importorskip("tokenizers")
    padding = {"strategy": {"Fixed": 9}, "direction": "Left", "pad_to_multiple_of": None}
    padding |= {"pad_id": 7, "pad_type_id": 0, "pad_token": "x"}
    truncation = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    content = json.dumps(make_tokenizer(padding=padding, truncation=truncation))
    texts = strings(["the cat", ""])
    assert run(fit(Tokenize(tokenizer=content), Text(), texts), texts).tolist() == [[1, 4, 2], [1, 2, 7]]
    assert run(fit(Tokenize(tokenizer=content, length=4), Text(), texts), texts).tolist() == [
        [1, 4, 5, 2],
        [1, 2, 7, 7],
    ]


def test_tokenizer_file_that_is_written_in_another_way_makes_an_equal_transform(path):
    compact = json.dumps(make_tokenizer(), separators=(",", ":"))
    assert Tokenize(tokenizer=compact) == Tokenize(tokenizer=path) == Tokenize(tokenizer=str(path))


@pytest.mark.parametrize(
    ("options", "place", "facts"),
    [
        ({"length": 2}, "length", "2 tokens"),
        ({"output": "count"}, "output", "'count'"),
        ({"standardize": None}, "standardize", "None"),
        ({"vocabulary": ["a"]}, "vocabulary", "vocabulary Tokenize"),
        ({"tokenizer": "{"}, "tokenizer", "JSON"),
        ({"tokenizer": "{}"}, "tokenizer", "tokenizer Tokenize"),
        ({"tokenizer": 7}, "tokenizer", "Face tokenizer.json 7"),
    ],
)
def test_tokenizer_options_that_do_not_fit_are_refused(path, options, place, facts):
    with raises_with(OptionError, facts, field=place):
        Tokenize(**{"tokenizer": path, **options})


def test_tokenizer_file_that_cannot_be_read_is_named(path, tmp_path):
    with raises_with(NoSuchPathError, "nowhere.json"):
        Tokenize(tokenizer=tmp_path / "nowhere.json")
    with raises_with(PathError, "(Is a directory)", path=str(tmp_path)):
        Tokenize(tokenizer=tmp_path)
    path.write_bytes(b"\xff\xfe")
    with raises_with(OptionError, "tokenizer.json UTF-8", field="tokenizer"):
        Tokenize(tokenizer=path)


def test_tokenizer_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.delitem(sys.modules, "penstock.transform.tokenizer", raising=False)
    with raises_with(MissingPackageError, "'tokenizers'"):
        Tokenize(tokenizer="tokenizer.json")
