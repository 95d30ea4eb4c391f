"""The line `Next:` of the commands for models: each leads to the next one, with names that have spaces."""

import subprocess
from pathlib import Path

import pytest

from pasted_lines import find_next, run_pasted
from penstock.cli import evaluate
from penstock.cli.main import main

pytest.importorskip("keras")

MODEL = """
import keras


def build():
    number = keras.Input((), name="age")
    chance = keras.layers.Dense(1, activation="sigmoid", name="chance")(keras.ops.expand_dims(number, -1))
    return keras.Model({"age": number}, chance)
"""
OWN = ["--model", "my model.py:build"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("my models")
    rows = "".join(f"{n % 13},{('no', 'yes')[n % 13 > 5]}\n" for n in range(80))
    (folder / "my pets.csv").write_text(f"age,sold\n{rows}")
    (folder / "my model.py").write_text(MODEL)
    return folder


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """A run in a folder whose name has a space."""
    monkeypatch.chdir(folder)
    if not Path("my run").exists():
        argv = ["train", "my pets.csv", "--target", "sold", "--out", "my run", "--epochs", "1", *OWN]
        assert main(argv) == 0
        assert find_next(capsys.readouterr().err) == ["penstock", "evaluate", "my run", *OWN]
    return "my run"


def call(capsys, *argv):
    capsys.readouterr()
    assert main(list(argv)) == 0
    return capsys.readouterr().err


def test_model_that_is_shown_leads_to_its_training(run, capsys, monkeypatch):
    err = call(capsys, "train", f"{run}/data", "--show-model", *OWN, "--epochs", "1", "--out", "a run")
    assert find_next(err) == ["penstock", "train", f"{run}/data", *OWN, "--epochs", "1", "--out", "a run"]
    assert run_pasted(err) == 0


def test_training_leads_to_evaluation_and_that_to_a_report(run, capsys):
    err = call(capsys, "train", f"{run}/data", "--out", "another run", "--epochs", "1", *OWN)
    assert run_pasted(err) == 0
    err = capsys.readouterr().err
    assert find_next(err) == ["penstock", "report", "another run", "--out", "another run.html", *OWN]
    assert run_pasted(err) == 0
    assert Path("another run.html").read_text().startswith("<!")
    err = capsys.readouterr().err
    assert "another run.html" in " ".join(find_next(err)).replace("%20", " ")


def test_evaluation_on_other_data_leads_to_predictions_for_it(run, capsys):
    argv = ["evaluate", run, "my pets.csv", "--no-importance", "--bootstrap", "0", "--slice", "age", *OWN]
    err = call(capsys, *argv)
    words = ["penstock", "predict", run, "my pets.csv", *OWN, "--out", "my pets-predicted.csv"]
    assert find_next(err) == words
    assert run_pasted(err) == 0
    err = capsys.readouterr().err
    assert find_next(err) == ["head", "-n", "5", "my pets-predicted.csv"]
    assert run_pasted(err) == 0


def test_evaluation_without_packages_of_reports_leads_to_an_export(run, capsys, monkeypatch):
    monkeypatch.setattr(evaluate, "is_installed", lambda *packages: False)
    err = call(capsys, "evaluate", run, "--no-importance", "--bootstrap", "0", *OWN)
    assert find_next(err) == ["penstock", "export", run, "my run-exported", *OWN]


def test_printed_predictions_lead_to_a_file(run, capsys):
    err = call(capsys, "predict", run, "my pets.csv", *OWN, "--keep", "age")
    words = find_next(err)
    assert words[-2] == "--out"
    assert run_pasted(err) == 0
    assert len(Path(words[-1]).read_text().splitlines()) == 81


def test_predictions_in_parquet_lead_to_a_plan_of_the_table(run, capsys):
    err = call(capsys, "predict", run, "my pets.csv", *OWN, "--out", "my predictions.parquet")
    assert find_next(err) == ["penstock", "convert", "my predictions.parquet", "--plan"]
    assert run_pasted(err) == 0
    assert "sold_probability" in capsys.readouterr().out


def test_export_leads_to_predictions_with_it(run, capsys):
    err = call(capsys, "export", run, "my export", "--no-check", *OWN)
    words = find_next(err)
    assert words[:3] == ["penstock", "predict", "my export"]
    assert words[-4:] == ["--out", "my export-predicted.csv", *OWN]
    assert run_pasted(err) == 0
    assert Path("my export-predicted.csv").read_text().startswith("row,sold,")
    err = call(capsys, "export", run, "checked", "--check-data", "my pets.csv", "--no-check", *OWN)
    assert find_next(err)[:4] == ["penstock", "predict", "checked", "my pets.csv"]


def test_export_of_a_run_whose_data_is_gone_leads_to_a_line_of_python(run, capsys, monkeypatch):
    monkeypatch.setattr("penstock.cli.export._find_rows", lambda args: [])
    err = call(capsys, "export", run, "it's exported", "--no-check", *OWN)
    program, option, code = find_next(err)
    assert (Path(program).name.startswith("python"), option) == (True, "-c")
    assert code == 'import penstock as ps; print(ps.Predictor("it\'s exported"))'


def test_quiet_training_prints_its_result_and_warnings_alone(run, capsys):
    argv = ["train", "my pets.csv", "--target", "sold", "--epochs", "1", *OWN]
    assert main([*argv, "--out", "quiet run", "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert [line[:20] for line in err.splitlines()] == ["penstock: warning: '"]  # age determines the target
    assert out.splitlines()[0].split() == ["validation", "epoch", "1"]
    assert out.endswith("The run is in quiet run.\n")
    assert main([*argv, "--out", "loud run", "--verbose"]) == 0
    out, err = capsys.readouterr()
    assert "options: epochs=1, " in err
    assert "penstock: settings: loud run/run.yaml\n" in err
    assert "penstock: convert: writing: " in err
    assert "column" in out


def test_saved_model_leads_to_a_program_that_loads_it(run, capsys):
    pytest.importorskip("tensorflow")
    err = call(capsys, "export", run, "my saved", "--format", "saved_model", "--no-check", *OWN)
    program, *words = find_next(err)
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True, timeout=120)
    assert "age" in done.stdout
