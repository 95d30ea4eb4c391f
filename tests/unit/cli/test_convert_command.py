"""What `penstock convert` does and prints: data sets, plans, tables, wrong calls."""

import gc
import json
import re

import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.cli.convert import _format_progress
from penstock.cli.main import main
from penstock.shards.conversion import ConversionProgress
from raising import mentions
from screen import Screen


@pytest.fixture
def pets(tmp_path, monkeypatch):
    """A CSV in the current folder."""
    monkeypatch.chdir(tmp_path)
    lines = (
        f"{row},pet {row * 7919 % 1009},{row % 23},{'cat' if row % 3 else 'dog'},{row % 2}\n"
        for row in range(200)
    )
    (tmp_path / "pets.csv").write_text("id,name,age,kind,adopted\n" + "".join(lines))
    return tmp_path


def run(capsys, *argv):
    status = main(["convert", *argv])
    out, err = capsys.readouterr()
    return status, out, err


def test_summary_names_fields_splits_and_the_folder(pets, capsys):
    status, out, err = run(capsys, "pets.csv", "out", "--id", "id", "--target", "adopted", "--drop", "age")
    assert status == 0
    assert re.search(r"^adopted +category +target +scalar int64, 2 values$", out, re.MULTILINE)
    assert re.search(r"^train +160 +1 +[\d.]+ kB$", out, re.MULTILINE)
    assert re.search(rf"^200 records from 200 rows in \d+\.\d s: {pets}/out\n\Z", out, re.MULTILINE)
    assert err == "Next: penstock train out\n"
    assert list(ps.open("out").schema) == ["id", "name", "kind", "adopted"]


def test_json_describes_the_result(pets, capsys):
    status, out, _ = run(capsys, "pets.csv", "out", "--json", "--num-shards", "2", "--id", "id")
    found = json.loads(out)
    assert status == 0
    assert (found["rows"], found["records"], found["out"]) == (200, 200, str(pets / "out"))
    assert found["splits"]["train"]["shards"] == 2
    assert found["splits"]["train"]["records"] == 160
    assert found["split"]["method"] == "hash rank"
    assert found["rejects"] == {"count": 0, "by_column": {}, "file": None}
    assert set(found["schema"]["fields"]) == {"id", "name", "age", "kind", "adopted"}


def test_notes_report_rejects_duplicates_and_warnings(pets, capsys):
    with (pets / "pets.csv").open("a") as file:
        file.write("900,twin,1,cat,1\n901,twin,1,cat,1\n" * 10 + "902,odd,old,cat,1\n")
    status, out, _ = run(
        capsys, "pets.csv", "out", "--number", "age", "--on-error", "collect", "--id", "id", "--json"
    )
    assert status == 0
    notes = json.loads(out)["notes"]
    assert mentions(notes, "1 row rejects.jsonl")
    pattern = r"19 duplicate rows .* \(\d+ of them were moved\)"
    assert any(re.fullmatch(pattern, note) for note in notes), notes


def test_column_that_is_left_out_is_reported(pets, capsys):
    (pets / "a.jsonl").write_text('{"a": 1, "b": {"c": 1}}\n{"a": 2, "b": {"c": 2}}\n')
    status, _, err = run(capsys, "a.jsonl", "out")
    assert status == 0
    assert re.search(r"^penstock: note: 'b' is left out: \w", err, re.MULTILINE)


def test_plan_is_printed_and_nothing_written(pets, capsys):
    status, out, err = run(capsys, "pets.csv", "--plan", "--target", "adopted")
    assert (status, err) == (0, "Next: penstock convert pets.csv pets --target adopted\n")
    assert re.search(r"^columns:$", out, re.MULTILINE)
    assert [path.name for path in pets.iterdir()] == ["pets.csv"]
    assert run(capsys, "pets.csv", "out", "--plan", "--target", "adopted")[1] == out
    assert not (pets / "out").exists()


def test_plan_that_is_edited_is_followed(pets, capsys):
    _, out, _ = run(capsys, "pets.csv", "--plan", "--id", "id")
    (pets / "plan.yaml").write_text(out)
    assert run(capsys, "pets.csv", "same", "--plan-file", "plan.yaml")[0] == 0
    assert run(capsys, "pets.csv", "straight", "--id", "id")[0] == 0
    assert ps.open("same").schema == ps.open("straight").schema
    assert run(capsys, "pets.csv", "--plan", "--plan-file", "plan.yaml")[0] == 0
    (pets / "plan.yaml").write_text("columns:\n  kind: {type: text, name: sort}\ndrop: [name, age]\n")
    assert run(capsys, "pets.csv", "edited", "--plan-file", "plan.yaml")[0] == 0
    assert list(ps.open("edited").schema) == ["id", "sort", "adopted"]


