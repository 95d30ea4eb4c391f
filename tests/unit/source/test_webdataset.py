"""WebDataset archives as sources."""

import json

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from penstock.errors import CellError, NoSuchPathError, SourceError
from penstock.fields import Category, Image, Text
from penstock.settings.groups import TextFiles
from penstock.source import webdataset
from penstock.source.opening import open_source
from penstock.source.recognition import is_dataset, is_raw
from penstock.source.webdataset import split_name
from raising import containing, raises_with
from tar_files import encode_image, make_samples, pack, save_array, write_tar


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("0001.jpg", ("0001", "jpg")),
        ("0001.seg.PNG", ("0001", "seg.png")),
        ("a.b/c/0001.jpg", ("a.b/c/0001", "jpg")),
        ("a b/c d.x y", ("a b/c d", "x y")),
        ("README", None),
        (".hidden.jpg", None),
        ("a/.hidden", None),
        ("0001.", None),
        ("__meta__/a.json", None),
        ("__index__.json", None),
        ("__a.jpg", ("__a", "jpg")),
    ],
)
def test_a_name_is_divided_at_the_first_dot_of_its_base_name(name, expected):
    assert split_name(name) == expected


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tgz", "a.TAR", "archive"])
def test_members_with_one_base_name_are_a_row(name, tmp_path, read):
    members = {"x/1.txt": b"one", "x/1.cls": b"3", "x/1.jpg": b"\xff\xd8", "x/2.cls": b"", "x/2.txt": b"two"}
    path = write_tar(tmp_path / name, members)
    assert read(path) == {
        "__key__": ["x/1", "x/2"],
        "txt": [b"one", b"two"],
        "cls": [3, None],
        "jpg": [b"\xff\xd8", None],
    }
    assert is_raw([str(path)])
    assert not is_dataset(path)


def test_fields_of_known_extensions_are_declared(tmp_path):
    members = {
        "1.jpg": b"x",
        "1.seg.png": b"x",
        "1.cls": b"1",
        "1.class": b"cat",
        "1.id": b"7",
        "1.txt": b"x",
    }
    source = open_source(write_tar(tmp_path / "a.tar", members), TextFiles())
    assert source.declared == {
        "__key__": Text(role="id"),
        "jpg": Image(),
        "seg.png": Image(),
        "cls": Category("int64"),
        "class": Category("string"),
        "txt": Text(),
    }
    assert (source.num_rows, source.notes) == (1, ())


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([b"1\n", b" -2 ", b"+3"], [1, -2, 3]),
        ([b"1", b"007"], ["1", "007"]),
        ([b"1", b"cat"], ["1", "cat"]),
        ([b"9223372036854775807", b"-9223372036854775808"], [2**63 - 1, -(2**63)]),
        ([b"9223372036854775808", b"1"], ["9223372036854775808", "1"]),
        ([b"1" * 100, b"2"], ["1" * 100, "2"]),
        ([b"1_0", b"1"], ["1_0", "1"]),
    ],
)
def test_classes_are_numbers_unless_one_is_not(texts, expected, tmp_path, read):
    members = {f"{row}.cls": text for row, text in enumerate(texts)}
    assert read(write_tar(tmp_path / "a.tar", members))["cls"] == expected


def test_keys_of_json_objects_are_columns(tmp_path, read):
    objects = [{"width": 3, "tags": ["a"], "seen": "2024-01-01"}, {"width": 2.5, "note": 'x\n"{'}, None, {}]
    members = {
        f"{row}.json": json.dumps(each, indent=1).encode()
        for row, each in enumerate(objects)
        if each is not None
    }
    members["2.txt"] = b"no object"
    assert read(write_tar(tmp_path / "a.tar", sorted(members.items()))) == {
        "__key__": ["0", "1", "2", "3"],
        "width": [3.0, 2.5, None, None],
        "tags": [["a"], None, None, None],
        "seen": ["2024-01-01", None, None, None],
        "note": [None, 'x\n"{', None, None],
        "txt": [None, None, b"no object", None],
    }


def test_json_with_a_prefix_and_names_that_are_taken(tmp_path, read):
    members = {"0.cls": b"1", "0.json": b'{"cls": 2, "a": 3, "__key__": 4}', "0.meta.json": b'{"a": 5}'}
    assert read(write_tar(tmp_path / "a.tar", members)) == {
        "__key__": ["0"],
        "cls": [1],
        "json.cls": [2],
        "a": [3],
        "json.__key__": [4],
        "meta.a": [5],
    }


def test_json_without_objects_is_text_with_a_note(tmp_path, read):
    path = write_tar(tmp_path / "a.tar", {"0.json": b"[1,\n2]", "1.json": b"[]"})
    assert read(path)["json"] == ["[1,\n2]", "[]"]
    assert open_source(path, TextFiles()).notes == (containing("a.tar", "'json'"),)


