"""Types and roles of fields that flags declare."""

import pytest

from penstock.cli.arguments import read_declaration
from penstock.errors import OptionError
from penstock.jobs.given_dataset import Declaration
from penstock.schema.declaration import ColumnDeclaration
from penstock.settings.command_line import parse
from penstock.settings.commands import INSPECT
from raising import raises_with


def declare(*words: str) -> Declaration:
    return read_declaration(parse(INSPECT, ["pets", *words]))


def test_nothing_is_declared_without_flags():
    assert declare() == Declaration()


def test_types_take_lists_and_may_be_repeated():
    declared = declare("--number", "age,fee", "--number", "height", "--image", "photo", "--category", "breed")
    assert declared.types == {
        "age": "number",
        "fee": "number",
        "height": "number",
        "photo": "image",
        "breed": "category",
    }


@pytest.mark.parametrize("type_name", ["image", "text", "category", "number", "sequence", "bytes"])
def test_every_plain_type_has_its_flag(type_name):
    assert declare(f"--{type_name}", "a").types == {"a": type_name}


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("embedding", {"embedding": ColumnDeclaration("tensor")}),
        ("a:64x64", {"a": ColumnDeclaration("tensor", {"shape": [64, 64]})}),
        ("a:8:uint8", {"a": ColumnDeclaration("tensor", {"shape": [8], "dtype": "uint8"})}),
        ("a:b:8", {"a:b": ColumnDeclaration("tensor", {"shape": [8]})}),
        (
            "a:8:uint8:raw",
            {"a": ColumnDeclaration("tensor", {"shape": [8], "dtype": "uint8", "encoding": "raw"})},
        ),
        ("a:8,b", {"a": ColumnDeclaration("tensor", {"shape": [8]}), "b": ColumnDeclaration("tensor")}),
    ],
)
def test_tensor_takes_a_shape_and_a_dtype(text, types):
    assert declare("--tensor", text).types == types


@pytest.mark.parametrize(("text", "got"), [("a:0", "0"), ("a:2:int7", "'int7'")])
def test_tensor_of_a_wrong_shape_or_dtype_is_refused(text, got):
    with raises_with(OptionError, "--tensor", field="a", got=got):
        declare("--tensor", text)


def test_tensor_without_a_name_is_refused():
    with raises_with(OptionError, "--tensor NAME", field="tensor", got="''"):
        declare("--tensor", " ")


def test_roles_are_declared():
    declared = declare("--target", "a,b", "--target", "c", "--weight", "w", "--id", "i")
    assert (declared.target, declared.weight, declared.id) == (["a", "b", "c"], "w", "i")


@pytest.mark.parametrize("flag", ["--number", "--tensor"])
def test_field_with_two_types_is_refused(flag):
    with raises_with(OptionError, "'a' type two", field="a"):
        declare(flag, "a", "--text", "a")


def test_same_type_may_be_declared_twice():
    assert declare("--number", "a", "--number", "a").types == {"a": "number"}
