"""Raw data of a run: its tables in `run.yaml`, and the options that they give again."""

import json
from pathlib import Path

import pytest

from penstock.jobs.train.raw_data import RawData, list_paths
from penstock.schema.declaration import ColumnDeclaration
from penstock.settings.conversion import ConvertTable
from penstock.training.run_config import RunConfig


def test_tables_have_the_given_settings_and_return_them():
    options = ConvertTable(target=["sold"], seed=7, drop="name", split="train=0.9,test=0.1")
    tables = RawData("toys.csv", options, paths=list_paths("toys.csv")).config.to_json()
    assert list(tables["convert"]) == ["split", "seed", "target", "drop"]
    assert tables["convert"]["target"] == "sold"  # as every version has written one target
    assert tables["source"] == str(Path.cwd() / "toys.csv")
    assert RunConfig.from_json(json.loads(json.dumps(tables))).convert == options


def test_tables_have_the_content_of_a_plan_file_with_declared_types(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text("columns:\n  price: {type: number}\n  sold: {type: number}\n")
    types = {"sold": "category", "mask": ColumnDeclaration("tensor", {"shape": [9, 9]})}
    plan = RawData("toys.csv", ConvertTable(plan=path), types).config.convert.plan
    assert plan["columns"] == {
        "price": {"type": "number"},
        "sold": {"type": "category"},
        "mask": {"type": "tensor", "shape": [9, 9]},
    }
    assert RawData("toys.csv", ConvertTable(plan=plan)).config.convert.plan == plan


@pytest.mark.parametrize(
    ("source", "paths"),
    [
        ({"price": [1.0]}, ()),
        ("s3://toys/a.csv", ("s3://toys/a.csv",)),
        ("duckdb:///toys.db?query=SELECT 1", ("duckdb:///toys.db?query=SELECT 1",)),
        (["/a.csv", Path("/b.csv")], ("/a.csv", "/b.csv")),
    ],
)
def test_source_is_named_if_it_can_be_opened_again(source, paths):
    assert list_paths(source) == paths
