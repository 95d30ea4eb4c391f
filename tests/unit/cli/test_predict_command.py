"""`penstock predict`: what it prints, writes and says; every flag reaches the option it stands for."""

import json

import pyarrow.parquet as pq
import pytest

from fake_runs import fit_run
from penstock.cli import command, predict
from penstock.cli.main import main
from penstock.jobs.predict import predict as job
from penstock.jobs.predict.predict import PredictProgress
from penstock.settings.command_line import parse
from penstock.settings.commands import PREDICT
from penstock.settings.prediction import PredictOptions
from raising import containing, mentions

ROWS = [{"name": f"n{n}", "age": n / 2, "sold": ("no", "yes")[n % 2]} for n in range(12)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return fit_run(ROWS, tmp_path_factory.mktemp("trained") / "set", {"name": None}, target="sold")


@pytest.fixture
def folder(trained, tmp_path, monkeypatch):
    """A folder with new rows, in which every run is the one that was trained."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(job, "open_trained", lambda run, model, functions: trained)
    monkeypatch.setattr(predict, "import_quietly", lambda name: None)
    monkeypatch.setattr(command, "_refuse_missing_path", lambda path: None)
    lines = [f"{row['name']},{row['age']}\n" for row in ROWS]
    (tmp_path / "new.csv").write_text("name,age\n" + "".join(lines))
    return tmp_path


def run(capsys, *argv):
    status = main(["predict", *argv])
    out, err = capsys.readouterr()
    return status, out, err


def test_without_a_file_the_predictions_are_printed_as_csv(folder, capsys):
    status, out, err = run(capsys, "run", "new.csv", "--keep", "name")
    lines = out.splitlines()
    suggested = "Next: penstock predict run new.csv --keep name --out new-predicted.csv\n"
    assert (status, err, len(lines)) == (0, suggested, 13)
    assert lines[0] == "row,name,sold,sold_probability,sold_probability_no,sold_probability_yes"
    assert lines[3].startswith("2,n2,no,0.")


def test_file_is_written_and_its_size_printed(folder, capsys):
    status, out, err = run(capsys, "run", "new.csv", "--out", "out.parquet")
    assert (status, err) == (0, "Next: penstock convert out.parquet --plan\n")
    assert mentions(out, "12 rows")
    assert mentions(out, "out.parquet")
    assert pq.read_table("out.parquet").num_rows == 12


def test_json_is_one_object(folder, capsys):
    (folder / "new.csv").write_text("age,size\n1,9\n1-2,9\n3,9\n")
    status, out, _ = run(capsys, "run", "new.csv", "--out", "o.csv", "--json", "--on-error", "collect")
    found = json.loads(out)
    assert status == 0
    assert found.pop("seconds") >= 0
    assert found == {
        "rows": 2,
        "skipped": 1,
        "out": "o.csv",
        "columns": ["row", "sold", "sold_probability", "sold_probability_no", "sold_probability_yes"],
        "rejected": [containing("new.csv", "'age'", 2, "(line 3)", "'1-2'")],
        "notes": [containing("'size'")],
    }


def test_json_without_a_file_is_a_wrong_call(folder, capsys):
    status, out, err = run(capsys, "run", "new.csv", "--json")
    assert (status, out) == (2, "")
    assert mentions(err, "penstock --json --out FILE")


def test_skipped_rows_and_notes_are_printed_apart_from_the_csv(folder, capsys):
    (folder / "new.csv").write_text("age,size\n1,9\n1-2,9\n3,9\n")
    status, out, err = run(capsys, "run", "new.csv", "--on-error", "collect")
    assert status == 0
    assert [line.split(",")[0] for line in out.splitlines()] == ["row", "0", "2"]
    assert err.splitlines() == [
        containing("penstock", "'size'"),
        containing("penstock", "new.csv", "'age'", 2, "(line 3)", "'1-2'"),
        containing("penstock", 1, 3),
        containing("Next: penstock predict run new.csv --on-error collect"),
    ]


def test_row_that_does_not_fit_ends_the_run_with_its_row_and_line(folder, capsys):
    (folder / "new.csv").write_text("age\n1\n1-2\n")
    status, _, err = run(capsys, "run", "new.csv", "--out", "o.csv")
    assert status == 1
    assert mentions(err, "'age' 2 (line 3) '1-2'")
    assert sorted(path.name for path in folder.iterdir()) == ["new.csv"]


def test_existing_file_is_a_wrong_call_unless_it_may_be_replaced(folder, capsys):
    (folder / "o.csv").write_text("mine")
    status, _, err = run(capsys, "run", "new.csv", "--out", "o.csv")
    assert (status, (folder / "o.csv").read_text()) == (2, "mine")
    assert mentions(err, "o.csv --overwrite")
    assert run(capsys, "run", "new.csv", "--out", "o.csv", "--overwrite")[0] == 0


def test_option_that_the_data_does_not_allow_is_named_by_its_flag(folder, capsys):
    for words, named in ((["--split", "test"], "--split 'test'"), (["--out", "o.txt"], "o.txt --out .csv")):
        status, _, err = run(capsys, "run", "new.csv", *words)
        assert status == 2
        assert mentions(err, named)


def test_several_files_are_read_in_order(folder, capsys):
    (folder / "more.csv").write_text("name,age\nx,1\n")
    status, out, _ = run(capsys, "run", "new.csv", "more.csv", "--keep", "name")
    assert status == 0
    assert out.splitlines()[-1].startswith("12,x,")


def test_missing_column_is_a_wrong_call(folder, capsys):
    (folder / "new.csv").write_text("agee\n1\n")
    status, _, err = run(capsys, "run", "new.csv")
    assert status == 2
    assert mentions(err, "new.csv column 'age'")
    assert mentions(err, "'agee'")


@pytest.mark.parametrize(
    ("argv", "choice"),
    [
        ((), {}),
        (("--split", "test"), {"split": "test"}),
        (("--keep", "a", "--keep", "b"), {"keep": ("a", "b")}),
        (("--batch-size", "7"), {"batch_size": 7}),
        (("--on-error", "skip"), {"on_error": "skip"}),
        (("--max-skipped", "3"), {"max_skipped": 3}),
        (("--max-rejects", "3"), {"max_skipped": 3}),
        (("--threads", "3"), {"num_threads": 3}),
        (("--workers", "3"), {"num_threads": 3}),
        (("--overwrite",), {"overwrite": True}),
        (("--delimiter", ";"), {"delimiter": ";"}),
        (("--encoding", "latin-1"), {"encoding": "latin-1"}),
        (("--missing", "NA"), {"missing": ("", "NA")}),
        (("--short-rows", "fill"), {"short_rows": "fill"}),
    ],
)
def test_flag_reaches_its_option(argv, choice):
    assert parse(PREDICT, ["run", "new.csv", *argv]).read(PredictOptions) == PredictOptions(**choice)


def test_terminal_shows_rows_speed_and_remaining_time():

    line = predict._format_progress(PredictProgress(12_000, 3, 250, 1000), 4.0)
    assert mentions(line, "12,000 3,000/s 25% 12 3")
    assert mentions(predict._format_progress(PredictProgress(5, 0, 0, None), 0.0), "5 rows 0/s")