def test_plan_as_json_has_reasons_and_columns_that_are_left_out(pets, capsys):
    _, out, _ = run(capsys, "pets.csv", "--plan", "--json", "--drop", "name")
    found = json.loads(out)
    assert found["dropped"] == {"name": "declared"}
    assert found["columns"]["kind"]["reason"]
    assert found["plan"]["columns"]["kind"]["type"] == "category"


def test_types_names_and_roles_are_followed(pets, capsys):
    (pets / "a.jsonl").write_text(
        "".join(
            json.dumps({"w": 1.5, "t": "a", "k": row, "n": row, "v": [1, 2], "s": [1] * (row % 3), "i": row})
            + "\n"
            for row in range(20)
        )
    )
    argv = ["--weight", "w", "--text", "t", "--category", "k", "--number", "n", "--tensor", "v:2:float32"]
    argv += ["--sequence", "s", "--id", "i", "--rename", "n=number", "--target", "k"]
    status, _, err = run(capsys, "a.jsonl", "out", *argv)
    assert status == 0, err
    schema = ps.open("out").schema
    assert {name: field.type_name for name, field in schema.items()} == {
        "w": "number",
        "t": "text",
        "k": "category",
        "number": "number",
        "v": "tensor",
        "s": "sequence",
        "i": "number",
    }
    assert (schema["w"].role, schema["k"].role, schema["i"].role) == ("weight", "target", "id")
    assert (schema["v"].shape, schema["v"].dtype) == ((2,), "float32")


def test_data_set_is_resharded_and_goes_back_to_parquet(pets, capsys):
    assert run(capsys, "pets.csv", "one", "--id", "id")[0] == 0
    assert run(capsys, "one", "two", "--num-shards", "4", "--drop", "name")[0] == 0
    assert len(ps.open("two").paths) == 6
    status, out, _ = run(capsys, "two", "pets.parquet")
    assert status == 0
    assert re.fullmatch(r"200 rows, [\d.]+ kB in pets\.parquet\n", out)
    assert pq.read_table("pets.parquet").num_rows == 200
    status, out, _ = run(capsys, "two", "pets.parquet", "--overwrite", "--json")
    assert json.loads(out)["rows"] == 200


def test_several_files_are_one_source(pets, capsys):
    (pets / "b.csv").write_text("id,name,age,kind,adopted\n900,Rex,3,dog,1\n")
    status, out, _ = run(capsys, "pets.csv", "b.csv", "out", "--json")
    assert (status, json.loads(out)["rows"]) == (0, 201)
    status, out, _ = run(capsys, "*.csv", "out", "--json", "--overwrite")
    assert (status, json.loads(out)["rows"]) == (0, 201)


@pytest.mark.parametrize(
    ("argv", "status", "facts"),
    [
        ((), 2, "arguments SOURCE OUT 'penstock convert pets.csv pets/'"),
        (("pets.csv",), 2, "arguments SOURCE OUT 'penstock convert pets.csv pets/'"),
        (("--plan",), 2, "arguments SOURCE"),
        (("none.csv", "out"), 2, "none.csv folder 'pets.csv'"),
        (("pets.csv", "out", "--image", "nam"), 2, "column 'nam' 'name'"),
        (("pets.csv", "out", "--target", "adoptd"), 2, "column 'adoptd' 'adopted'"),
        (("pets.csv", "out", "--time", "agee"), 2, "column 'agee' 'age'"),
        (("pets.csv", "out", "--number", "name"), 1, "pets.csv 'name' 1 (line 2) 'pet 0'"),
        (("pets.csv", "out", "--id", "id", "--target", "id"), 2, "column 'id' role"),
        (("pets.csv", "out", "--stratify"), 2, "--stratify target 0 breed"),
        (("pets.csv", "out.parquet"), 2, "out.parquet TFRecords 'pets.csv'"),
        (("pets.csv", "out.CSV"), 2, "out.CSV OUT '.CSV' 'out.parquet'"),
        (("pets.csv", "out", "--plan-file", "none.yaml"), 2, "none.yaml"),
    ],
)
def test_wrong_call_is_one_line_that_says_what_to_do(pets, capsys, argv, status, facts):
    found, out, err = run(capsys, *argv)
    assert (found, out, err.count("\n")) == (status, "", 1)
    assert mentions(err, f"penstock {facts}")
    assert not (pets / "out").exists()


