"""Rows that a conversion leaves out are counted, their errors are kept, and the error of a row says how."""

import logging

import pytest

import penstock as ps
from image_files import saved, scene
from penstock.cli.main import main
from penstock.errors import FieldError
from record_files import BASE, FRAME_BYTES, flip

FIELDS = {"photo": ps.fields.Image(), "x": ps.fields.Number()}


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table of ten rows; the photo of the third is missing, and the number of the sixth is a word."""
    monkeypatch.chdir(tmp_path)
    for number in (0, 1, *range(3, 10)):
        (tmp_path / f"{number}.png").write_bytes(saved(scene(8, 8), "png"))
    cells = (f"{n}.png,{'oops' if n == 5 else n}.5,{n % 2}\n" for n in range(10))
    (tmp_path / "t.csv").write_text("photo,x,y\n" + "".join(cells).replace("oops.5", "oops"))
    return tmp_path / "t.csv"


@pytest.mark.parametrize("on_error", ["skip", "collect"])
def test_conversion_counts_and_keeps_the_errors_of_rows(table, caplog, on_error):
    caplog.set_level(logging.WARNING)
    data = ps.convert("t.csv", "out", fields=FIELDS, target="y", on_error=on_error, seed=1)
    assert data.manifest.rejects["count"] == 2
    assert [error.field for error in data.rejected] == ["photo", "x"]
    assert "no such file" in str(data.rejected[0])
    assert "2 rows rejected" in caplog.text
    assert ps.open("out").rejected == []


def test_error_of_a_missing_image_says_how_to_leave_it_out(table, capsys):
    with pytest.raises(FieldError, match="no such file") as caught:
        ps.convert("t.csv", "out", fields=FIELDS, target="y")
    assert "on_error='skip'" in caught.value.advice
    assert "--" not in str(caught.value)
    argv = ["convert", "t.csv", "out", "--image", "photo", "--number", "x", "--target", "y"]
    assert main(argv) == 1
    err = capsys.readouterr().err
    assert "--on-error skip" in err
    assert "on_error" not in err
    assert main([*argv, "--on-error", "skip"]) == 0
    assert "2 rows rejected" in capsys.readouterr().err


def test_split_keeps_the_errors_of_skipped_records(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(flip(BASE, 2 * FRAME_BYTES + 40))
    data = ps.open(path, on_error="skip")
    assert len(list(data["all"])) == 4
    assert [error.record for error in data.rejected] == [2]
