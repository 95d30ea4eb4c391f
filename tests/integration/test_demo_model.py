"""The part of the demo that trains: all of it, on few flowers."""

import contextlib
import csv
import io
import json
import re
from types import SimpleNamespace

import pytest

import penstock as ps
from checked_exports import check_exports_here
from penstock.cli.demo import run_program
from penstock.cli.main import main
from penstock.examples.flowers import ALL, NUM_NEW, PARTS, TARGET

ALONE = {
    "photo alone": ["photo"],
    "note alone": ["note"],
    "visit hours alone": ["visit_hours"],
    "table columns alone": ["petal_cm", "soil", "plot", "seen_on"],
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A whole run on few flowers: its folder, its results, and what was printed."""
    folder, out = tmp_path_factory.mktemp("demo"), io.StringIO()
    with contextlib.redirect_stdout(out), pytest.MonkeyPatch.context() as patch:
        check_exports_here(patch)
        results = run_program(folder, num_flowers=200, epochs=2)
    return SimpleNamespace(folder=folder, results=results, text=out.getvalue())


def test_demo_goes_from_raw_files_to_a_report(demo) -> None:
    assert demo.results["rows"] == 200
    assert demo.results["splits"] == {"train": 160, "validation": 20, "test": 20}
    assert set(demo.results["alone"]) == set(ALONE)
    for figures in (demo.results["together"], *demo.results["alone"].values()):
        assert 0 <= figures["accuracy"] <= 1
        assert 0 <= figures["auc"] <= 1
        assert figures["epochs"] == 2
        assert figures["seconds"] > 0
    json.dumps(demo.results)  # `--json` prints them


def test_demo_trains_each_model_alone_on_its_own_fields_with_the_same_settings(demo) -> None:
    assert list(PARTS) == [*ALONE, ALL]
    together = ps.open_run(demo.results["run"])
    assert set(together.pipeline.fields) - {TARGET} == {
        field for fields in ALONE.values() for field in fields
    }
    for name, fields in ALONE.items():
        run = ps.open_run(demo.folder / "runs" / name.replace(" ", "-"))
        assert set(run.pipeline.fields) - {TARGET} == set(fields)
        assert run.config.train.replace(parts="all") == together.config.train


def test_demo_figures_equal_an_evaluation_on_the_test_split(demo) -> None:
    flowers = ps.open(demo.folder / "flowers")
    for name, figures in (
        ("note-alone", demo.results["alone"]["note alone"]),
        (ALL, demo.results["together"]),
    ):
        run = demo.folder / "runs" / name.replace(" ", "-")
        found = ps.evaluate(run, flowers["test"], bootstrap=0, importance=False).targets[TARGET]
        assert found["accuracy"] == pytest.approx(figures["accuracy"], abs=1e-4)
        assert found["auc"] == pytest.approx(figures["auc"], abs=1e-4)


def test_demo_predicts_every_new_row(demo) -> None:
    lines = (demo.folder / "predicted.csv").read_text().splitlines()
    assert lines[0].startswith(f"id,{TARGET},{TARGET}_probability,{TARGET}_probability_")
    assert [line.split(",")[0] for line in lines[1:]] == [f"flower-{210 + n}" for n in range(NUM_NEW)]
    assert demo.results["predicted"] == NUM_NEW
    assert f"{demo.results['right']} of the {NUM_NEW} new flowers are predicted correctly.\n" in demo.text


def test_demo_prints_each_command_and_its_output(demo) -> None:
    commands = re.findall(r"^\$ penstock (\w+) ", demo.text, re.MULTILINE)
    assert commands == [
        *("convert", "inspect", "train", "evaluate", "predict"),
        *["train"] * len(ALONE),
        *("export", "report"),
    ]
    assert f"Working in {demo.folder}\n" in demo.text
    assert "\n$ penstock train flowers --out runs/photo-alone --parts image --epochs 2 " in demo.text
    assert "\nepoch 1/2: " in demo.text
    assert "\nsplit 'test': 20 records\n" in demo.text
    assert "\x1b" not in demo.text


def test_demo_exports_a_model_that_predicts_as_the_run(demo) -> None:
    assert demo.results["answered_by_export"] == NUM_NEW
    predicted = ps.Predictor(demo.folder / "exported").predict(demo.folder / "new.csv").to_pylist()
    with (demo.folder / "predicted.csv").open(newline="") as file:
        assert [row[TARGET] for row in csv.DictReader(file)] == [row[TARGET] for row in predicted]
    assert "\ncheck: 200 rows in a new process, at most 1e-05 allowed\n" in demo.text


def test_demo_ends_with_a_page_about_the_data_and_the_run(demo) -> None:
    assert demo.results["report"] == str(demo.folder / "report.html")
    page = (demo.folder / "report.html").read_text()
    assert "sets_seed" in page
    assert "visit_hours" in page
    assert len(page) < 3_000_000


def test_demo_compares_the_models_in_a_table(demo) -> None:
    table = [line for line in demo.text.splitlines() if line.startswith("| ")]
    assert len(table) == 3 + len(PARTS)
    assert len({len(line) for line in table}) == 1
    assert table[2].split("|")[1].strip() in ("nothing: always 'no'", "nothing: always 'yes'")
    assert float(table[2].split("|")[2]) == pytest.approx(demo.results["guess"], abs=0.006)
    assert [line.split("|")[1].strip() for line in table[3:]] == list(PARTS)
    accuracies = [figures["accuracy"] for figures in demo.results["alone"].values()]
    shown = [float(line.split("|")[2]) for line in table[3:]]
    assert shown == pytest.approx([*accuracies, demo.results["together"]["accuracy"]], abs=0.006)
    assert "\nAccuracy: share of the 20 unseen test flowers predicted correctly.\n" in demo.text


@pytest.mark.long
def test_demo_shows_that_all_inputs_together_predict_better_than_the_best_alone(tmp_path, capsys) -> None:
    assert main(["demo", "--json", "--out", str(tmp_path / "demo")]) == 0
    results = json.loads(capsys.readouterr().out)
    alone = [figures["accuracy"] for figures in results["alone"].values()]
    assert max(alone) < 0.75
    assert results["together"]["accuracy"] > max(alone) + 0.1
    assert results["right"] > 14
