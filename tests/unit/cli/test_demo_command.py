"""What `penstock demo` prints."""

import json
import re
import subprocess
import sys

import numpy as np

from penstock.cli import walk
from penstock.cli.main import main
from penstock.cli.walk import print_result
from penstock.jobs.contest import Contest, Entrant
from penstock.jobs.step import Step
from penstock.types import Bytes, Ragged


def test_demo_prints_every_step_with_what_to_type(tmp_path, capsys) -> None:
    place = tmp_path / "demo"
    assert main(["demo", "--data", "--out", str(place)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    told = f"penstock convert {place}/flowers.csv {place}/meadow --id id --target sets_seed"
    for typed in (
        f"$ {told} --plan\n",
        f"$ {told}\n",
        f"$ penstock inspect {place}/meadow\n",
        f">>> flowers = ps.open('{place}/meadow')\n",
        ">>> pipeline = ps.Pipeline.fit(flowers)\n",
        '>>> loader = flowers["train"].loader(pipeline, batch_size=64, shuffle=True, seed=7)\n',
        ">>> fresh.load_state_dict(state)\n",
        f"$ penstock bench {place}/meadow --batch-size 64 --seconds 1\n",
        f"{place}/meadow --id id --target sets_seed --overwrite --on-error collect\n",
        f"$ penstock verify {place}/meadow\n",
        f"$ penstock repair {place}/meadow {place}/mended\n",
    ):
        assert typed in out
    assert "  photo: {type: image, format: png, from: path}  " in out
    assert "penstock: note: 'plot': leading zeros, as codes have them" in out
    assert "\nphoto        input   uint8 (n, 16, 16, 3)  photo        Image()\n" in out
    assert "\npetal_cm     input   float32 (n,)          petal_cm     Scale()\n" in out
    assert "\n{'photo': (64, 16, 16, 3), 'note': (64, 12), 'petal_cm': (64,), 'soil': (64,), " in out
    assert "\nThe 2 batches that are left are the same, byte for byte, as those of the first loader.\n" in out
    assert re.search(r"\nBottleneck: \w+\.\nAdvice: .+\.\n", out)
    assert f"penstock: error: {place}/more.csv: column 'photo' in row 8 (line 9): expected " in out
    assert "309 records from 310 rows: " in out
    assert "record 17 at byte " in out
    assert re.search(r"\n308 of 309 records are there, as they were; gone is flower-\d{3}\.\n", out)


def test_demo_json_is_one_object(tmp_path, capsys) -> None:
    assert main(["demo", "--data", "--json", "--out", str(tmp_path / "demo")]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    facts = json.loads(out)
    assert (facts["rows"], facts["records"], facts["converted"], facts["kept"]) == (300, 300, 309, 308)
    assert facts["shapes"][0]["visit_hours"] == [64, 8]
    assert facts["is_same_rest"] is True
    assert facts["records_per_second"] > 0
    assert facts["seconds"] > 0


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


ALONE = Entrant("photo alone", ("photo",), 0.61, 0.66, 5.0, 10, 2000.0, 0.01)
TOGETHER = Entrant("all together", ("photo", "note"), 0.9, 0.98, 9.0, 10, 1000.0, 0.02)
CONTEST = Contest((ALONE,), TOGETHER, 0.5, "no", 30, 240)


def take_no_time(monkeypatch, asked: list) -> None:
    """Put a short walk in the place of the demo's, and note what it is asked for."""

    def show(folder, part, watch):
        def work():
            if watch is not None:
                watch("photo alone").end("best epoch: 3")
            return CONTEST, {**CONTEST.to_json(), "report": f"{folder}/report.md"}

        asked.append(part)
        yield Step("Compare", (">>> ps.train(…)",), work=work)

    monkeypatch.setattr(walk, "demo", show)
    monkeypatch.setattr(walk, "_load_model_part", lambda: asked.append("Keras"))


def test_demo_ends_with_a_table_and_where_the_report_is(tmp_path, capsys, monkeypatch) -> None:
    asked: list = []
    take_no_time(monkeypatch, asked)
    assert main(["demo", "--out", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert (asked, err) == (["Keras", "model"], "")
    assert out.splitlines() == [
        f"── 1. Compare {'─' * 65}",
        "",
        ">>> ps.train(…)",
        "",
        "photo alone: best epoch: 3",
        "What the model sees        Accuracy   AUC  Training",
        "─────────────────────────  ────────  ────  ────────",
        "nothing: says 'no' always      0.50  0.50",
        "photo alone                    0.61  0.66     5.0 s",
        "all together                   0.90  0.98     9.0 s",
        "",
        *Contest(
            (), Entrant("all together", (), 0.9, 0.98, 9.0, 10, 1000.0, 0.02), 0.5, "no", 30, 240
        ).explain(),
        "",
        f"Done in 0 s. The report: {tmp_path}/report.md",
        f"Everything is in {tmp_path}: look around, then delete it.",
    ]


def test_demo_json_holds_what_each_input_reached(tmp_path, capsys, monkeypatch) -> None:
    asked: list = []
    take_no_time(monkeypatch, asked)
    assert main(["demo", "--full", "--json", "--out", str(tmp_path)]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert asked == ["Keras", "all"]
    assert set(facts) == {"guess", "alone", "together", "test_records", "report", "seconds"}
    assert (facts["alone"]["photo"]["accuracy"], facts["together"]["auc"]) == (0.61, 0.98)


def test_demo_of_the_data_and_of_everything_exclude_each_other(capsys) -> None:
    assert main(["demo", "--data", "--full"]) == 2
    assert "not allowed with argument" in capsys.readouterr().err


def test_demo_without_keras_says_what_to_install_and_leaves_nothing(tmp_path, capsys, monkeypatch) -> None:
    for name in [name for name in sys.modules if name.startswith("penstock.jobs.trial")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "penstock.jobs.race", None)  # as if an import in it had failed
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 1
    assert "Run: pip install 'penstock[train]'." in capsys.readouterr().err
    assert not (tmp_path / "demo").exists()


def test_demo_in_a_folder_in_use_is_a_wrong_call(zoo, capsys) -> None:
    assert main(["demo", "--out", str(zoo)]) == 2
    assert "is there, and is not empty" in capsys.readouterr().err


def test_demo_without_pyarrow_says_what_to_install(tmp_path, capsys, monkeypatch) -> None:
    for name in [name for name in sys.modules if name.startswith("penstock.cli.walk")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "penstock.jobs.demo", None)  # as if an import in it had failed
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 1
    assert "Run: pip install 'penstock[convert]'." in capsys.readouterr().err


def test_columns_that_are_views_are_described_by_their_own_values(capsys) -> None:
    view = Bytes(np.zeros(1000, np.uint8), np.array([100, 500]), np.array([103, 504]))
    print_result({"photo": view, "tags": Ragged(np.arange(9), np.array([2, 3, 7]))})
    assert [line.split(maxsplit=1)[1] for line in capsys.readouterr().out.splitlines()] == [
        "2 byte strings, 7 B together",
        "2 lists, 5 values together",
    ]
