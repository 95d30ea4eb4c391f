"""Y2: every output names the parts of the inputs that a run left out, and why."""

from types import SimpleNamespace

import pytest

import penstock as ps
from fake_runs import fit_run
from penstock.cli.evaluate import print_evaluation
from penstock.report.report import write_report
from penstock.transform.pipeline import without_fields
from penstock.view.opened_data import open_data
from run_tables import write_tables

REASON = "The validation loss is 0.532 with it and 0.530 without it."
FACTS = {"parts": {"used": ["table"], "left_out": {"text": ["note"]}, "reasons": {"text": REASON}}}
SAID = f"Not read by the model: text (note). {REASON}"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that has left out the texts of its data."""
    folder = tmp_path_factory.mktemp("run")
    rows = [
        {"age": float(number % 7), "note": f"a shy cat, number {number}", "y": "yes" if number % 3 else "no"}
        for number in range(60)
    ]
    made = fit_run(rows, folder / "data", target="y", split={"train": 0.7, "test": 0.3})
    made.pipeline = without_fields(made.pipeline, ["note"])
    made.set_tables(facts=FACTS)
    made.pipeline.save(folder / "pipeline.json")
    write_tables(folder, {"data": "data", "target": "y", "facts": FACTS})
    return SimpleNamespace(open=made, folder=folder)


def test_y02_evaluate_names_parts_that_were_left_out(run, capsys):
    found = ps.evaluate(run.open, bootstrap=0, importance=False)
    print_evaluation(found)
    assert capsys.readouterr().out.splitlines()[1] == SAID
    assert SAID in str(found)
    assert found.to_json()["left_out_reasons"] == {"text": REASON}
    assert "shy cat" in str(found)
    assert str(found).count("(not read)") == len(found.mistakes["y"])


def test_y02_report_names_parts_that_were_left_out(run, tmp_path):
    found = write_report(run.open, tmp_path / "report.html", importance=False, samples=0)
    page = (tmp_path / "report.html").read_text()
    assert REASON in page[: page.index("<h2 ")]
    values = [value for each in found["evaluation"]["mistakes"]["y"] for value in each["values"]]
    assert {value["name"] for value in values if not value["is_read"]} == {"note"}


def test_y02_viewer_names_parts_that_were_left_out(run):
    data = open_data([str(run.folder)])
    assert [(str(part), part.reason) for part in data.left_out] == [("text (note)", REASON)]
    assert data.unread == ("note",)
