"""Texts become ids of tokens, or rows, as the options say; what does not fit is refused by name."""

import json

import numpy as np
import pytest

from fit_sources import ColumnSource, fit, run, strings
from penstock.columns import Bytes, Ragged
from penstock.errors import OptionError, SchemaError
from penstock.foundation.json_form import JsonValue
from penstock.schema.scalar import Category, Number, Text
from penstock.schema.schema import Schema
from penstock.transform.base import PIPELINE
from penstock.transform.text import Tokenize, TokenizeFit
from raising import containing, raises_with

TRAIN = strings(["The cat sat.", "the DOG sat!", "a cat; a cat", None, ""])
OTHER = strings(["a dog ran, the cat sat", "", None, "THE -- the"])


def fitted(**options):
    return fit(Tokenize(**options), Text(optional=True), TRAIN)


def test_tokenize_by_default_numbers_words_by_frequency_then_in_reverse_order():
    transform = fitted()
    assert transform.tokens == ("", "[UNK]", "cat", "the", "sat", "a", "dog")
    assert transform.num_codes == 7
    ids = run(transform, OTHER)
    assert ids.dtype == np.int32
    assert ids.tolist() == [[5, 6, 1, 3, 2, 4], [0] * 6, [0] * 6, [3, 3, 0, 0, 0, 0]]


@pytest.mark.parametrize("length", [1, 2, 6, 9])
@pytest.mark.parametrize("keep", ["head", "tail"])
def test_tokenize_to_a_length_cuts_or_pads_each_text(length, keep):
    rows = [[5, 6, 1, 3, 2, 4], [], [], [3, 3]]
    cut = [row[:length] if keep == "head" else row[-length:] for row in rows]
    found = run(fitted(length=length, keep=keep, mask=True), OTHER)
    assert found["x"].tolist() == [row + [0] * (length - len(row)) for row in cut]
    assert found["x_mask"].tolist() == [[True] * len(row) + [False] * (length - len(row)) for row in cut]
    ragged = run(fitted(length=length, keep=keep, ragged=True), OTHER)
    assert isinstance(ragged, Ragged)
    assert [ragged[i].tolist() for i in range(4)] == cut


def test_tokenize_to_a_multiple_rounds_the_longest_text_up():
    assert run(fitted(multiple=4), OTHER).shape == (4, 8)
    assert run(fitted(multiple=4, length=7), OTHER).shape == (4, 7)
    assert run(fitted(multiple=4), strings(["", "the"])).tolist() == [[0, 0, 0, 0], [3, 0, 0, 0]]


def test_tokenize_of_a_batch_without_tokens_has_a_column_of_padding():
    assert run(fitted(), strings(["", None, "..."])).tolist() == [[0], [0], [0]]
    assert run(fitted(length=2), strings([])).shape == (0, 2)
    assert run(fitted(), strings([])).shape == (0, 1)


def test_tokenize_to_rows_has_a_slot_for_each_token_but_none_for_padding():
    transform = fitted(output="count")
    assert transform.tokens == ("[UNK]", "cat", "the", "sat", "a", "dog")
    texts = strings(["a a the x y z", None, "dog"])
    assert run(transform, texts).tolist() == [[3, 0, 1, 0, 2, 0], [0] * 6, [0, 0, 0, 0, 0, 1]]
    rows = run(fitted(output="multi_hot"), texts)
    assert rows.dtype == np.float32
    assert rows.tolist() == [[1, 0, 1, 0, 1, 0], [0] * 6, [0, 0, 0, 0, 0, 1]]


def test_tokenize_with_a_vocabulary_size_counts_padding_and_unknown_in():
    assert fitted(vocabulary_size=4).tokens == ("", "[UNK]", "cat", "the")
    assert fitted(vocabulary_size=4, output="count").tokens == ("[UNK]", "cat", "the", "sat")
    assert fitted(vocabulary_size=2).tokens == ("", "[UNK]")
    assert run(fitted(vocabulary_size=2), strings(["the cat"])).tolist() == [[1, 1]]
    assert fitted(vocabulary_size=None).num_codes == 7


