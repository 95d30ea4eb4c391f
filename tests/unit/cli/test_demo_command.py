"""What `penstock demo` prints."""

import json
import re
import subprocess
import sys

import pytest

from penstock.cli import demo
from penstock.cli.main import main
from penstock.examples import flowers


def test_demo_prints_every_command_and_its_output(tmp_path, capsys) -> None:
    folder = tmp_path / "demo"
    assert main(["demo", "--data", "--out", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert err == f"Next: penstock view {folder}/flowers\n"
    assert out.startswith(f"Working in {folder}\n\n$ penstock convert ")
    assert re.findall(r"^\$ penstock (.+)$", out, re.MULTILINE) == [
        "convert flowers.csv flowers --id id --target sets_seed",
        "inspect flowers",
        "bench flowers --batch-size 64 --seconds 1",
        "convert flowers.csv more.csv more_flowers --id id --target sets_seed",
        "convert flowers.csv more.csv more_flowers --id id --target sets_seed --on-error collect",
        "verify damaged",
        "repair damaged repaired",
    ]
    assert "penstock: note: 'plot': " in out
    assert "\nA batch: {'photo': (64, 16, 16, 3), 'note': (64, 12), 'petal_cm': (64,), 'soil': (64,), " in out
    assert "\nThe rest of an epoch, resumed in another loader: 2 batches\n" in out
    assert re.search(r"\nBottleneck: \w+\.\nCores used: .+\.\nAdvice: .+\.\n", out)
    assert "penstock: error: more.csv: column 'photo' in row 8 (line 9): expected " in out
    assert "record 17 at byte " in out
    assert "kept 308 records in repaired; LOST 1 record" in out


def test_demo_json_is_one_object(tmp_path, capsys) -> None:
    assert main(["demo", "--data", "--json", "--out", str(tmp_path / "demo")]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    results = json.loads(out)
    assert (results["rows"], results["rejected"], results["kept"]) == (300, 1, 308)
    assert results["shapes"][0]["visit_hours"] == [64, 8]
    assert results["folder"] == str(tmp_path / "demo" / "flowers")
    assert results["seconds"] > 0


def test_demo_of_the_data_needs_no_framework(tmp_path) -> None:
    program = """
import sys
for name in ("tensorflow", "keras", "torch", "jax", "tokenizers"):
    sys.modules[name] = None  # as if it were not installed
from penstock.cli.main import main
sys.exit(main(["demo", "--data", "--json", "--out", sys.argv[1]]))
"""
    command = [sys.executable, "-W", "error", "-c", program, str(tmp_path / "demo")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def no_training(monkeypatch) -> list[str]:
    """Replace the program with a short one, and return the list of the parts that are run."""
    called: list[str] = []

    def convert_flowers(run, num_flowers):
        called.append(f"{num_flowers} flowers")
        return {"rows": num_flowers}, {"flower-1": "yes"}

    def train_models(run, answers, epochs):
        called.append(f"models, {epochs} epochs")
        print(f"{answers}: {run('inspect nowhere')}")
        return {"right": 1, "report": "report.html", "run": "my runs/all"}

    def explore_data(run):
        called.append("data")
        return {"kept": 308}

    monkeypatch.setattr(flowers, "convert_flowers", convert_flowers)
    monkeypatch.setattr(flowers, "train_models", train_models)
    monkeypatch.setattr(flowers, "explore_data", explore_data)
    monkeypatch.setattr(demo, "import_quietly", called.append)
    return called


@pytest.mark.parametrize(
    ("program", "typed"),
    [(".venv/bin/penstock", ".venv/bin/penstock"), ("/usr/lib/x/__main__.py", "penstock")],
)
def test_demo_ends_with_the_report_and_suggests_the_viewer(
    program, typed, tmp_path, capsys, monkeypatch, no_training
) -> None:
    monkeypatch.setattr(sys, "argv", [program, "demo"])
    assert main(["demo", "--out", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert no_training[-2:] == ["3000 flowers", "models, 8 epochs"]
    assert err == f"Next: {typed} view 'my runs/all'\n"
    lines = out.splitlines()
    assert lines[:4] == [f"Working in {tmp_path}", "", "$ penstock inspect nowhere", ""]
    assert lines[4].startswith("penstock: error: nowhere: ")
    assert lines[5:] == [
        "",
        f"{{'flower-1': 'yes'}}: {{'error': '{lines[4].removeprefix('penstock: error: ')}'}}",
        "Done in 0 s. The report: report.html",
        f"Everything is in {tmp_path}. Delete the folder when you no longer need it.",
    ]


def test_demo_in_full_runs_both_parts_on_the_same_flowers(tmp_path, capsys, no_training) -> None:
    assert main(["demo", "--full", "--json", "--out", str(tmp_path)]) == 0
    assert no_training[-3:] == ["3000 flowers", "models, 8 epochs", "data"]
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"rows", "right", "kept", "report", "run", "seconds"}


def test_demo_of_the_data_and_of_everything_exclude_each_other(capsys) -> None:
    assert main(["demo", "--data", "--full"]) == 2
    assert "--full: expected no value together with '--data'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("penstock.jobs.train.train", "train"),
        ("penstock.jobs.convert.convert", "convert"),
        ("penstock.report.charts", "report"),
    ],
)
def test_demo_with_a_package_missing_says_what_to_install_and_leaves_nothing(
    module, extra, tmp_path, capsys, monkeypatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # as if an import in it had failed
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 1
    assert f"Run: pip install 'penstock[{extra}]'." in capsys.readouterr().err
    assert not (tmp_path / "demo").exists()


def test_demo_in_a_folder_in_use_is_a_wrong_call(tmp_path, capsys) -> None:
    (tmp_path / "mine").write_text("precious")
    assert main(["demo", "--data", "--out", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
