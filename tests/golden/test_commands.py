"""What commands show and print: the full help of each, and the keys of what `--json` prints.

`python tests/golden/test_commands.py` writes the helps again, where a change of them is meant.
"""

import json
import os
import sys
from pathlib import Path

import pytest

import penstock as ps
from penstock.cli.main import main
from penstock.settings.commands import COMMANDS

HELPS = Path(__file__).parent / "helps"
COLUMNS = "110"
ROWS = "id,age,kind,adopted\n" + "".join(f"{n},{n % 7}.5,{'abc'[n % 3]},{'ny'[n % 2]}\n" for n in range(40))
KEYS = {
    "convert": "bytes notes out records rejects rows schema split splits",
    "inspect": "bytes classes compression fields files manifest payload records",
    "verify": "bytes faults files records",
    "repair": "bytes_lost failed files kept losses lost notes out",
}
MODEL_KEYS = {
    "train": "best best_epoch choices data epochs parameters run seconds steps trial_seconds warnings",
    "evaluate": "ablation ablation_by_target baselines calibrated classes confusion curves data importance "
    "importance_by_target importance_records intervals left_out_parts left_out_reasons missing_columns "
    "mistakes notes part_trials parts_by_target records slices split targets tasks thresholds unread",
    "predict": "columns notes out rejected rows seconds skipped",
    "export": "bytes check details files format out seconds",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_full_help_equals_the_file(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", COLUMNS)
    assert main([name, "--help-all"]) == 0
    assert capsys.readouterr().out == (HELPS / f"{name}.txt").read_text()


def test_keys_of_json_equal_keys_of_earlier_versions(tmp_path, capsys):
    table, data = tmp_path / "pets.csv", tmp_path / "pets"
    table.write_text(ROWS)
    shard = data / "train-00000-of-00001.tfrecord"
    calls = {
        "convert": [table, data, "--target", "adopted"],
        "inspect": [data],
        "verify": [data],
        "repair": [shard, tmp_path / "repaired"],
    }
    assert list_keys(calls, capsys) == KEYS


def test_keys_of_json_of_models_equal_keys_of_earlier_versions(tmp_path, capsys):
    table, data, run = tmp_path / "pets.csv", tmp_path / "pets", tmp_path / "run"
    table.write_text(ROWS)
    ps.convert(table, data, target="adopted")
    calls = {
        "train": [data, "--out", run, "--epochs", "1"],
        "evaluate": [run, "--bootstrap", "5", "--importance-records", "5"],
        "predict": [run, table, "--out", tmp_path / "new.csv"],
        "export": [run, tmp_path / "export", "--no-check"],
    }
    assert list_keys(calls, capsys) == MODEL_KEYS


def list_keys(calls, capsys):
    """Run commands, and return the names in what they print."""
    found = {}
    for name, words in calls.items():
        assert main([name, *map(os.fspath, words), "--json"]) == 0
        found[name] = " ".join(sorted(json.loads(capsys.readouterr().out)))
    return found


if __name__ == "__main__":
    os.environ["COLUMNS"] = COLUMNS
    HELPS.mkdir(exist_ok=True)
    for name in COMMANDS:
        with (HELPS / f"{name}.txt").open("w") as sys.stdout:
            main([name, "--help-all"])
