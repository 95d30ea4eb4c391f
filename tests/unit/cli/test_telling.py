"""What can be told of fields on the command line."""

import argparse

import pytest

from penstock.cli.telling import add_telling, parse_tensor, told_fields
from penstock.errors import OptionError
from penstock.fields import Tensor


def tell(*argv: str) -> dict:
    parser = argparse.ArgumentParser()
    add_telling(parser)
    return told_fields(parser.parse_args(argv))


@pytest.mark.parametrize(
    ("text", "name", "tensor"),
    [
        ("image:64x64:float32", "image", Tensor((64, 64), "float32")),
        ("image:64x64x3:uint8", "image", Tensor((64, 64, 3), "uint8")),
        ("v:8", "v", Tensor((8,), "float32")),
        ("a:b:2x2", "a:b", Tensor((2, 2))),
        ("a:3:b:2x2:int64", "a:3:b", Tensor((2, 2), "int64")),
        ("m:4:float16:raw", "m", Tensor((4,), "float16", "raw")),
        ("steps/state:7:float64", "steps/state", Tensor((7,), "float64")),
    ],
)
def test_parse_tensor_reads_name_shape_dtype_and_encoding(text, name, tensor) -> None:
    assert parse_tensor(text) == (name, tensor)


@pytest.mark.parametrize(
    "text", ["", "image", "image:", ":3x3", "image:axb", "image:3x", "image:3x3:", "a:-1"]
)
def test_parse_tensor_of_another_form_shows_the_form(text) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"expected NAME:DIMS.*such as image:64x64:float32"):
        parse_tensor(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a:0x3", "expected a positive int, got 0"),
        ("a:3:float99", "got 'float99'"),
        ("a:99999x99999", "2147483647"),
    ],
)
def test_parse_tensor_that_cannot_be_says_why(text, said) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=said):
        parse_tensor(text)


def test_told_names_are_split_at_commas_and_options_may_come_again() -> None:
    told = tell(
        "--image", "a,b", "--image", "c", "--text", "d", "--target", "y,z", "--id", "k", "--weight", "w"
    )
    assert told == {
        "fields": {},
        "types": {"a": "image", "b": "image", "c": "image", "d": "text"},
        "target": ["y", "z"],
        "weight": "w",
        "id": "k",
    }


def test_told_nothing_is_nothing() -> None:
    assert tell() == {"fields": {}, "types": {}, "target": None, "weight": None, "id": None}


@pytest.mark.parametrize(
    "argv",
    [
        ("--image", "a", "--text", "a"),
        ("--tensor", "a:3", "--number", "a"),
        ("--tensor", "a:3", "--tensor", "a:4"),
    ],
)
def test_told_twice_is_refused(argv) -> None:
    with pytest.raises(OptionError, match="field 'a': expected one type, got two"):
        tell(*argv)
