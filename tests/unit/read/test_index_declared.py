"""Folders with a manifest: opened by what that says, with nothing scanned, and nothing taken on trust."""

import json
import logging

import pytest

import penstock as ps
from manifest_folders import NUMBERED, write_dataset, write_shard
from penstock.errors import (
    CorruptRecordError,
    ManifestError,
    MissingShardError,
    NoSuchPathError,
    SchemaError,
    UnknownNameError,
)
from penstock.read import index as index_module
from penstock.read.opened_files import OpenedFiles
from raising import containing, mentions, raises_with
from record_files import PAYLOADS, example, row_numbers, write_plain


@pytest.fixture(params=["none", "gzip"])
def compression(request):
    return request.param


@pytest.fixture
def folder(tmp_path):
    write_dataset(tmp_path / "pets")
    return tmp_path / "pets"


@pytest.fixture
def no_scan(monkeypatch):
    monkeypatch.setattr(index_module, "build_index", lambda *_: pytest.fail("a file is scanned"))
    monkeypatch.setattr(OpenedFiles, "survey", lambda _: pytest.fail("records are looked at"))


def test_data_set_follows_its_manifest_and_nothing_is_scanned(tmp_path, compression, no_scan):
    manifest = write_dataset(tmp_path / "pets", compression=compression, split={"method": "by hand"})
    pets = ps.open(tmp_path / "pets")
    assert pets.splits == ("train", "test")
    assert pets.schema == NUMBERED
    assert pets.payload == "example"
    assert pets.manifest == manifest
    assert [len(pets["train"]), len(pets["test"])] == [5, 1]
    assert row_numbers(pets["train"].records()) == [0, 1, 2, 3, 4]
    assert [pets["train"][i]["row"] for i in (4, 0, 2)] == [4, 0, 2]
    assert pets.notes == {"row": containing("manifest"), "text": containing("manifest")}


def test_index_is_loaded_with_the_first_record(folder, monkeypatch):
    loaded = []
    decode = index_module.decode_index
    monkeypatch.setattr(
        index_module, "decode_index", lambda *facts: loaded.append(facts[1][0]) or decode(*facts)
    )
    pets = ps.open(folder)
    assert len(pets["train"]) == 5
    assert loaded == []
    assert pets["train"][4]["row"] == 4
    assert loaded == [2 * 85]


def test_text_index_serves_where_the_own_one_is_not_there(folder, monkeypatch):
    for file in (folder / "index").iterdir():
        file.unlink()
    monkeypatch.setattr(index_module, "build_index", lambda *_: pytest.fail("a file is scanned"))
    assert row_numbers(ps.open(folder)["train"].records()) == [0, 1, 2, 3, 4]