def test_objects_of_several_pieces_have_one_type(tmp_path, read, monkeypatch):
    monkeypatch.setattr("penstock.source.json_members._LINES_BYTES", 100)
    monkeypatch.setattr(webdataset, "_TABLE_BYTES", 200)
    rows = [{"a": row if row < 90 else row + 0.5, "text": "x" * 20} for row in range(100)]
    members = {f"{row:03d}.json": json.dumps(each).encode() for row, each in enumerate(rows)}
    found = read(write_tar(tmp_path / "a.tar", members))
    assert found["a"] == [each["a"] for each in rows]


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "float32", "float64", ">f4", "bool"])
def test_arrays_of_one_shape_are_tensors(dtype, tmp_path, read):
    arrays = [np.arange(6).reshape(2, 3).astype(dtype), np.ones((2, 3), dtype, order="F")]
    members = {f"{row}.npy": save_array(each) for row, each in enumerate(arrays)}
    found = read(write_tar(tmp_path / "a.tar", members))["npy"]
    assert np.array_equal(found, np.stack(arrays))
    members["2.txt"] = b"no array"
    found = read(write_tar(tmp_path / "b.tar", members))["npy"]
    assert np.array_equal(found[:2], arrays)
    assert found[2] is None


def test_arrays_of_different_lengths_are_sequences(tmp_path, read):
    for step in ((), (2,), (2, 3)):
        arrays = [
            np.arange(6 * size).reshape(-1)[: int(size * np.prod(step))].reshape(size, *step)
            for size in (3, 0, 1)
        ]
        members = {f"{row}.npy": save_array(each) for row, each in enumerate(arrays)} | {"3.cls": b"0"}
        found = read(write_tar(tmp_path / "a.tar", members))["npy"]
        assert found == [*(each.tolist() for each in arrays), None]


def test_scalars_are_numbers_and_other_arrays_stay_bytes(tmp_path, read):
    numbers = {f"{row}.npy": save_array(np.float32(row)) for row in range(3)}
    assert read(write_tar(tmp_path / "a.tar", numbers | {"3.cls": b"1"}))["npy"] == [0.0, 1.0, 2.0, None]
    shapes = {f"{row}.npy": save_array(np.zeros(shape)) for row, shape in enumerate([(2, 3), (3, 2)])}
    path = write_tar(tmp_path / "b.tar", shapes)
    assert read(path)["npy"] == list(shapes.values())
    assert open_source(path, TextFiles()).notes == (containing("'npy'"),)


def test_other_extensions_are_bytes_with_a_note(tmp_path, read):
    path = write_tar(tmp_path / "a.tar", {"0.mp3": b"\xff", "0.PKL": b"\x80\x04", "1.mp3": b""})
    assert read(path) == {"__key__": ["0", "1"], "mp3": [b"\xff", b""], "pkl": [b"\x80\x04", None]}
    assert open_source(path, TextFiles()).notes == (containing("'mp3'"), containing("'pkl'"))


def test_columns_of_several_archives_are_of_one_type(tmp_path, read):
    first = {"0.cls": b"1", "0.npy": save_array([1, 2]), "0.json": b'{"a": 1}'}
    second = {"1.npy": save_array([3.5]), "1.json": b'{"a": 1.5, "txt": "b"}', "1.cls": b"cat"}
    third = {"2.txt": b"x"}
    paths = [
        write_tar(tmp_path / f"{name}.tar", each)
        for name, each in zip("abc", (first, second, third), strict=True)
    ]
    assert read(paths) == {
        "__key__": ["0", "1", "2"],
        "cls": ["1", "cat", None],
        "npy": [[1.0, 2.0], [3.5], None],
        "a": [1.0, 1.5, None],
        "json.txt": [None, "b", None],
        "txt": [None, None, b"x"],
    }
    with raises_with(SourceError, path=str(paths[1]), expected=containing("types of the previous archives")):
        read([write_tar(tmp_path / "d.tar", {"3.json": b'{"a": "text"}'}), paths[1]])


def test_a_list_a_glob_and_a_folder_are_the_same_data_set(tmp_path):
    folder = tmp_path / "shards"
    folder.mkdir()
    paths = [write_tar(folder / f"pets-{i:04d}.tar", make_samples(20, 20 * i)) for i in range(3)]
    ways = (paths, str(folder / "pets-*.tar"), folder)
    made = [ps.convert(given, tmp_path / str(i), target="cls") for i, given in enumerate(ways)]
    assert len({tuple(each.sha256 for each in data.manifest.shards()) for data in made}) == 1
    assert made[0].schema.targets == ("cls",)
    rows = {row["__key__"]: row for split in made[0].splits for row in made[0][split]}
    assert sorted(rows) == [f"{row:04d}" for row in range(60)]
    assert (rows["0041"]["txt"], rows["0041"]["cls"]) == ("text number 41", 1)


def test_threads_and_compression_do_not_change_the_records(tmp_path):
    samples = make_samples(60)
    plain, packed = write_tar(tmp_path / "a.tar", samples), write_tar(tmp_path / "a.tar.gz", samples)
    made = [
        ps.convert(path, tmp_path / f"{number}", target="cls", num_threads=threads, seed=3)
        for number, (path, threads) in enumerate([(plain, 1), (plain, 4), (packed, 2)])
    ]
    assert len({tuple(each.sha256 for each in data.manifest.shards()) for data in made}) == 1


