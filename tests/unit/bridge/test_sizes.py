"""Lengths in the place of others, what padding is, and arrays that are padded further."""

from __future__ import annotations

import json

import numpy as np
import pytest

import penstock as ps
from penstock.bridge.outputs import Padding, Sizes, find_paddings, pad_array
from penstock.errors import OptionError
from penstock.transform.output import Output
from raising import containing, raises_with


@pytest.mark.parametrize(
    ("length", "size"), [(0, 8), (1, 8), (8, 8), (9, 16), (16, 16), (17, 32), (1000, 1024), (1025, 2048)]
)
def test_size_is_power_of_two_from_eight_on_if_none_is_given(length, size) -> None:
    assert Sizes().find(length) == size


@pytest.mark.parametrize(("length", "size"), [(0, 10), (10, 10), (11, 50), (50, 50), (51, 100), (101, 150)])
def test_size_is_next_of_those_given_and_beyond_them_a_multiple(length, size) -> None:
    assert Sizes((50, np.int64(10), 50)).find(length) == size


def test_length_stays_where_no_size_is_wanted() -> None:
    assert Sizes(()).find(13) == 13


def test_size_goes_no_further_than_the_transform_lets_rows_be() -> None:
    assert Sizes().find(90, most=100) == 100
    assert Sizes().find(60, most=100) == 64
    assert Sizes().find(120, most=100) == 120


@pytest.mark.parametrize("given", [5, "58", [0], [8, -1], [8.0], [True], [None]])
def test_sizes_that_are_none_are_refused(given) -> None:
    with raises_with(OptionError, "sizes", expected=containing("list", 1)):
        Sizes(given)


def test_array_is_padded_in_dimensions_that_vary_alone() -> None:
    array = np.arange(12, dtype=np.int32).reshape(2, 3, 2)
    padded = pad_array(array, Output("x", "int32", (None, 2)), Padding(-1), Sizes((4,)))
    assert padded.shape == (2, 4, 2)
    assert padded.dtype == np.int32
    assert padded[:, :3].tolist() == array.tolist()
    assert padded[:, 3].tolist() == [[-1, -1]] * 2
    both = pad_array(array, Output("x", "int32", (None, None)), Padding(0, most=3), Sizes((4,)))
    assert both.shape == (2, 3, 4)


def test_array_of_a_size_is_not_copied() -> None:
    array = np.zeros((2, 8), np.float32)
    assert pad_array(array, Output("x", "float32", (None,)), Padding(), Sizes()) is array
    assert pad_array(array, Output("x", "float32", (8,)), Padding(), Sizes((9,))) is array


TOKENIZER = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "normalizer": None,
    "pre_tokenizer": {"type": "Whitespace"},
    "post_processor": None,
    "decoder": None,
    "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "[UNK]": 2, "[PAD]": 3}, "unk_token": "[UNK]"},
}


def test_padding_of_each_output_equals_padding_of_its_transform(tmp_path) -> None:
    pytest.importorskip("tokenizers")
    (tmp_path / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    columns = {
        "codes": [["x"], ["y", "x"]],
        "numbers": [[1], [2, 3]],
        "scaled": [[1.0], [2.0, 3.0]],
        "text": ["a b", "b"],
        "words": ["a b", "b"],
        "y": [0, 1],
    }
    fields = {"text": ps.fields.Text(), "words": ps.fields.Text()}
    data = ps.convert(columns, tmp_path / "data", target="y", fields=fields, split="train=1.0")
    transform = ps.transform
    pipeline = ps.Pipeline.fit(
        data,
        numbers=transform.Pad(value=-1, multiple=2, length=6, mask=True),
        scaled=transform.Scale(mask=True),
        text=transform.Tokenize(tokenizer=tmp_path / "tokenizer.json", mask=True),
    )
    paddings = find_paddings(pipeline.assembly)
    assert {name: paddings[name] for name, output in pipeline.inputs.items() if None in output.shape} == {
        "codes": (0, None),
        "numbers": (-1, 6),
        "numbers_mask": (False, 6),
        "scaled": (0, None),
        "scaled_mask": (False, None),
        "text": (3, None),
        "text_mask": (False, None),
        "words": (0, None),
    }


def test_stored_values_have_no_padding(tmp_path) -> None:
    data = ps.convert({"x": [1, 2], "y": [0, 1]}, tmp_path / "data", target="y", split="train=1.0")
    assert find_paddings(data["train"].loader(batch_size=2).pipeline) == {}
