"""Raw data of `penstock train`: flags beside the table of a file."""

import pytest

from penstock.cli.dispatch import read_call
from penstock.cli.raw_data import read_raw
from penstock.errors import SchemaError
from penstock.settings.command_line import WrongCall
from penstock.settings.conversion import ConvertTable
from raising import mentions, raises_with


def read(known, *argv):
    return read_raw(read_call(["train", "pets.csv", *argv]), known, "pets.csv")


def test_flags_override_the_table_of_a_file():
    known = ConvertTable(seed=3, split_by="part", target="sold", drop=["name"], rename={"a": "b"})
    raw = read(known, "--seed", "7", "--target", "price,kind", "--number", "age", "--threads", "2")
    changed = known.replace(seed=7, target=("price", "kind"))
    assert (raw.options, raw.types) == (changed, {"age": "number"})
    assert read(known).options == known
    assert read(None).options == ConvertTable()


def test_columns_of_flags_and_of_the_table_are_left_out_and_renamed():
    known = ConvertTable(drop=["name"], rename={"a": "b", "c": "d"})
    raw = read(known, "--drop", "x,y", "--drop", "name", "--rename", "c=e")
    assert (raw.options.drop, raw.options.rename) == (("x", "y", "name"), {"a": "b", "c": "e"})
    with raises_with(WrongCall, "--rename 'a'"):
        read(None, "--rename", "a=b,a=c")


def test_plan_file_with_a_fault_is_named_with_its_line(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text("columns:\n  a: {type: txet}\n")
    with pytest.raises(SchemaError) as caught:
        print(read(None, "--plan-file", str(path)).config)
    assert mentions(caught.value, f"{path} 2 columns.a.type 'text'")
