"""`penstock train --ensemble`: raw data is converted once, and the commands use the average."""

import json

import pytest

from pasted_lines import find_next
from penstock.cli.main import main
from raising import containing
from run_tables import read_tables

pytest.importorskip("keras")

MODEL = """
import keras


def build():
    number = keras.Input((), name="age")
    chance = keras.layers.Dense(1, activation="sigmoid", name="chance")(keras.ops.expand_dims(number, -1))
    return keras.Model({"age": number}, chance)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    lines = [f"{n % 13},{('no', 'yes')[n % 13 > 5]}\n" for n in range(120)]
    (tmp_path / "pets.csv").write_text("age,sold\n" + "".join(lines))
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_ensemble_of_raw_data_is_trained_resumed_evaluated_and_predicted(folder, capsys):
    argv = ["train", "pets.csv", "--target", "sold", "--out", "run", "--model", "model.py:build"]
    assert main([*argv, "--epochs", "1", "--ensemble", "2", "--number", "age"]) == 0
    out, err = capsys.readouterr()
    assert out == containing("member-1", "member-2", "average")
    assert find_next(err) == ["penstock", "evaluate", "run", "--model", "model.py:build"]
    assert not (folder / "run" / "member-1" / "data").exists()
    assert read_tables("run/member-1/run.yaml")["data"] == "../data"
    assert read_tables("run/run.yaml")["ensemble"] == {"members": 2}
    assert main(["train", "--resume", "--out", "run", "--model", "model.py:build", "--ensemble", "3"]) == 1
    assert capsys.readouterr().err == containing("ensemble", "expected 2", "got 3")
    argv = ["train", "--resume", "--out", "run", "--model", "model.py:build", "--json"]
    assert main(argv) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["run"] for each in found["members"]] == ["run/member-1", "run/member-2"]
    assert set(found["scores"]) == {"member-1", "member-2", "average"}
    assert main(["evaluate", "run", "--model", "model.py:build", "--json", "--no-importance"]) == 0
    assert set(json.loads(capsys.readouterr().out)["members"]) == {"member-1", "member-2"}
    assert main(["evaluate", "run/member-1", "--model", "model.py:build", "--no-importance"]) == 0
    assert main(["predict", "run", "pets.csv", "--model", "model.py:build", "--out", "new.csv"]) == 0
    assert len((folder / "new.csv").read_text().splitlines()) == 121


def test_single_run_is_not_resumed_as_an_ensemble(folder, capsys):
    argv = ["train", "pets.csv", "--target", "sold", "--out", "run", "--model", "model.py:build"]
    assert main([*argv, "--epochs", "1", "--number", "age"]) == 0
    assert main([*argv, "--resume", "--ensemble", "2"]) == 1
    assert capsys.readouterr().err == containing("ensemble", "expected no ensemble", "got 2")
    assert main([*argv, "--ensemble", "2"]) == 2
    assert capsys.readouterr().err == containing("already exists")
    assert main(["train", "pets.csv", "--target", "sold", "--out", "new", "--ensemble", "1"]) == 2
    assert not (folder / "new").exists()
