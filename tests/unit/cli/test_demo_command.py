"""What `penstock demo` prints."""

import io
import json
import re
import subprocess
import sys

import pytest

from penstock.cli import demo
from penstock.cli.main import main
from penstock.examples import flowers
from penstock.training.progress import TrainingProgress


def test_demo_prints_every_step_with_what_to_type(tmp_path, capsys) -> None:
    folder = tmp_path / "demo"
    assert main(["demo", "--data", "--out", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert err == f"Next: penstock view {folder}/flowers\n"
    for typed in (
        f"Working in {folder}\n",
        "# or: penstock convert flowers.csv flowers --id id --target sets_seed\n",
        'ps.convert("flowers.csv", "flowers", id="id", target="sets_seed")\n',
        "$ penstock inspect flowers\n",
        "$ penstock convert flowers.csv --id id --target sets_seed --plan\n",
        "ps.Pipeline.fit(flowers)\n",
        'loader = flowers["train"].loader(pipeline, batch_size=64, shuffle=True, seed=7)\n',
        "fresh.load_state_dict(state)\n",
        "$ penstock bench flowers --batch-size 64 --seconds 1\n",
        "$ penstock verify damaged\n",
        "$ penstock repair damaged repaired\n",
    ):
        assert typed in out
    assert [int(number) for number in re.findall(r"^── (\d+)\. ", out, re.MULTILINE)] == list(range(1, 18))
    assert "  photo: {type: image, format: png, from: path}  " in out
    assert "penstock: note: 'plot': " in out
    image = "Image(augment=Augment(crop=0.1, brightness=0.1))"
    assert f"\nphoto        input   uint8 (n, 16, 16, 3)  photo        {image}\n" in out
    assert "\n{'photo': (64, 16, 16, 3), 'note': (64, 12), 'petal_cm': (64,), 'soil': (64,), " in out
    assert re.search(r"\n  is_same_rest +True\n", out)
    assert re.search(r"\nBottleneck: \w+\.\nCores used: .+\.\nAdvice: .+\.\n", out)
    assert "penstock: error: more.csv: column 'photo' in row 8 (line 9): expected " in out
    assert "record 17 at byte " in out
    assert "return" not in out


def test_demo_json_is_one_object(tmp_path, capsys) -> None:
    assert main(["demo", "--data", "--json", "--out", str(tmp_path / "demo")]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    results = json.loads(out)
    assert (results["rows"], results["records"], results["converted"], results["kept"]) == (
        300,
        300,
        309,
        308,
    )
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

    def compare() -> list[str]:
        """Compare the models."""
        return ["photo alone 0.61"]

    def train_models(show):
        called.append("models")
        show.watch("photo alone").end("best epoch: 3")
        return {"right": len(show.step(compare)), "report": "report.html", "run": "my runs/all"}

    def explore_data(show, num_flowers=300):
        called.append(f"data {num_flowers}")
        return {"kept": 308}

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
    assert (no_training[-1], err) == ("models", f"Next: {typed} view 'my runs/all'\n")
    assert out.splitlines() == [
        f"Working in {tmp_path}",
        "",
        "photo alone: best epoch: 3",
        f"── 1. Compare the models {'─' * 54}",
        "",
        '["photo alone 0.61"]',
        "",
        "photo alone 0.61",
        "",
        "Done in 0 s. The report: report.html",
        f"Everything is in {tmp_path}. Delete the folder when you no longer need it.",
    ]


def test_demo_in_full_runs_both_parts_on_the_same_flowers(tmp_path, capsys, no_training) -> None:
    assert main(["demo", "--full", "--json", "--out", str(tmp_path)]) == 0
    assert no_training[-2:] == ["models", "data None"]
    assert set(json.loads(capsys.readouterr().out)) == {"right", "kept", "report", "run", "seconds"}


def test_demo_of_the_data_and_of_everything_exclude_each_other(capsys) -> None:
    assert main(["demo", "--data", "--full"]) == 2
    assert "not allowed with argument" in capsys.readouterr().err


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


def test_speed_of_a_model_is_that_of_the_epochs_after_the_first() -> None:
    display = demo._Display(io.StringIO(), "photo alone")
    for epoch, (rate, waiting) in enumerate([(10.0, 0.9), (100.0, 0.1), (300.0, 0.3)]):
        look = TrainingProgress(epoch, 3, 5, 5, records_per_second=rate, waiting=waiting)
        display.epoch(look, is_best=True)
        if not epoch:
            assert display.speed() == {"records_per_second": 10, "waiting": 0.9}
    assert display.speed() == {"records_per_second": 150, "waiting": 0.2}