def test_encoding_that_the_file_does_not_have_is_reported(pets, capsys):
    status, _, err = run(capsys, "pets.csv", "out", "--encoding", "utf-16")
    assert status == 1
    assert mentions(err, "penstock pets.csv")


def test_existing_output_is_refused(pets, capsys):
    assert run(capsys, "pets.csv", "out")[0] == 0
    status, out, err = run(capsys, "pets.csv", "out")
    assert (status, out) == (2, "")
    assert mentions(err, f"penstock {pets}/out '--overwrite'")
    assert "overwrite=True" not in err
    assert run(capsys, "pets.csv", "out", "--overwrite")[0] == 0


@pytest.mark.parametrize(
    ("argv", "facts"),
    [
        (("one", "out", "--plan"), "plan TFRecords 'penstock inspect'"),
        (("one", "pets.csv", "out"), "one TFRecords 'pets.csv'"),
        *(
            (("one", f"out{suffix}"), f"out{suffix} OUT {suffix!r} 'out.parquet'")
            for suffix in (".csv", ".tsv", ".json", ".jsonl", ".txt")
        ),
        (("one", "out.parquet", "--drop", "name"), "out.parquet --overwrite --json"),
        (("one", "one", "--overwrite"), "one folder"),
    ],
)
def test_wrong_call_with_a_data_set_is_one_line_that_says_what_to_do(pets, capsys, argv, facts):
    assert run(capsys, "pets.csv", "one", "--id", "id")[0] == 0
    status, out, err = run(capsys, *argv)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert mentions(err, f"penstock {facts}")
    assert sorted(path.name for path in pets.iterdir()) == ["one", "pets.csv"]


def test_line_of_progress_has_rows_speed_splits_rejects_and_the_time_left():
    line = _format_progress(
        ConversionProgress("reading", 12_000, 50_000_000, 200_000_000, 3, {"train": 9600, "test": 2400}), 2.0
    )
    assert mentions(line, "12,000 50.0 MB 200.0 MB 25.0 MB/s 6 9,600")
    assert mentions(_format_progress(ConversionProgress("reading", 1, 0, None, 0), 0.0), "1 0 0 B/s")


def test_terminal_sees_progress_and_a_pipe_does_not(pets, capsys, monkeypatch):
    monkeypatch.setattr("penstock.cli.terminal._SILENT_SECONDS", -1.0)
    assert run(capsys, "pets.csv", "a", "--id", "id", "--drop", "age")[2] == "Next: penstock inspect a\n"
    terminal = Screen()
    monkeypatch.setattr("sys.stderr", terminal)
    assert main(["convert", "pets.csv", "b", "--id", "id", "--drop", "age"]) == 0
    assert "reading 200 rows" in terminal.getvalue()
    assert [each.removeprefix("\x1b[1m") for each in terminal.lines] == ["Next: penstock inspect b"]


def test_all_rows_rejected_is_exit_status_one_and_names_the_first_cause(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pets.csv").write_text("name,photo\nRex,none.png\nAda,gone.png\n")
    for policy in ("skip", "collect"):
        status, out, err = run(capsys, "pets.csv", "out", "--image", "photo", "--on-error", policy)
        assert (status, out) == (1, "")
        assert mentions(err, "2 rows")
        assert "none.png" in err
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["Rex,3", "Rex,3\n", "\nRex,3\n\n"])
def test_single_line_is_reported_as_column_names(tmp_path, monkeypatch, capsys, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pets.csv").write_text(text)
    status, _, err = run(capsys, "pets.csv", "out")
    assert status == 1
    assert mentions(err, "rows column names ('Rex', '3')")


def test_convert_leaves_the_garbage_collector_of_the_process_as_it_was(pets, capsys):
    thresholds = gc.get_threshold()
    assert run(capsys, "pets.csv", "out")[0] == 0
    assert gc.get_threshold() == thresholds