@pytest.mark.parametrize(
    ("standardize", "words"),
    [
        ("lower_and_strip", ["cat", "the", "sat", "a", "dog"]),
        (True, ["cat", "the", "sat", "a", "dog"]),
        ("lower", ["the", "cat", "a", "sat.", "sat!", "dog", "cat;"]),
        ("strip", ["cat", "sat", "a", "the", "The", "DOG"]),
        (None, ["cat", "a", "the", "sat.", "sat!", "cat;", "The", "DOG"]),
        (False, ["cat", "a", "the", "sat.", "sat!", "cat;", "The", "DOG"]),
    ],
)
def test_tokenize_standardizes_as_declared(standardize, words):
    assert list(fitted(standardize=standardize).tokens[2:]) == words


def test_tokenize_without_splitting_takes_a_text_as_one_token():
    transform = fitted(split=None)
    assert transform.tokens == ("", "[UNK]", "the dog sat", "the cat sat", "a cat a cat")
    assert [output.describe() for output in transform.outputs("x")] == ["int32 (n, 1)"]
    assert run(transform, strings(["The cat, sat!", "a cat", "", None])).tolist() == [[3], [1], [0], [0]]
    assert run(fitted(split=None, output="count"), strings(["", "a"])).tolist() == [[0] * 4, [1, 0, 0, 0]]


def test_tokenize_with_the_name_of_unknown_tokens_in_texts_keeps_it_out_of_the_vocabulary():
    texts = strings(["[UNK] [UNK] b", "a b"])
    transform = fit(Tokenize(3, standardize=None), Text(), texts)
    assert transform.tokens == ("", "[UNK]", "b")
    assert run(transform, texts).tolist() == [[1, 1, 2], [1, 2, 0]]
    assert fit(Tokenize(None, standardize=None), Text(), texts).tokens == ("", "[UNK]", "b", "a")


def test_tokenize_of_bytes_that_are_no_text_keeps_them_through_json():
    texts = strings([b"\xff\xfe caf\xc3\xa9", b"\xff\xfe A\0b"])
    transform = fit(Tokenize(), Text(), texts)
    assert transform.tokens == ("", "[UNK]", b"\xff\xfe", "café", "a\0b")
    again = Tokenize.from_json(json.loads(json.dumps(transform.to_json())))
    assert again == transform
    assert run(again, texts).tolist() == [[2, 3], [2, 4]]


GIVEN = [["dog", b"caf\xc3\xa9"], ("", "[UNK]", "dog", "café"), np.array(["dog", "café"])]


@pytest.mark.parametrize("given", GIVEN, ids=["list", "with specials", "array"])
def test_tokenize_with_a_vocabulary_takes_it_and_reads_no_texts(given):
    source = ColumnSource(Schema({"x": Text()}), {"x": TRAIN})
    transform = Tokenize(vocabulary=given).fit("x", Text(), source)
    assert source.num_passes == 0
    assert transform.tokens == ("", "[UNK]", "dog", "café")
    assert Tokenize.from_json(transform.to_json()) == transform
    assert run(transform, strings(["the Dog CAFé"])).tolist() == [[1, 2, 3]]


def test_tokenize_of_a_category_of_strings_works_as_of_a_text():
    assert fit(Tokenize(length=2), Category(), strings(["new york", "york"])).tokens[2:] == ("york", "new")


def test_tokenize_of_texts_that_lie_apart_finds_them():
    arena = np.frombuffer(b"--the cat--the--", np.uint8)
    column = Bytes(arena, np.array([2, 11, 0]), np.array([9, 14, 0]))
    assert run(fitted(length=2), column).tolist() == [[3, 2], [3, 0], [0, 0]]


def test_tokenize_promises_its_outputs_before_it_runs():
    def describe(**options):
        return [f"{output.name} {output.describe()}" for output in fitted(**options).outputs("x")]

    assert describe() == ["x int32 (n, ?)"]
    assert describe(length=64, mask=True) == ["x int32 (n, 64)", "x_mask bool (n, 64)"]
    assert describe(length=64, multiple=8) == ["x int32 (n, ?)"]
    assert describe(ragged=True) == ["x int32 ragged (n, ?)"]
    assert describe(output="multi_hot") == ["x float32 (n, 6)"]


def test_tokenize_that_is_not_fitted_is_named():
    with raises_with(OptionError, field="x", got="Tokenize()"):
        Tokenize().outputs("x")


def test_tokenize_of_other_fields_is_refused():
    with raises_with(OptionError, field="age", got=containing("(scalar float32)")) as caught:
        Tokenize().fit("age", Number(), ColumnSource(Schema({"age": Number()}), {}))
    assert caught.value.field == "age"