def test_damaged_images_are_rejected_rows_by_request(tmp_path):
    members = make_samples(30) | {"0007.jpg": b"no image", "0011.txt": b"\xff\xfe\xff"}
    data = ps.convert(write_tar(tmp_path / "a.tar", members), tmp_path / "out", target="cls", on_error="skip")
    assert sum(len(data[split]) for split in data.splits) == 28
    assert [(error.row, error.field, error.path) for error in data.rejected] == [
        (8, "jpg", str(tmp_path / "a.tar")),
        (12, "txt", str(tmp_path / "a.tar")),
    ]
    assert ["'0007'" in str(error) for error in data.rejected] == [True, False]


def test_texts_of_an_archive_are_never_names_of_files(tmp_path):
    for row in range(3):
        (tmp_path / f"{row}.png").write_bytes(encode_image(row))
    members = {
        f"s{row}.{extension}": data
        for row in range(30)
        for extension, data in (
            ("txt", b"%d.png" % (row % 3)),
            ("json", json.dumps({"file": str(tmp_path / f"{row % 3}.png")}).encode()),
        )
    }
    data = ps.convert(write_tar(tmp_path / "a.tar", members), tmp_path / "out")
    kinds = {name: field.type_name for name, field in data.schema.items()}
    assert kinds == {"__key__": "text", "txt": "text", "file": "category"}
    with raises_with(CellError, field="file", advice=containing("never read")):
        ps.convert(tmp_path / "a.tar", tmp_path / "other", fields={"file": Image()})


def test_files_of_no_sample_are_counted(tmp_path, read):
    path = write_tar(tmp_path / "a.tar", {"README": b"x", ".DS_Store": b"", "0.txt": b"a"})
    assert read(path) == {"__key__": ["0"], "txt": [b"a"]}
    assert open_source(path, TextFiles()).notes == (containing("2 files", "'README'"),)


@pytest.mark.parametrize(
    ("members", "facts"),
    [
        ([("0.jpg", b""), ("0.JPG", b"")], {"what": containing("'0'"), "got": containing("'jpg'")}),
        (
            [("0.jpg", b""), ("1.jpg", b""), ("0.cls", b"1")],
            {"what": containing("'0'"), "advice": containing("--sort")},
        ),
        ([("pets.csv", b"a\n1\n")], {"got": containing("csv")}),
        ([(f"{i}.{i}.jpg", b"") for i in range(300)], {"expected": containing("256")}),
        ([("0.json", b"{")], {"what": containing("'0.json'"), "field": "json"}),
        ([("0.json", b"\xff{}")], {"what": containing("'0.json'")}),
        ([("0.json", b"[" * 10_000)], {"what": containing("'0.json'"), "advice": "Flatten the values."}),
        (
            [("0.json", b'{"a": 1}'), ("1.json", b'{"a": "x"}')],
            {"what": containing("'1.json'"), "field": "a"},
        ),
        (
            [("0.json", b'{"a": 1}'), ("1.json", b"[]")],
            {"what": containing("'1.json'"), "expected": containing("'0'")},
        ),
        ([("0.cls", b"a\xff")], {"what": containing("'0.cls'"), "expected": "text in UTF-8"}),
        ([("0.npy", b"\x93NUMPY\x01\x00")], {"what": containing("'0.npy'")}),
        (
            [("0.npy", save_array(np.zeros(9))[:-1])],
            {"got": "199 bytes", "expected": containing("200 bytes")},
        ),
        ([("0.npy", save_array(["a"]))], {"expected": "an array of numbers"}),
    ],
)
def test_members_that_are_not_valid_are_named(members, facts, tmp_path):
    path = write_tar(tmp_path / "a.tar", members)
    with raises_with(SourceError, path=str(path), **facts):
        list(open_source(path, TextFiles()).blocks())


def test_an_archive_without_samples_has_no_rows(tmp_path):
    with raises_with(SourceError, what="no rows"):
        list(open_source(write_tar(tmp_path / "a.tar", {}), TextFiles()).blocks())
    with pytest.raises(NoSuchPathError):
        open_source(tmp_path / "b.tar", TextFiles())


def test_blocks_of_large_members_are_small(tmp_path):
    members = {f"{row:03d}.bin": bytes(3 << 20) for row in range(40)}
    blocks = list(open_source(write_tar(tmp_path / "a.tar", members), TextFiles()).blocks())
    assert sum(block.num_rows for block in blocks) == 40
    assert all(
        sum(pa.array(column).nbytes for column in block.columns.values()) <= 44 << 20 for block in blocks
    )


def test_an_archive_that_changes_between_two_passes_is_refused(tmp_path):
    path = write_tar(tmp_path / "a.tar", make_samples(3))
    source = open_source(path, TextFiles())
    path.write_bytes(pack(make_samples(4)))
    with pytest.raises(ps.errors.ChangedFileError):
        list(source.blocks())
