"""`penstock train --folds`: raw data is divided into folds, and a folder of folds is no run."""

import json

import pyarrow.parquet as pq
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
    lines = [f"{n % 13},{n},{('no', 'yes')[n % 13 > 5]}\n" for n in range(120)]
    (tmp_path / "pets.csv").write_text("age,key,sold\n" + "".join(lines))
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_folds_of_raw_data_are_trained_resumed_and_scored(folder, capsys):
    argv = ["train", "pets.csv", "--target", "sold", "--id", "key", "--number", "age", "--out", "run"]
    argv += ["--model", "model.py:build", "--epochs", "1", "--folds", "2"]
    assert main(argv) == 0
    out, err = capsys.readouterr()
    assert out == containing("mean", "deviation", "fold-1", "fold-2", "predictions.parquet")
    assert err == containing("without --folds")
    assert find_next(err) == ["penstock", "evaluate", "run/fold-1", "--model", "model.py:build"]
    table = pq.read_table("run/predictions.parquet")
    assert table.column_names[:3] == ["key", "fold", "sold_true"]
    assert table.num_rows == 108
    assert len(set(table["key"].to_pylist())) == 108
    config = read_tables("run/run.yaml")
    assert config["folds"] == {"number": 2}
    assert main(["train", "--resume", "--out", "run", "--model", "model.py:build", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mean"] == config["facts"]["mean"]
    assert found["folds"] == ["run/fold-1", "run/fold-2"]
    # The number of folds of the run is not an option that was given: the advice is not to leave one out.
    assert main(["train", "--resume", "--out", "run", "--ensemble", "3"]) != 0
    assert capsys.readouterr().err == containing(
        "run/run.yaml", "ensemble of the run", "expected no ensemble, got 3"
    )
    assert main(["train", "--resume", "--out", "run", "--model", "model.py:build", "--augment", "none"]) != 0
    assert capsys.readouterr().err == containing("run/run.yaml", "augment", "expected no value, got none")
    assert main(["evaluate", "run", "--model", "model.py:build"]) == 1
    assert capsys.readouterr().err == containing("cross-validation", "fold-1")
    assert main(["evaluate", "run/fold-2", "--model", "model.py:build", "--json", "--no-importance"]) == 0
    assert json.loads(capsys.readouterr().out)["targets"] == found["scores"]["fold-2"]
    assert main(["predict", "run/fold-1", "pets.csv", "--model", "model.py:build", "--out", "new.csv"]) == 0


def test_wrong_folds_are_refused_before_anything_is_converted(folder, capsys):
    argv = ["train", "pets.csv", "--target", "sold", "--out", "run"]
    for more in (["--folds", "1"], ["--folds", "1000"], ["--folds", "2", "--ensemble", "2"]):
        assert main([*argv, *more]) == 2
        assert capsys.readouterr().err == containing("folds")
        assert not (folder / "run").exists()
