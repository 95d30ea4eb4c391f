"""The example that searches for options with Optuna: validation decides, and the search can be repeated."""

import optuna
import pytest

import penstock as ps
from example_scripts import run_example
from run_tables import read_tables

pytest.importorskip("keras")


def test_search_chooses_by_validation_and_finds_the_same_again(tmp_path, monkeypatch):
    # The second search is in the same folder, where it replaces the data and the runs of the first.
    first, second = (run_example("search_options", tmp_path, monkeypatch) for _ in range(2))
    assert [trial.params for trial in first.trials] == [trial.params for trial in second.trials]
    assert [trial.value for trial in first.trials] == [trial.value for trial in second.trials]
    assert all(trial.state == optuna.trial.TrialState.COMPLETE for trial in first.trials)
    for trial in second.trials:
        folder = tmp_path / trial.user_attrs["run"]
        run = ps.open_run(folder)
        assert trial.value == pytest.approx(min(row["val_data_loss"] for row in run.history))
        settings = read_tables(folder / "run.yaml")
        assert settings["train"]["learning_rate"] == trial.params["learning_rate"]
        assert settings["model"]["dropout"] == trial.params["dropout"]
    assert first.best_value == min(trial.value for trial in first.trials)
    assert len({trial.value for trial in first.trials}) == len(first.trials)
