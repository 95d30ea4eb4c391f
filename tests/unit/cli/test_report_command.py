"""`penstock report` from the command line: the file, the JSON, and wrong calls."""

import json
import subprocess
import sys

import pytest

import penstock as ps
from penstock.cli.main import main


@pytest.fixture
def pets(tmp_path):
    rows = [{"age": number % 9, "leak": number % 2 * 5, "adopted": number % 2} for number in range(120)]
    ps.convert(rows, tmp_path / "pets", target="adopted")
    return tmp_path / "pets"


def test_data_set_gets_a_page_and_its_warnings_are_printed(pets, tmp_path, capsys):
    out = tmp_path / "pets.html"
    assert main(["report", str(pets), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "'leak'" in printed
    assert str(out) in printed
    assert out.read_text().startswith("<!DOCTYPE html>")


def test_json_is_the_object_and_writes_no_file(pets, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(pets), "--json", "--samples", "2", "--records", "50"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "data"
    assert len(found["data"]["samples"]) == 2
    assert [each["name"] for each in found["data"]["fields"]] == ["adopted", "age", "leak"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pets"]


def test_existing_file_is_kept_unless_asked(pets, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "report.html").write_text("mine")
    assert main(["report", str(pets)]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert (tmp_path / "report.html").read_text() == "mine"
    assert main(["report", str(pets), "--overwrite"]) == 0
    assert (tmp_path / "report.html").read_text() != "mine"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["report"], "SOURCE"),
        (["report", "nothing"], "nothing"),
        (["report", "PETS", "--records", "0"], "records"),
        (["report", "PETS", "--data", "PETS"], "data"),
        (["report", "PETS", "--slpit", "test"], "--split"),
        (["report", "PETS", "--split", "test"], "split"),
    ],
)
def test_wrong_calls_are_explained(pets, words, named, capsys):
    words = [str(pets) if word == "PETS" else word for word in words]
    assert main(words) == 2
    assert named in capsys.readouterr().err


def test_report_on_data_needs_no_framework(pets, tmp_path):
    program = f"""
import sys
for name in ("keras", "tensorflow", "jax", "torch", "pyarrow", "yaml"):
    sys.modules[name] = None
import penstock
penstock.write_report({str(pets)!r}, {str(tmp_path / "plain.html")!r})
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=240)
    assert (tmp_path / "plain.html").stat().st_size > 10_000
