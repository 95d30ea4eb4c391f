"""Tables in an object store as sources of conversions."""

from __future__ import annotations

import gzip
import io
import json
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.errors import NoSuchPathError, OptionError, SourceError
from raising import raises_with
from store_server import put_object
from tar_files import make_samples, pack, write_tar

COLUMNS = {"height": np.arange(400) * 0.25, "sold": np.arange(400) % 2}


@pytest.fixture
def tables(s3, s3_port, tmp_path):
    pq.write_table(pa.table(COLUMNS), tmp_path / "pets.parquet")
    (tmp_path / "pets.csv").write_text(
        "height,sold\n" + "".join(f"{a},{b}\n" for a, b in zip(*COLUMNS.values(), strict=True))
    )
    for name in ("pets.parquet", "pets.csv"):
        put_object(s3_port, "animals", f"raw/{name}", (tmp_path / name).read_bytes())
    put_object(s3_port, "animals", "photos/cat.jpg", b"\xff\xd8\xff")
    put_object(s3_port, "animals", "other/notes.txt", b"not a table")
    return tmp_path


@pytest.mark.parametrize("name", ["pets.parquet", "pets.csv"])
def test_a_table_in_a_store_gives_the_same_shards_as_its_copy(tables, tmp_path, name):
    remote = ps.convert(f"s3://animals/raw/{name}", "s3://animals/out", target="sold")
    near = ps.convert(tables / name, tmp_path / "out", target="sold")
    assert [each.sha256 for each in remote.manifest.shards()] == [
        each.sha256 for each in near.manifest.shards()
    ]
    assert remote.manifest.source == near.manifest.source
    assert remote.manifest.request == near.manifest.request


def test_tables_in_a_store_are_detected_and_unpacked_like_local_ones(tables, s3_port, tmp_path):
    rows = list(zip(COLUMNS["height"].tolist(), COLUMNS["sold"].tolist(), strict=True))
    text = "height;sold\n" + "".join(f"{str(a).replace('.', ',')};{b}\n" for a, b in rows)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("pets.csv", text)
    objects = {
        "a.csv": text.encode(),
        "b.csv.gz": gzip.compress(text.encode()),
        "c.zip": archive.getvalue(),
        "d.json": json.dumps([{"height": a, "sold": b} for a, b in rows]).encode(),
    }
    near = ps.convert(tables / "pets.csv", tmp_path / "near", target="sold")
    for name, data in objects.items():
        put_object(s3_port, "animals", f"other kinds/{name}", data)
        found = ps.convert(f"s3://animals/other kinds/{name}", tmp_path / name, target="sold")
        assert [each.sha256 for each in found.manifest.shards()] == [
            each.sha256 for each in near.manifest.shards()
        ]
        assert found.manifest.source[0]["name"] == name


def test_patterns_match_several_tables(tables, tmp_path):
    dataset = ps.convert("s3://animals/raw/*.csv", tmp_path / "out", target="sold")
    assert sum(len(dataset[name]) for name in dataset.splits) == 400


def test_object_of_another_kind_is_refused_before_any_table_is_copied(tables, s3, tmp_path):
    s3.clear()
    with pytest.raises(OptionError) as caught:
        ps.convert(["s3://animals/raw/pets.csv", "s3://animals/other/notes.txt"], tmp_path / "out")
    assert caught.value.path == "s3://animals/other/notes.txt"
    assert not [each for each in s3.requests if each.method == "GET" and each.key.endswith(".csv")]


def test_a_data_set_in_a_store_is_a_source(tables, tmp_path):
    first = ps.convert("s3://animals/raw/pets.csv", "s3://animals/out", target="sold")
    again = ps.convert("s3://animals/out", tmp_path / "again")
    assert again.schema == first.schema
    assert {name: len(again[name]) for name in again.splits} == {
        name: len(first[name]) for name in first.splits
    }


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("s3://animals/raw/nothing.csv", NoSuchPathError),
        ("s3://animals/photos/cat.jpg", OptionError),
        ("s3://animals/other", SourceError),
    ],
)
def test_source_that_cannot_be_read_is_refused(tables, tmp_path, source, kind):
    with pytest.raises(kind):
        ps.convert(source, tmp_path / "out", target="sold")


def test_local_and_remote_paths_in_one_list_are_refused(tables, tmp_path):
    with pytest.raises(OptionError):
        ps.convert(["s3://animals/raw/pets.csv", tables / "pets.csv"], tmp_path / "out", target="sold")


def test_webdataset_archives_in_a_store_give_the_shards_of_their_copies(s3, s3_port, tmp_path):
    for number in range(2):
        path = write_tar(tmp_path / f"pets-{number}.tar.gz", make_samples(20, 20 * number))
        put_object(s3_port, "animals", f"samples/{path.name}", path.read_bytes())
    near = ps.convert(str(tmp_path / "pets-*.tar.gz"), tmp_path / "near", target="cls")
    for number, given in enumerate(("s3://animals/samples", "s3://animals/samples/*.tar.gz")):
        found = ps.convert(given, tmp_path / f"out{number}", target="cls")
        assert [each.sha256 for each in found.manifest.shards()] == [
            each.sha256 for each in near.manifest.shards()
        ]
    put_object(s3_port, "animals", "broken/a.tar", pack(make_samples(3))[:700])
    with raises_with(SourceError, path="s3://animals/broken/a.tar"):
        ps.convert("s3://animals/broken/a.tar", tmp_path / "out", target="cls")
