"""Paths in object stores where these are not supported are refused, and no folder `s3:` is made."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from penstock.cli.main import main
from penstock.errors import OptionError, PathError
from penstock.storage.atomic import AtomicFile


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    assert not [path.name for path in tmp_path.iterdir() if path.name.endswith(":")]


@pytest.mark.parametrize(
    "words",
    [
        "train pets.csv --config s3://animals/run.yaml",
        "train pets.csv --model s3://animals/model.py:build",
        "train pets.csv --image-weights s3://animals/weights.h5",
        "train pets.csv --write-model s3://animals/model.py",
        "train pets.csv --cache s3://animals/cache",
        "convert pets.csv pets --plan-file s3://animals/plan.yaml",
        "inspect pets --tf --pipeline s3://animals/pipeline.json",
        "bench pets --pipeline s3://animals/pipeline.json",
        "bench pets --cache s3://animals/cache",
        "repair pets s3://animals/repaired",
        "repair pets --out s3://animals/repaired",
        "repair s3://animals/pets repaired",
        "demo --out s3://animals/demo",
    ],
)
def test_option_that_needs_a_local_path_refuses_a_store(words, pets, capsys):
    assert main(words.split()) == 2
    assert "s3://animals/" in capsys.readouterr().err


def test_python_refuses_a_store_where_it_is_not_supported(pets):
    with pytest.raises(OptionError) as caught:
        ps.open(pets)["train"].loader(batch_size=2, cache="s3://animals/cache")
    assert caught.value.field == "cache"
    with pytest.raises(PathError) as refused:
        AtomicFile(Path("s3://animals/pipeline.json"))
    assert refused.value.path == "s3:/animals/pipeline.json"


def test_folder_that_is_named_like_a_store_can_be_written_if_it_exists(tmp_path):
    (tmp_path / "s3:").mkdir()
    with AtomicFile(Path("s3:/notes")) as file:
        file.write(b"x")
    assert (tmp_path / "s3:" / "notes").read_bytes() == b"x"
    (tmp_path / "s3:" / "notes").unlink()
    (tmp_path / "s3:").rmdir()