def test_data_set_without_any_index_is_scanned(tmp_path, compression):
    write_dataset(tmp_path / "pets", compression=compression, has_index=False)
    assert row_numbers(ps.open(tmp_path / "pets")["train"].records()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_damaged_index_is_not_used(folder, on_error):
    for index in (folder / "index").iterdir():
        data = bytearray(index.read_bytes())
        data[-1] ^= 1
        index.write_bytes(data)
    assert row_numbers(ps.open(folder, on_error=on_error)["train"].records()) == [0, 1, 2, 3, 4]


def test_index_of_another_data_set_is_not_used(tmp_path):
    write_dataset(tmp_path / "a", {"train": [[example(row=1), example(row=2, text="long")]]})
    write_dataset(tmp_path / "b", {"train": [[example(row=2, text="long"), example(row=1)]]})
    name = "index/train-00000-of-00001.tfrecord.idx"
    (tmp_path / "a" / name).write_bytes((tmp_path / "b" / name).read_bytes())
    split = ps.open(tmp_path / "a", fields={"text": ps.fields.Text(default="")})["train"]
    assert [sample["row"] for sample in split] == [1, 2]


def test_file_that_the_manifest_does_not_name_is_left_out_with_a_note(folder, caplog):
    write_plain(folder / "train-00002-of-00003.tfrecord", PAYLOADS)
    with caplog.at_level(logging.WARNING, "penstock"):
        pets = ps.open(folder)
    assert len(pets["train"]) == 5
    assert mentions(pets.notes["train-00002-of-00003.tfrecord"], "manifest")
    assert mentions(caplog.text, "'train-00002-of-00003.tfrecord'")


def test_folder_without_a_manifest_opens_as_bare_files(folder):
    (folder / "penstock.json").unlink()
    pets = ps.open(folder)
    assert pets.manifest is None
    assert [len(pets[name]) for name in pets] == [5, 1]


def test_data_set_whose_conversion_has_not_ended_is_named_as_such(tmp_path):
    write_dataset(tmp_path / ".pets.partial" / "data")
    with raises_with(NoSuchPathError, path=str(tmp_path / "pets"), advice=containing("conversion", "resume")):
        ps.open(tmp_path / "pets")
    with raises_with(NoSuchPathError, path=str(tmp_path / "pots")) as caught:
        ps.open(tmp_path / "pots")
    assert "resume" not in caught.value.advice


def test_invalid_manifest_is_refused(folder):
    (folder / "penstock.json").write_text('{"format": 1')
    with raises_with(
        ManifestError, "penstock.json manifest JSON", field="$", expected=containing("JSON", "object")
    ):
        ps.open(folder)


def test_declared_roles_and_fields_override_the_schema_of_the_manifest(folder):
    pets = ps.open(folder, target="row", fields={"text": ps.fields.Bytes()})
    assert pets.schema.targets == ("row",)
    assert pets.schema["text"] == ps.fields.Bytes()
    assert isinstance(pets["train"][0]["text"], bytes)
    assert ps.open(folder, target="text").schema["text"] == ps.fields.Text(role="target")


def test_field_that_does_not_exist_cannot_be_declared(folder):
    with raises_with(UnknownNameError, field="rows", advice=containing("'row'")):
        ps.open(folder, target="rows")
    with raises_with(UnknownNameError, field="rows", got="'rows'"):
        ps.open(folder, fields={"rows": ps.fields.Number("int64")})
    with raises_with(SchemaError, field="row", got=containing(6, "int64")):
        ps.open(folder, fields={"row": ps.fields.Text()})


def test_whole_schema_replaces_the_schema_of_the_manifest(folder):
    pets = ps.open(folder, schema=ps.Schema({"row": ps.fields.Category("int64")}))
    assert dict(pets.schema) == {"row": ps.fields.Category("int64")}


def test_several_data_sets_are_one_with_concatenated_splits(tmp_path, no_scan):
    write_dataset(tmp_path / "a", {"train": [PAYLOADS[:2]], "test": [PAYLOADS[:1]]})
    write_dataset(tmp_path / "b", {"train": [PAYLOADS[2:]], "validation": [PAYLOADS[4:]]}, compression="gzip")
    both = ps.open([tmp_path / "a", tmp_path / "b", tmp_path / "a"])
    assert both.splits == ("train", "test", "validation")
    assert row_numbers(both["train"].records()) == [0, 1, 2, 3, 4]
    assert both.manifest is None


def test_several_data_sets_of_schemas_that_go_together_get_the_defaults_of_added_fields(tmp_path):
    old = ps.Schema({"row": ps.fields.Number("int64")})
    new = ps.Schema({**NUMBERED, "text": ps.fields.Text(default="?")})
    write_dataset(tmp_path / "old", {"train": [[example(row=7)]]}, old)
    write_dataset(tmp_path / "new", {"train": [[example(row=8, text="new")]]}, new)
    both = ps.open([tmp_path / "old", tmp_path / "new"])
    assert list(both["train"]) == [{"row": 7, "text": "?"}, {"row": 8, "text": "new"}]


def test_several_data_sets_of_schemas_that_do_not_go_together_show_the_difference(tmp_path):
    write_dataset(
        tmp_path / "a", {"train": [[example(row=7)]]}, ps.Schema({"row": ps.fields.Number("int64")})
    )
    write_dataset(tmp_path / "b", {"train": [[example(row="x")]]}, ps.Schema({"row": ps.fields.Text()}))
    with raises_with(SchemaError, "schemas 'row' int64 text") as caught:
        ps.open([tmp_path / "a", tmp_path / "b"])
    assert str(tmp_path / "b") in str(caught.value)


def test_data_set_beside_bare_files_is_one_with_them(folder, tmp_path):
    bare = write_plain(tmp_path / "more-train.tfrecord", PAYLOADS[:2])
    both = ps.open([folder, bare, folder / "train-00000-of-00002.tfrecord"])
    assert row_numbers(both["train"].records()) == [0, 1, 2, 3, 4, 0, 1]
    assert both.schema == NUMBERED


def test_split_of_no_shards_and_data_set_of_no_records_open(tmp_path):
    write_dataset(tmp_path / "a", {"train": [PAYLOADS], "test": []})
    assert len(ps.open(tmp_path / "a")["test"]) == 0
    write_dataset(tmp_path / "b", {"train": [[]]})
    empty = ps.open(tmp_path / "b")
    assert (empty.payload, len(empty["train"]), list(empty["train"])) == ("empty", 0, [])
    assert empty.schema == NUMBERED


def test_folder_with_a_manifest_and_no_shards_says_that_one_is_missing(folder):
    for file in folder.glob("*.tfrecord"):
        file.unlink()
    with raises_with(MissingShardError, "train-00000-of-00002.tfrecord"):
        ps.open(folder)


def test_declared_compression_must_equal_the_compression_of_the_shards(folder):
    with raises_with(CorruptRecordError, field="compression", expected="gzip"):
        ps.open(folder, options=ps.options.ReadOptions(compression="gzip"))


def test_limit_of_records_holds_for_indexed_ones(folder):
    pets = ps.open(folder, options=ps.options.ReadOptions(max_record_bytes=10))
    with raises_with(CorruptRecordError, "max_record_bytes", field="length"):
        pets["train"][0]


def test_shard_of_a_later_write_with_the_size_of_the_first_is_found_out_by_its_bytes(tmp_path):
    short, long = example(row=1, text="a"), example(row=2, text="longer")
    write_dataset(tmp_path, {"train": [[short, long]]})
    manifest = (tmp_path / "penstock.json").read_bytes()
    name = "train-00000-of-00001.tfrecord"
    index = (tmp_path / "index" / f"{name}.idx").read_bytes()
    write_shard(tmp_path, name, [long, short])
    (tmp_path / "penstock.json").write_bytes(manifest)
    (tmp_path / "index" / f"{name}.idx").write_bytes(index)
    with raises_with(
        CorruptRecordError, field="length", expected=containing("length", 31), got=containing("length", 36)
    ):
        ps.open(tmp_path)["train"][0]
    assert (tmp_path / "index" / f"{name}.idx").exists()
    assert json.loads(manifest)["format"] == 1
