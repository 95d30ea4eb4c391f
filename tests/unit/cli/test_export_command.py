"""`penstock export`: what it prints, and calls that are wrong."""

import json

import pytest

from exported_runs import share_run
from penstock.cli.main import main
from penstock.jobs.export.check_rows import ask_model
from penstock.transform.pipeline import without_targets

pytest.importorskip("keras")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return share_run(tmp_path_factory)


def test_command_prints_the_largest_difference_of_each_output(run, tmp_path, monkeypatch, capsys):
    def ask_here(chosen, export, rows, model_file):  # in this process, as loading Keras again takes seconds
        opened = chosen.load().open_model(export)
        return ask_model(opened.predictor(), without_targets(opened.pipeline), rows)

    monkeypatch.setattr("penstock.jobs.export.check._ask_process", ask_here)
    assert main(["export", str(run.folder), str(tmp_path / "out")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "40 rows" in lines[0]
    assert [line.split(":")[0].strip() for line in lines[1:4]] == list(run.tasks)
    assert str(tmp_path / "out") in lines[-1]


def test_json_has_the_files_and_no_check_if_there_was_none(run, tmp_path, capsys):
    command = ["export", str(run.folder), str(tmp_path / "out"), "--no-check", "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["check"] is None
    assert found["format"] == "bundle"
    assert "weights.safetensors" in found["files"]
    assert found["bytes"] == sum(path.stat().st_size for path in (tmp_path / "out").iterdir())
    assert main(command) == 2  # it exists now
    assert main([*command, "--overwrite"]) == 0


@pytest.mark.parametrize(
    "arguments",
    [["no-such-run", "out"], ["RUN"], ["RUN", "out", "--format", "pickle"], ["RUN", "out", "--model", "x"]],
)
def test_wrong_call_is_an_error_and_writes_nothing(run, tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    given = [str(run.folder) if each == "RUN" else each for each in arguments]
    assert main(["export", *given]) == 2
    assert "error: " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_data_for_the_check_that_does_not_exist_is_an_error(run, tmp_path, capsys):
    command = ["export", str(run.folder), str(tmp_path / "out"), "--check-data", str(tmp_path / "none.csv")]
    assert main(command) == 2
    assert "none.csv" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
