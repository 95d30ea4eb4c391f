"""Folders: images by class, tables, tables beside images."""

import json
import os

import pytest

from penstock.errors import ChangedFileError, PathError, SourceError
from penstock.schema.scalar import Bytes, Category, Image
from penstock.settings.groups import TextFiles
from penstock.source.opening import open_source
from raising import containing, mentions, raises_with


@pytest.fixture
def folder(tmp_path):
    """Make files of some bytes by name, or of some text."""

    def make(*names, **texts):
        for name in names:
            path = tmp_path / "pets" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(name.encode())
        for name, text in texts.items():
            (tmp_path / "pets" / name.replace("_", ".")).write_text(text)
        return tmp_path / "pets"

    return make


def open_it(folder):
    return open_source(folder, TextFiles())


def rows_of(source):
    return [
        dict(zip(block.columns, row, strict=True))
        for block in source.blocks()
        for row in zip(*(column.to_pylist() for column in block.columns.values()), strict=True)
    ]


def test_class_folders_are_labels_in_bytewise_order(folder):
    source = open_it(
        folder(
            "dog/b.jpg", "dog/B.PNG", "cat/deep/er/1.webp", "cat/2.gif", "Ärger/x.bmp", ".git/x.jpg", "cat/.x"
        )
    )
    assert rows_of(source) == [
        {"label": "cat", "image": "cat/2.gif"},
        {"label": "cat", "image": "cat/deep/er/1.webp"},
        {"label": "dog", "image": "dog/B.PNG"},
        {"label": "dog", "image": "dog/b.jpg"},
        {"label": "Ärger", "image": "Ärger/x.bmp"},
    ]
    assert source.declared == {
        "image": Image(),
        "label": Category(values=("cat", "dog", "Ärger"), role="target"),
    }
    assert source.forms == {"image": "path"}
    assert (source.name, source.num_rows, source.notes) == ("pets", 5, ())
    (block,) = source.blocks()
    assert (block.folder, block.path) == (str(folder()), None)
    assert block.num_bytes == source.num_bytes == sum(len(row["image"].encode()) for row in rows_of(source))


def test_provenance_of_images_hashes_names_and_sizes(folder):
    (entry,) = open_it(folder("cat/1.jpg", "dog/2.jpg")).provenance()
    assert {key: entry[key] for key in ("name", "kind", "rows", "bytes")} == {
        "name": "pets",
        "kind": containing("image", "folder"),
        "rows": 2,
        "bytes": 18,
    }
    (other,) = open_it(folder("dog/3.jpg")).provenance()
    assert other["listing_sha256"] != entry["listing_sha256"]


def test_empty_class_folder_is_reported(folder):
    path = folder("cat/1.jpg", "dog/2.jpg")
    (path / "emu").mkdir()
    source = open_it(path)
    assert source.notes == (containing("class", "folder", "'emu'"),)
    assert source.declared["label"].values == ("cat", "dog")


def test_folders_called_like_splits_are_a_column(folder):
    source = open_it(folder("train/cat/1.jpg", "train/dog/2.jpg", "test/cat/3.jpg"))
    assert rows_of(source) == [
        {"split": "test", "label": "cat", "image": "test/cat/3.jpg"},
        {"split": "train", "label": "cat", "image": "train/cat/1.jpg"},
        {"split": "train", "label": "dog", "image": "train/dog/2.jpg"},
    ]
    (note,) = source.notes
    assert mentions(note, "splits column 'split'")
    assert mentions(note, "split_by='split'")
    assert source.declared["label"].values == ("cat", "dog")


def test_images_without_class_folders_have_no_label(folder):
    source = open_it(folder("1.jpg", "2.jpg"))
    assert rows_of(source) == [{"image": "1.jpg"}, {"image": "2.jpg"}]
    assert source.declared == {"image": Image()}


def test_image_beside_class_folders_is_refused(folder):
    with raises_with(SourceError, "'stray.jpg' class"):
        open_it(folder("cat/1.jpg", "stray.jpg"))


def test_other_files_are_refused_by_name(folder):
    with raises_with(SourceError, "4 cat/a.tiff b.txt c.txt") as caught:
        open_it(folder("cat/1.jpg", "cat/a.tiff", "b.txt", "c.txt", "d.txt"))
    assert caught.value.path == str(folder())


