"""Options that declare columns: what they accept, and what reaches the job."""

import argparse

import pytest

from penstock.cli.convert import read_overrides
from penstock.cli.option_groups import add_columns
from penstock.errors import NoSuchPathError, OptionError, SchemaError
from penstock.plan.planner import PlanOverrides
from penstock.schema.declaration import ColumnDeclaration
from raising import containing, mentions, raises_with


def declare(*argv: str) -> PlanOverrides:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_columns(parser)
    return read_overrides(parser.parse_args(argv))


def test_nothing_declared_overrides_nothing():
    assert declare() == PlanOverrides()


def test_types_take_lists_and_come_again():
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


@pytest.mark.parametrize(
    ("argv", "facts"),
    [
        (("--rename", "old"), "OLD=NEW 'old'"),
        (("--rename", "=new"), "OLD=NEW '=new'"),
    ],
)
def test_option_of_another_form_is_refused(argv, facts):
    with raises_with(argparse.ArgumentError, facts):
        declare(*argv)


@pytest.mark.parametrize(("text", "got"), [("a:0", "0"), ("a:2:int7", "'int7'")])
def test_tensor_of_a_wrong_shape_or_dtype_is_refused(text, got):
    with pytest.raises(OptionError) as caught:
        declare("--tensor", text)
    assert (caught.value.field, caught.value.got) == ("a", got)


def test_roles_names_and_columns_to_drop_are_declared():
    declared = declare(
        "--target", "a,b", "--weight", "w", "--id", "i", "--drop", "x,y", "--rename", "o=n,p=q"
    )
    assert declared.target == ["a", "b"]
    assert (declared.weight, declared.id, declared.drop) == ("w", "i", ("x", "y"))
    assert declared.rename == {"o": "n", "p": "q"}


@pytest.mark.parametrize(
    ("argv", "noun"),
    [
        (("--number", "a", "--text", "a"), "type"),
        (("--tensor", "a", "--text", "a"), "type"),
        (("--rename", "a=b,a=c"), "name"),
    ],
)
def test_column_declared_twice_is_refused(argv, noun):
    with raises_with(OptionError, f"'a' {noun}"):
        declare(*argv)


def test_plan_file_is_read(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text("\ufeffcolumns:\n  a: {type: text}\n", encoding="utf-8")
    assert declare("--plan-file", str(path)).form == {"columns": {"a": {"type": "text"}}}


def test_plan_file_that_does_not_exist_is_named(tmp_path):
    with raises_with(NoSuchPathError, path=str(tmp_path / "none.yaml")):
        declare("--plan-file", str(tmp_path / "none.yaml"))


def test_plan_file_with_a_fault_is_named_with_its_line(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text("columns:\n  a: {type: txet}\n")
    with raises_with(SchemaError, f"{path} 2 columns.a.type 'number'") as caught:
        declare("--plan-file", str(path))
    assert mentions(caught.value, "'text'")
    path.write_bytes(b"\xff\xfe")
    with raises_with(SchemaError, expected="UTF-8", got=containing("0xff", 0)):
        declare("--plan-file", str(path))


def test_same_declaration_twice_counts_once():
    assert declare("--number", "a", "--number", "a").types == {"a": "number"}


def test_roles_of_one_column_that_contradict_are_refused():
    with raises_with(OptionError, "column", field="a"):
        declare("--target", "a", "--id", "a")


def test_no_target_is_none():
    assert declare().target is None
    assert declare("--target", "a", "--target", "b").target == ["a", "b"]
