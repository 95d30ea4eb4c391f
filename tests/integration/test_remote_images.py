"""Conversions from object stores: every kind of source gives the shards of the same files on a disk."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import penstock as ps
from image_files import jpeg, saved, scene
from penstock.cli.main import main
from penstock.errors import CellError, ChangedFileError, FieldError, PathError, SourceError, StoreError
from store_server import put_object, send, upload_folder

NUM_ROWS = 24


KEY = "photos/cat/deep/n 0#%20[x].jpg"


def photo(number: int) -> bytes:
    if number % 7 == 0:
        return saved(scene(20, 20, number), "PNG")
    return jpeg(scene(24 + number % 5, 32, number))


@pytest.fixture
def photos(tmp_path) -> Path:
    """A folder of images by class, with names that sort differently as whole keys, and odd characters."""
    folder = tmp_path / "photos"
    for number in range(NUM_ROWS):
        label = ("cat", "cat-big", "dog's ä")[number % 3]
        path = folder / label / ("deep" if number % 5 == 0 else "") / f"n {number}#%20[x].jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(photo(number))
    return folder


@pytest.fixture
def tables(tmp_path) -> Path:
    """Tables whose column `photo` names files beside them."""
    folder = tmp_path / "tables"
    (folder / "files").mkdir(parents=True)
    names = [f"files/{number}.jpg" for number in range(NUM_ROWS)]
    for number, name in enumerate(names):
        (folder / name).write_bytes(photo(number))
    names[5] = ""
    table = pa.table(
        {
            "photo": [name or None for name in names],
            "size": np.arange(NUM_ROWS) * 0.5,
            "sold": np.arange(NUM_ROWS) % 2,
        }
    )
    pq.write_table(table, folder / "pets.parquet")
    feather.write_feather(table, folder / "pets.arrow", compression="uncompressed")
    rows = table.to_pylist()
    (folder / "pets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = [f"{row['photo'] or ''},{row['size']},{row['sold']}\n" for row in rows]
    (folder / "pets.csv").write_text("photo,size,sold\n" + "".join(lines))
    return folder


def upload(port: int, folder: Path) -> str:
    upload_folder(port, folder, "animals", folder.name)
    return f"s3://animals/{folder.name}"


def assert_equal(remote, near) -> None:
    assert [each.sha256 for each in remote.manifest.shards()] == [
        each.sha256 for each in near.manifest.shards()
    ]
    assert remote.manifest.source == near.manifest.source
    assert remote.manifest.request == near.manifest.request
    assert remote.manifest.statistics == near.manifest.statistics


@pytest.mark.parametrize("options", [{}, {"resize": 16}, {"num_threads": 1, "shuffle": False}], ids=str)
def test_images_by_class_in_a_store_give_the_same_shards(s3, s3_port, photos, tmp_path, options):
    remote = ps.convert(upload(s3_port, photos), "s3://animals/out", num_shards=3, **options)
    near = ps.convert(photos, tmp_path / "out", num_shards=3, **options)
    assert remote.schema["label"].values == ("cat", "cat-big", "dog's ä")
    assert_equal(remote, near)


def test_folders_named_like_splits_and_empty_objects_of_folders(s3, s3_port, tmp_path):
    for split in ("train", "test"):
        for number in range(4):
            path = tmp_path / "raw" / split / f"c{number % 2}" / f"{number}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(photo(number))
    source = upload(s3_port, tmp_path / "raw")
    for marker in ("raw/", "raw/train/", "raw/train/c0/"):  # as consoles make them
        put_object(s3_port, "animals", marker, b"")
    remote = ps.convert(source, "s3://animals/out", split_by="split")
    near = ps.convert(tmp_path / "raw", tmp_path / "out", split_by="split")
    assert_equal(remote, near)
    assert {name: len(remote[name]) for name in remote.splits} == {"train": 4, "test": 4}


@pytest.mark.parametrize("name", ["pets.csv", "pets.parquet", "pets.jsonl", "pets.arrow"])
def test_tables_that_name_images_beside_them(s3, s3_port, tables, tmp_path, name):
    source = upload(s3_port, tables)
    remote = ps.convert(f"{source}/{name}", "s3://animals/out", target="sold")
    assert remote.schema["photo"].type_name == "image"
    assert_equal(remote, ps.convert(tables / name, tmp_path / "out", target="sold"))


def test_a_folder_with_a_table_of_its_images(s3, s3_port, tables, tmp_path):
    for name in ("pets.parquet", "pets.jsonl", "pets.arrow"):
        (tables / name).unlink()
    (tables / "files" / "unnamed.jpg").write_bytes(photo(99))
    remote = ps.convert(upload(s3_port, tables), "s3://animals/out", target="sold")
    assert_equal(remote, ps.convert(tables, tmp_path / "out", target="sold"))


def test_folders_and_patterns_of_tables(s3, s3_port, tmp_path):
    for part in range(3):
        path = tmp_path / "parts" / f"part-{part}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text("a,b\n" + "".join(f"{part * 50 + row},x{row}\n" for row in range(50)))
    source = upload(s3_port, tmp_path / "parts")
    near = ps.convert(tmp_path / "parts", tmp_path / "near")
    assert_equal(ps.convert(source, "s3://animals/folder"), near)
    matched = ps.convert(str(tmp_path / "parts" / "*.csv"), tmp_path / "matched")
    assert_equal(ps.convert(f"{source}/*.csv", "s3://animals/pattern"), matched)
    listed = [f"{source}/part-{part}.csv" for part in range(3)]
    assert_equal(ps.convert(listed, "s3://animals/list"), matched)


def test_tfrecord_files_without_a_manifest(s3, s3_port, tmp_path):
    near = ps.convert({"a": np.arange(50), "b": np.arange(50) % 2}, tmp_path / "near", split="train=1")
    (shard,) = near.manifest.shards()
    data = (tmp_path / "near" / shard.name).read_bytes()
    put_object(s3_port, "animals", f"records/{shard.name}", data)
    put_object(s3_port, "animals", "records/notes.txt", b"about the records")
    put_object(s3_port, "animals", "odd/name", data)
    for source in ("s3://animals/records", f"s3://animals/records/{shard.name}", "s3://animals/odd/name"):
        again = ps.convert(source, tmp_path / source.rpartition("/")[2], split="train=1")
        assert len(again["train"]) == 50


def test_images_are_requested_many_at_a_time(s3, s3_port, photos, tmp_path):
    source = upload(s3_port, photos)
    most, active = [0], [0]
    handle = s3._handle

    def count(handler):
        active[0] += 1
        most[0] = max(most[0], active[0])
        try:
            handle(handler)
        finally:
            active[0] -= 1

    s3._handle = count
    s3.latency = 0.02
    ps.convert(source, tmp_path / "out", num_threads=1)
    assert most[0] >= 8
    images = [each for each in s3.requests if each.method == "GET" and each.key.endswith(".jpg")]
    assert len(images) <= 2 * NUM_ROWS + 64  # encoded once, written once, and the first bytes of some


@pytest.mark.parametrize("fault", [500, "cut"])
def test_faults_that_pass_do_not_change_the_shards(s3, s3_port, photos, tmp_path, fault):
    source = upload(s3_port, photos)
    seen: set[str] = set()

    def fail_once(request):
        name = f"{request.method} {request.path}"
        is_first = name not in seen
        seen.add(name)
        return fault if is_first else None

    s3.fault = fail_once
    remote = ps.convert(source, tmp_path / "remote", num_shards=2)
    s3.fault = None
    assert_equal(remote, ps.convert(photos, tmp_path / "near", num_shards=2))


def test_a_store_that_refuses_is_not_a_bad_row(s3, s3_port, tables, tmp_path):
    source = upload(s3_port, tables)
    s3.fault = lambda request: 403 if request.key.endswith("17.jpg") else None
    with pytest.raises(StoreError) as caught:
        ps.convert(f"{source}/pets.csv", tmp_path / "out", target="sold", on_error="skip")
    assert caught.value.path == f"{source}/files/17.jpg"


def test_a_missing_image_is_a_bad_row_that_names_the_table(s3, s3_port, tables, tmp_path):
    source = upload(s3_port, tables)
    assert send(s3_port, "DELETE", "/animals/tables/files/17.jpg")[0] == 204
    with pytest.raises(CellError) as caught:
        ps.convert(f"{source}/pets.csv", tmp_path / "out", target="sold")
    error = caught.value
    assert (error.path, error.row, error.line, error.field) == (f"{source}/pets.csv", 18, 19, "photo")
    assert f"{source}/files/17.jpg" in str(error.got)
    skipped = ps.convert(f"{source}/pets.csv", tmp_path / "out", target="sold", on_error="skip")
    assert skipped.manifest.num_records == NUM_ROWS - 1


@pytest.mark.parametrize(("is_deleted", "kind"), [(False, ChangedFileError), (True, PathError)])
def test_an_image_that_changes_is_an_error(s3, s3_port, photos, tmp_path, is_deleted, kind):
    source = upload(s3_port, photos)
    changed = []

    def replace_it(request):
        # All images were read once when the first is read again.
        is_image = request.method == "GET" and request.key.endswith(".jpg") and request.range is None
        if is_image:
            changed.append(request.key)
        if len(changed) == NUM_ROWS + 1 and is_image:
            if is_deleted:
                send(s3_port, "DELETE", f"/animals/{quote(KEY)}")
            else:
                put_object(s3_port, "animals", KEY, photo(1000))

    s3.fault = replace_it
    with pytest.raises(kind) as caught:
        ps.convert(source, tmp_path / "out", num_threads=1)
    assert caught.value.path == f"s3://animals/{KEY}"
    assert not (tmp_path / "out").exists()


def test_a_table_that_changes_is_an_error(s3, s3_port, tables, tmp_path):
    source = upload(s3_port, tables)
    count = [0]

    def replace_it(request):
        if request.method == "GET" and "/files/" in request.path:
            count[0] += 1
            if count[0] == 1:
                put_object(s3_port, "animals", "tables/pets.csv", b"photo,size,sold\nfiles/1.jpg,1,1\n")

    s3.fault = replace_it
    with pytest.raises(ChangedFileError) as caught:
        ps.convert(f"{source}/pets.csv", tmp_path / "out", target="sold")
    assert caught.value.path == f"{source}/pets.csv"


def test_errors_of_tables_name_the_object(s3, s3_port, tmp_path):
    put_object(s3_port, "animals", "raw/bad.parquet", b"PAR1 is not enough")
    put_object(s3_port, "animals", "raw/cells.csv", b"age,b\n1,2\nold,3\n")
    with pytest.raises(SourceError) as caught:
        ps.convert("s3://animals/raw/bad.parquet", tmp_path / "out")
    assert caught.value.path == "s3://animals/raw/bad.parquet"
    assert "penstock-" not in str(caught.value)
    with pytest.raises(FieldError) as caught:
        ps.convert("s3://animals/raw/cells.csv", tmp_path / "out", fields={"age": ps.fields.Number()})
    assert (caught.value.path, caught.value.row, caught.value.line) == ("s3://animals/raw/cells.csv", 2, 3)


@pytest.fixture
def hostile(s3, s3_port, tmp_path):
    """A function that uploads a table with one cell, and converts it."""
    for key in ("tables/own.jpg", "other/own.jpg"):
        put_object(s3_port, "animals", key, photo(1))
    (tmp_path / "local.jpg").write_bytes(photo(2))

    def convert_cell(cell: str, *more: str, **options: object):
        cells = [cell, *more]
        text = "photo,n\n" + "".join(f"{each},{row}\n" for row, each in enumerate(cells))
        put_object(s3_port, "animals", "tables/pets.csv", text.encode())
        s3.clear()
        fields = {"photo": ps.fields.Image()}
        return ps.convert("s3://animals/tables/pets.csv", tmp_path / "out", fields=fields, **options)

    return convert_cell


@pytest.mark.parametrize(
    "cell",
    [
        "../other/own.jpg",
        "x/../../other/own.jpg",
        "s3://animals/other/own.jpg",
        "S3://animals/other/own.jpg",
        "s3://animals/tables-2/own.jpg",
        "s3://animals/tables/../other/own.jpg",
        "s3://elsewhere/own.jpg",
        "https://example.invalid/own.jpg",
        "http://127.0.0.1:9/own.jpg",
        "http://169.254.169.254/latest/meta-data",
        "http://[::1]/own.jpg",
        "gs://elsewhere/own.jpg",
        "/etc/passwd",
        "LOCAL",
    ],
)
def test_cells_cannot_name_files_that_are_not_allowed(s3, hostile, tmp_path, cell):
    cell = str(tmp_path / "local.jpg") if cell == "LOCAL" else cell
    with pytest.raises(CellError) as caught:
        hostile(cell)
    assert caught.value.field == "photo"
    assert "files_from=[URL]" in caught.value.advice
    assert {each.key for each in s3.requests} <= {"tables/pets.csv", "tables/pets.csv/penstock.json", ""}


@pytest.mark.parametrize(
    ("cell", "allowed"),
    [
        ("own.jpg", ()),
        ("./own.jpg", ()),
        ("x/../own.jpg", ()),
        ("s3://animals/tables/own.jpg", ()),
        ("../other/own.jpg", ("s3://animals/other",)),
        ("s3://animals/other/own.jpg", ("s3://animals",)),
        ("s3://animals/other/own.jpg", ("s3://elsewhere", "s3://animals/other/own.jpg")),
        ("LOCAL", ("FOLDER",)),
    ],
)
def test_cells_can_name_files_beside_the_table_or_allowed_files(hostile, tmp_path, cell, allowed):
    cell = str(tmp_path / "local.jpg") if cell == "LOCAL" else cell
    allowed = tuple(str(tmp_path) if each == "FOLDER" else each for each in allowed)
    assert hostile(cell, files_from=allowed).manifest.num_records == 1


def test_cells_can_name_images_behind_https_if_allowed(s3, hostile):
    s3.is_public = True
    cell = f"{s3.url}/animals/other/own.jpg"
    assert hostile(cell, files_from=(f"{s3.url}/animals",)).manifest.num_records == 1
    with pytest.raises(CellError):
        hostile(
            f"{s3.url}/animals/%2e%2e/animals/other/own.jpg",
            files_from=(f"{s3.url}/animals/x",),
            overwrite=True,
        )


def test_a_local_table_reads_urls_only_if_allowed(s3, s3_port, tmp_path, capsys):
    put_object(s3_port, "animals", "other/own.jpg", photo(1))
    (tmp_path / "pets.csv").write_text("photo,n\n" + "s3://animals/other/own.jpg,1\n" * 3)
    refused = ps.convert(tmp_path / "pets.csv", tmp_path / "refused")
    assert refused.schema["photo"].type_name != "image"
    assert not s3.requests
    command = ["convert", str(tmp_path / "pets.csv"), str(tmp_path / "out"), "--files-from", "s3://animals"]
    assert main(command) == 0
    assert ps.open(tmp_path / "out").schema["photo"].type_name == "image"
    assert main(["convert", str(tmp_path / "pets.csv"), "--plan"]) == 0
    assert "--files-from" in capsys.readouterr().out


def test_an_object_of_two_gib_is_refused_before_it_is_read(s3, hostile, monkeypatch):
    monkeypatch.setattr("penstock.storage.named_files.MAX_FILE_BYTES", 100)
    with pytest.raises(CellError) as caught:
        hostile("own.jpg")
    assert "2 GiB" in str(caught.value.got)


def test_a_folder_behind_https_is_refused(s3, tmp_path):
    s3.is_public = True
    with pytest.raises(PathError) as caught:
        ps.convert(f"{s3.url}/animals/photos", tmp_path / "out")
    assert caught.value.path == f"{s3.url}/animals/photos"