BAD_OPTIONS = {
    "output": ({"output": "int"}, "output", "Tokenize 'index' 'multi_hot' 'count'"),
    "standardize": (
        {"standardize": "upper"},
        "standardize",
        "'lower_and_strip' 'lower'",
    ),
    "split": ({"split": "character"}, "split", "'whitespace' 'character'"),
    "small": ({"vocabulary_size": 1}, "vocabulary_size", "2"),
    "size": ({"vocabulary_size": "9"}, "vocabulary_size", "2"),
    "length": ({"length": 0}, "length", "1"),
    "rows": ({"output": "count", "length": 3}, "length", "3 output='count'"),
    "rows mask": ({"output": "count", "mask": True}, "mask", "True output='count'"),
    "steps": ({"step_length": 3}, "step_length", "text steps"),
    "ragged": ({"ragged": True, "mask": True}, "mask", "mask ragged"),
    "keep": ({"keep": "middle"}, "keep", "'head' 'tail'"),
    "twice": ({"vocabulary": ["a", "b", "a"]}, "vocabulary[2]", "'a'"),
    "empty": (
        {"vocabulary": ["a", ""]},
        "vocabulary[1]",
        "non-empty ''",
    ),
    "ints": ({"vocabulary": [1, 2]}, "vocabulary[0]", "non-empty 1"),
    "text": ({"vocabulary": "the cat"}, "vocabulary", "list"),
    "unfit": ({"fitted": TokenizeFit(None)}, "fitted", "vocabulary"),
    "same": ({"fitted": TokenizeFit(("a", "a"))}, "fitted", "1 vocabulary"),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_tokenize_refuses_options_that_do_not_fit(case):
    options, place, facts = BAD_OPTIONS[case]
    with raises_with(OptionError, facts, field=place):
        Tokenize(**options)


BAD_FORMS = {
    "kind": ({"kind": "scale"}, "$.kind"),
    "option": ({"vocabulary_syze": 3}, "$.vocabulary_syze"),
    "value": ({"output": "int"}, "$.output"),
    "fitted": ({"fitted": {"vocabulary": None}}, "$.fitted"),
    "fitted key": ({"fitted": {"words": ["a"]}}, "$.fitted.words"),
    "token": ({"fitted": {"vocabulary": ["a", 7]}}, "$.fitted.vocabulary[1]"),
    "bytes": ({"fitted": {"vocabulary": [{"base64": "?"}]}}, "$.fitted.vocabulary[0].base64"),
    "twice": ({"fitted": {"vocabulary": ["a", {"base64": "YQ=="}]}}, "$.fitted"),
}


@pytest.mark.parametrize("case", BAD_FORMS)
def test_tokenize_names_the_path_of_a_fault_in_its_json(case):
    form, place = BAD_FORMS[case]
    with pytest.raises(SchemaError) as caught:
        Tokenize.from_json(form)
    assert caught.value.field == place


def test_unfitted_transform_has_no_tokens():
    for read in (lambda: Tokenize().num_codes, lambda: Tokenize(length=3).tokens):
        with raises_with(OptionError, field="", advice=containing("Pipeline")):
            read()


def test_default_of_the_field_is_in_the_vocabulary():
    column = strings(["a b", "none given"])
    column.present = np.array([True, False])  # as decoding gives it: the default is filled in
    tokenize = fit(Tokenize(), Text(default="none given"), column)
    assert tokenize.tokens == ("", "[UNK]", "none", "given", "b", "a")


def test_fitted_state_has_the_number_of_texts_and_reads_earlier_versions():
    transform = fitted()
    form = transform.fitted.to_json()
    assert form["num_texts"] == transform.num_texts == len(TRAIN)
    assert TokenizeFit.load(JsonValue(form, PIPELINE)) == transform.fitted
    earlier = {"vocabulary": form["vocabulary"]}
    state = TokenizeFit.load(JsonValue(earlier, PIPELINE))
    assert state.num_texts is None
    assert state.to_json() == earlier


def test_tokenize_returns_the_first_ids_of_each_text_and_their_offsets():
    ids, offsets = fitted().tokenize(strings(["the cat", "", "The, the CAT"]), 2)
    the, cat = run(fitted(), strings(["the cat"]))[0].tolist()
    assert ids.tolist() == [the, cat, the, the]
    assert offsets.tolist() == [0, 2, 2, 4]
