"""TFRecords under any name: every command reads what `inspect` reads (X15)."""

import gzip

import pytest

import penstock as ps
from penstock.cli.main import main
from record_files import example, write_record

RECORDS = b"".join(write_record(example(name=f"pet {n}", age=n % 7)) for n in range(60))


@pytest.fixture(params=["pets.recordio", "pets.gz", "pets", "pets.dat.gz"])
def folder(request, tmp_path):
    """A folder of two files with the same suffix, one of them compressed where it is called so."""
    folder = tmp_path / "data"
    folder.mkdir()
    squeeze = gzip.compress if request.param.endswith(".gz") else bytes
    (folder / request.param).write_bytes(squeeze(RECORDS))
    (folder / f"more {request.param}").write_bytes(squeeze(RECORDS))
    return folder


@pytest.mark.parametrize("form", ["file", "list", "glob", "folder"])
def test_x15_convert_takes_the_sources_that_inspect_reads(folder, tmp_path, capsys, form):
    first, *others = sorted(folder.iterdir())
    given = {"file": [first], "list": [first, *others], "glob": [folder / "*"], "folder": [folder]}[form]
    words = [str(path) for path in given]
    assert main(["inspect", *words]) == 0
    assert main(["convert", *words, str(tmp_path / "out"), "--id", "name"]) == 0
    out = ps.open(tmp_path / "out")
    assert sum(len(out[name]) for name in out.splits) == (60 if form == "file" else 120)
    assert main(["verify", *words]) == 0
    assert main(["bench", *words, "--batches", "1", "--no-pipeline"]) == 0
    capsys.readouterr()


def test_x15_files_beside_tfrecords_that_are_named_so_are_taken_for_backups(tmp_path):
    (tmp_path / "pets.tfrecord").write_bytes(RECORDS)
    (tmp_path / "pets.tfrecord.bak").write_bytes(RECORDS)
    assert len(ps.open(tmp_path)["all"]) == 60