def test_folder_that_changes_is_refused(folder):
    source = open_it(folder("cat/1.jpg"))
    folder("cat/2.jpg")
    with raises_with(ChangedFileError, expected=containing(1, "images")):
        rows_of(source)


def test_empty_folder_is_refused(tmp_path):
    with raises_with(SourceError, "rows", path=str(tmp_path), expected="images"):
        open_it(tmp_path)


def test_link_that_leads_back_is_refused(folder):
    path = folder("cat/1.jpg")
    (path / "cat" / "again").symlink_to(path)
    with raises_with(PathError, "link", path=str(path / "cat" / "again")):
        open_it(path)


def test_name_that_is_no_utf8_is_refused(folder):
    path = folder("cat/1.jpg")
    with open(os.fsencode(path) + b"/cat/\xff.jpg", "wb"):  # noqa: PTH123 - a name in bytes
        pass
    with raises_with(SourceError, expected="UTF-8"):
        open_it(path)


@pytest.mark.parametrize("name", ["metadata.csv", "metadata.jsonl", "labels.csv"])
def test_table_beside_images_names_them(folder, name):
    path = folder("images/1.jpg", "images/2.jpg", "images/3.jpg", "notes.txt")
    rows = [("images/1.jpg", "Rex"), ("./images/2.jpg", "Ada")]
    if name.endswith("csv"):
        text = "photo,name\n" + "".join(",".join(row) + "\n" for row in rows)
    else:
        text = "".join(json.dumps({"photo": photo, "name": name}) + "\n" for photo, name in rows)
    (path / name).write_text(text)
    source = open_it(path)
    assert (source.declared, source.forms) == ({"photo": Image()}, {"photo": "path"})
    assert source.notes == ()
    assert rows_of(source) == [{"photo": photo, "name": name} for photo, name in rows]
    assert source.notes == (containing(f"{name}", 2),)
    (block,) = source.blocks()
    assert block.folder == str(path)


def test_table_may_name_several_files_per_row_and_files_of_any_kind(folder):
    path = folder("1.jpg", "m1.png", "1.wav", metadata_csv="image,mask,sound,n\n1.jpg,m1.png,1.wav,3\n")
    assert open_it(path).declared == {"image": Image(), "mask": Image(), "sound": Bytes()}


def test_table_that_names_no_file_is_refused(folder):
    with raises_with(SourceError, got=containing("'a'", "'b'")):
        open_it(folder("1.jpg", x_csv="a,b\n1,2\n"))


def test_several_tables_beside_images_are_refused(folder):
    with raises_with(SourceError, got=containing("test.csv", "train.csv")):
        open_it(folder("1.jpg", train_csv="a\n1\n", test_csv="a\n1\n"))


def test_folder_of_tables_is_one_source(folder, read):
    path = folder(".hidden.csv")
    for name in ("b", "a"):
        (path / f"{name}.csv").write_text(f"n\n{name}\n")
    assert read(path) == {"n": ["a", "b"]}
    assert open_it(path).name == "pets"
    assert read([path]) == {"n": ["a", "b"]}


def test_other_files_beside_images_are_counted_in_a_note(folder):
    source = open_it(folder("cat/1.jpg", "dog/2.jpg", "cat/readme.txt", "licence"))
    assert [row["image"] for row in rows_of(source)] == ["cat/1.jpg", "dog/2.jpg"]
    assert source.num_rows == 2
    assert source.notes == (containing(2, "folder", "image"),)


@pytest.mark.parametrize("name", ["pets.tar", "pets.tgz", "pets.tar.gz"])
def test_tar_archive_beside_images_or_a_table_is_another_file(folder, name):
    path = folder("cat/1.jpg", "dog/2.jpg", name)
    source = open_it(path)
    assert [row["image"] for row in rows_of(source)] == ["cat/1.jpg", "dog/2.jpg"]
    assert source.notes == (containing(1, "folder", "image"),)
    (path / "labels.csv").write_text("photo,n\ncat/1.jpg,1\n")
    assert [row["n"] for row in rows_of(open_it(path))] == ["1"]


def test_image_of_a_format_that_is_not_read_is_refused(folder):
    with raises_with(SourceError, got=containing(4, "cat/d.tiff", "cat/a.txt", "cat/b.txt")):
        open_it(folder(*(f"cat/{i}.jpg" for i in range(9)), *(f"cat/{i}.txt" for i in "abc"), "cat/d.tiff"))
