"""The part of the demo that trains: all of it, on few flowers."""

import contextlib
import csv
import io
import json
import re
from types import SimpleNamespace

import pytest

import penstock as ps
from penstock.cli.demo import run_program
from penstock.cli.main import main
from penstock.examples.flower_data import NUM_NEW, TARGET
from penstock.examples.flowers import ALONE


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A whole run on few flowers: its folder, its results, and what was printed."""
    folder, out = tmp_path_factory.mktemp("demo"), io.StringIO()
    with contextlib.redirect_stdout(out):
        results = run_program(folder, num_flowers=200, epochs=2)
    return SimpleNamespace(folder=folder, results=results, text=out.getvalue())


def test_demo_goes_from_raw_files_to_a_report(demo) -> None:
    assert demo.results["rows"] == 200
    assert demo.results["splits"] == {"train": 160, "validation": 20, "test": 20}
    assert set(demo.results["alone"]) == {"photo", "note", "visit hours", "table columns"}
    for figures in (demo.results["together"], *demo.results["alone"].values()):
        assert 0 <= figures["accuracy"] <= 1
        assert 0 <= figures["auc"] <= 1
        assert figures["epochs"] == 2
        assert figures["seconds"] > 0
        assert figures["records_per_second"] > 0
        assert 0 <= figures["waiting"] <= 1
    json.dumps(demo.results)  # `--json` prints them


def test_demo_trains_each_model_alone_on_its_own_fields_with_the_same_settings(demo) -> None:
    runs = {name: ps.open_run(demo.folder / "runs" / name.replace(" ", "-")) for name in ALONE}
    together = ps.open_run(demo.results["run"])
    for name, fields in ALONE.items():
        assert set(runs[name].pipeline.fields) - {TARGET} == set(fields)
        assert runs[name].settings["train"] == together.settings["train"]
    default = ps.Pipeline.fit(ps.open(demo.folder / "flowers"))
    assert together.pipeline.fingerprint() == default.fingerprint()


def test_demo_figures_are_those_of_an_evaluation_on_the_test_split(demo) -> None:
    flowers = ps.open(demo.folder / "flowers")
    found = ps.evaluate(demo.folder / "runs" / "note-alone", flowers["test"], bootstrap=0, importance=False)
    assert found.targets[TARGET]["accuracy"] == pytest.approx(
        demo.results["alone"]["note"]["accuracy"], abs=1e-4
    )
    stored = json.loads((demo.folder / "evaluation.json").read_text())
    assert stored["records"] == 20
    assert stored["targets"][TARGET]["auc"] == pytest.approx(demo.results["together"]["auc"], abs=1e-4)


def test_demo_predicts_every_new_row(demo) -> None:
    lines = (demo.folder / "predicted.csv").read_text().splitlines()
    assert lines[0].startswith(f"id,{TARGET},{TARGET}_probability,{TARGET}_probability_")
    assert [line.split(",")[0] for line in lines[1:]] == [f"flower-{210 + n}" for n in range(NUM_NEW)]
    assert demo.results["predicted"] == NUM_NEW
    assert f"{demo.results['right']} of the {NUM_NEW} new flowers are predicted correctly.\n" in demo.text


def test_demo_prints_what_to_type_before_each_result(demo) -> None:
    for typed in (
        f"Working in {demo.folder}\n",
        'ps.convert("flowers.csv", "flowers", id="id", target="sets_seed")\n',
        "$ penstock inspect flowers\n",
        "# or: penstock train flowers --out runs/all-together --batch-size 64 ",
        "# or: penstock evaluate runs/all-together --json > evaluation.json\n",
        "# or: penstock predict runs/all-together new.csv --out predicted.csv\n",
        "pipeline = ps.Pipeline.fit(flowers, **dict.fromkeys(others))\n",
    ):
        assert typed in demo.text
    assert "\nepoch 1/2: " in demo.text
    assert "\nsplit 'test': 20 records\n" in demo.text
    assert "\x1b" not in demo.text
    assert re.search(
        r"\nphoto alone: .+\nnote alone: .+\nvisit hours alone: .+\ntable columns alone: .+\n", demo.text
    )


def test_demo_exports_a_model_that_predicts_as_the_run(demo) -> None:
    assert demo.results["export"] == str(demo.folder / "exported")
    assert demo.results["checked_rows"] == 200
    assert demo.results["largest_difference"] <= 1e-5
    assert demo.results["answered_by_export"] == NUM_NEW
    predicted = ps.Predictor(demo.folder / "exported").predict(demo.folder / "new.csv").to_pylist()
    with (demo.folder / "predicted.csv").open(newline="") as file:
        assert [row[TARGET] for row in csv.DictReader(file)] == [row[TARGET] for row in predicted]
    assert "\nExport('exported', 'bundle', 6 files, largest difference on 200 rows: " in demo.text


def test_demo_ends_with_a_page_about_the_data_and_the_run(demo) -> None:
    assert demo.results["report"] == str(demo.folder / "report.html")
    page = (demo.folder / "report.html").read_text()
    assert "sets_seed" in page
    assert "visit_hours" in page
    assert len(page) < 3_000_000
    assert (
        f'ps.write_report(run, "report.html")\nPath("report.html").absolute()\n\n{demo.folder}' in demo.text
    )


def test_demo_summary_shows_the_table_that_was_printed(demo) -> None:
    report = (demo.folder / "summary.md").read_text()
    table = [line for line in demo.text.splitlines() if line.startswith("| ")]
    assert len(table) == 3 + len(ALONE) + 1
    assert [line.split("|")[1].strip() for line in table[3:]] == [*ALONE, "all together"]
    accuracies = [figures["accuracy"] for figures in demo.results["alone"].values()]
    shown = [float(line.split("|")[2]) for line in table[3:]]
    assert shown == pytest.approx([*accuracies, demo.results["together"]["accuracy"]], abs=0.006)
    assert "\n".join(table) in report
    assert f"\n{demo.results['right']} of the {NUM_NEW} new flowers are predicted correctly.\n" in report
    assert "\n- Accuracy: share of the 20 unseen test flowers predicted correctly.\n" in report


@pytest.mark.long
def test_demo_shows_that_all_inputs_together_predict_better_than_the_best_alone(tmp_path, capsys) -> None:
    assert main(["demo", "--json", "--out", str(tmp_path / "demo")]) == 0
    results = json.loads(capsys.readouterr().out)
    alone = [figures["accuracy"] for figures in results["alone"].values()]
    assert max(alone) < 0.75
    assert results["together"]["accuracy"] > max(alone) + 0.1
    assert results["right"] > 14
