"""`penstock inspect` on raw data of every kind."""

import gzip
import json

import duckdb
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from pasted_lines import find_next
from penstock.cli.main import main

ROWS = pd.DataFrame({"name": ["Rex", None, "Tom"] * 10, "age": list(range(30)), "price": ["3,14"] * 30})


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """Write the same rows in several formats."""
    monkeypatch.chdir(tmp_path)
    ROWS.to_csv("pets.csv", index=False)
    ROWS.to_csv("pets.tsv.gz", index=False, sep="\t")
    ROWS.to_json("pets.json", orient="records")
    ROWS.to_parquet("pets.parquet")
    ROWS.to_excel("pets.xlsx", index=False)
    ROWS.to_csv("pets.zip", index=False, compression={"method": "zip", "archive_name": "pets.csv"})
    with duckdb.connect("pets.db") as connection:
        connection.execute("CREATE TABLE pets AS SELECT * FROM 'pets.parquet'")
    return tmp_path


@pytest.mark.parametrize(
    "source",
    [
        "pets.csv",
        "pets.tsv.gz",
        "pets.json",
        "pets.parquet",
        "pets.xlsx",
        "pets.zip",
        "duckdb:///pets.db?table=pets",
    ],
)
def test_table_of_any_format_is_inspected(sources, source, capsys):
    assert main(["inspect", source, "--json", "--head", "2", "--target", "age"]) == 0
    found = json.loads(capsys.readouterr().out)
    name, age, price = (found["columns"][each] for each in ("name", "age", "price"))
    assert (name["missing"], name["distinct"], name["example"]) == (10, 2, "Rex")
    assert (age["type"], age["role"], age["distinct"]) == ("number", "target", 30)
    assert (price["type"], price["decimal"]) == ("number", ",")
    assert (found["rows"], found["is_whole"], len(found["head"])) == (30, True, 2)
    assert found["head"][1]["name"] is None


def test_table_is_printed_with_notes_and_warnings(sources, capsys):
    (sources / "de.csv").write_text("a;b\n1;x\n2;y\n")
    assert main(["inspect", "de.csv", "--head", "1"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0].split() == [
        "column",
        "type",
        "role",
        "values",
        "missing",
        "distinct",
        "example",
    ]
    assert "row 1" in out
    assert "2 rows of de.csv" in out
    assert "note: de.csv: read with delimiter ';'." in err
    assert main(["inspect", "de.csv", "--delimiter", ",", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["columns"]) == ["a;b"]


def test_next_command_of_a_table_works_when_pasted(sources, capsys):
    assert main(["inspect", "pets.csv", "--head", "1"]) == 0
    words = find_next(capsys.readouterr().err)
    assert words[1:] == ["convert", "pets.csv", "--plan"]
    assert main(words[1:]) == 0
    assert "columns:" in capsys.readouterr().out
    assert main(["inspect", "pets.csv", "--target", "age"]) == 0
    assert find_next(capsys.readouterr().err)[1:] == ["train", "pets.csv", "--target", "age"]


def test_folder_of_images_is_inspected(tmp_path, capsys):
    for label in ("cat", "dog"):
        (tmp_path / "photos" / label).mkdir(parents=True)
        for number in range(3):
            pixels = np.full((8, 8, 3), number, np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / label / f"{number}.png")
    assert main(["inspect", str(tmp_path / "photos"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["columns"]
    assert {name: each["type"] for name, each in found.items()} == {"image": "image", "label": "category"}


@pytest.mark.parametrize("name", ["pets.gz", "pets.txt", "pets"])
def test_table_of_another_name_is_inspected_and_converted(sources, name, capsys):
    content = (sources / "pets.csv").read_bytes()
    (sources / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert main(["inspect", name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 30
    assert main(["convert", name, "out", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 30


@pytest.mark.parametrize("flags", [["--tf"], ["--compare", "other"]])
def test_options_for_records_are_refused(sources, flags, capsys):
    assert main(["inspect", "pets.csv", *flags]) == 2
    assert "Convert it first" in capsys.readouterr().err


def test_file_that_is_no_table_is_inspected_as_records(tmp_path, capsys):
    (tmp_path / "x.bin").write_bytes(b"some bytes of no format")
    assert main(["inspect", str(tmp_path / "x.bin")]) == 1
    assert main(["inspect", str(tmp_path / "none.csv")]) == 2
    assert "no such file" in capsys.readouterr().err
