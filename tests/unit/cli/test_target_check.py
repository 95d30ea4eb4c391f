"""`penstock train` looks up the target before it loads Keras."""

import json
import subprocess
import sys

import pytest

import penstock as ps
from penstock.cli.dispatch import read_call
from penstock.cli.target_check import check_target
from penstock.errors import OptionError, UnknownNameError
from run_tables import write_tables

PROGRAM = """
import json, sys
from penstock.cli.main import main
for argv in json.loads(sys.argv[1]):
    assert main(argv) == 2, argv
print([name for name in ("keras", "tensorflow", "jax", "torch") if name in sys.modules])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("targets")
    (folder / "pets.csv").write_text("age,name\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(20)))
    ps.convert(folder / "pets.csv", folder / "set")
    return folder


def check(*argv):
    check_target(read_call(["train", *map(str, argv)]))


def test_wrong_target_is_found_without_keras(folder):
    calls = [
        ["train", str(folder / "pets.csv"), "--target", "nama"],
        ["train", str(folder / "pets.csv")],
        ["train", str(folder / "set"), "--target", "nama"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(calls)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
    assert done.stderr.count("Did you mean 'name'?") == 2
    assert "a column to predict" in done.stderr


@pytest.mark.parametrize("data", ["pets.csv", "set"])
def test_target_of_the_data_is_accepted(folder, data):
    check(folder / data, "--target", "name")
    check(folder / data, "--target", "name,age")
    with pytest.raises(UnknownNameError):
        check(folder / data, "--target", "name,nama")


def test_target_may_have_the_new_name_of_a_column(folder):
    assert check(folder / "pets.csv", "--rename", "name=label", "--target", "label") is None


def test_target_of_a_config_file_counts(folder, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("convert:\n  target: name\n")
    check(folder / "pets.csv", "--config", config)
    config.write_text("target: nama\n")
    with pytest.raises(UnknownNameError):
        check(folder / "set", "--config", config)


def test_run_that_is_resumed_knows_its_target(folder, tmp_path):
    write_tables(tmp_path, {"data": "data", "convert": {"target": "name"}})
    check(folder / "pets.csv", "--resume", "--out", tmp_path)
    with pytest.raises(OptionError):
        check(folder / "pets.csv", "--resume", "--out", tmp_path / "new")


def test_objects_and_queries_are_left_to_the_training():
    assert check("s3://animals/pets.csv", "--target", "nama") is None
    assert check("duckdb:///pets.db?query=SELECT 1", "--target", "nama") is None
