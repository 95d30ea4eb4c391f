"""Shards that are named without their folder, and globs of folders: read by the manifests that list them."""

import logging

import numpy as np
import pytest

import penstock as ps
from manifest_folders import NUMBERED, write_dataset
from penstock.errors import ManifestError, MissingShardError, SchemaError
from penstock.fields import Number, Tensor, Text
from penstock.read.dataset_files import list_files
from penstock.read.opened_files import OpenedFiles
from raising import mentions, raises_with
from record_files import PAYLOADS, example, row_numbers, write_plain

EXACT = ps.Schema({"exact": Number("float64"), "pixels": Tensor((2,), "uint8", "raw")})
ONE = "train-00000-of-00001.tfrecord"


def write_version(folder, schema, **values):
    write_dataset(folder, {"train": [[example(**values)]]}, ps.Schema(schema))
    return folder


@pytest.fixture
def exact(tmp_path):
    payload = example(exact=np.float64(1 / 3).tobytes(), pixels=bytes([7, 255]))
    write_dataset(tmp_path / "exact", {"train": [[payload]], "fold_1": [[payload, payload]]}, EXACT)
    return tmp_path / "exact"


@pytest.fixture
def versions(tmp_path):
    write_version(tmp_path / "v1", {"a": Number("int64")}, a=1)
    write_version(tmp_path / "v2", {"a": Number("int64"), "b": Number(default=7.5)}, a=2, b=2.0)
    write_version(tmp_path / "v5", {"a": Text()}, a="five")
    return tmp_path


@pytest.mark.parametrize("name", [ONE, "train-*.tfrecord", "tr*.tfrecord"])
def test_shard_without_its_folder_has_the_schema_of_its_manifest(exact, name, monkeypatch):
    monkeypatch.setattr(OpenedFiles, "survey", lambda _: pytest.fail("records are looked at"))
    opened = ps.open(exact / name)
    assert opened.schema == EXACT
    assert opened.payload == "example"
    assert opened.manifest is None  # which describes more than the opened files
    assert opened.splits == ("train",)
    sample = opened["train"][0]
    assert sample["exact"] == 1 / 3
    assert sample["pixels"].tolist() == [7, 255]


def test_shards_without_their_folder_are_in_the_splits_of_the_manifest_in_its_order(exact):
    opened = ps.open(f"{exact}/*.tfrecord")
    assert [(name, len(opened[name])) for name in opened] == [("train", 1), ("fold_1", 2)]


def test_shards_keep_the_order_in_which_they_are_named(tmp_path):
    write_dataset(tmp_path / "pets")
    names = ["train-00001-of-00002.tfrecord", "train-00000-of-00002.tfrecord"]
    opened = ps.open([tmp_path / "pets" / name for name in names])
    assert row_numbers(opened["train"].records()) == [3, 4, 0, 1, 2]


def test_convert_of_a_shard_without_its_folder_keeps_the_types(exact, tmp_path):
    again = ps.convert(exact / ONE, tmp_path / "again")
    assert again.schema == EXACT
    assert again["train"][0]["exact"] == 1 / 3


def test_shards_of_several_versions_get_the_defaults_of_added_fields(versions):
    both = ps.open(f"{versions}/v[12]/*.tfrecord")
    assert list(both["train"]) == [{"a": 1, "b": 7.5}, {"a": 2, "b": 2.0}]


def test_shards_of_versions_that_do_not_go_together_are_refused_with_the_difference(versions):
    for paths in (
        f"{versions}/v[15]/*.tfrecord",
        f"{versions}/v[15]",
        [versions / "v1", versions / "v5" / ONE],
    ):
        with raises_with(SchemaError, "schemas 'a' int64 text") as caught:
            ps.open(paths)
        said = f"field 'a': number int64, text ({versions}/v1, {versions}/v5)"
        assert said in str(caught.value)


def test_folder_and_a_shard_of_it_are_the_folder(exact):
    opened = ps.open([exact, exact / ONE])
    assert opened.manifest is not None
    assert len(opened["train"]) == 1


def test_shard_of_another_size_is_read_without_its_manifest_and_noted(tmp_path, caplog):
    write_dataset(tmp_path, {"train": [PAYLOADS[:1]]}, ps.Schema({"row": ps.fields.Category("int64")}))
    write_plain(tmp_path / ONE, PAYLOADS[:2])
    with caplog.at_level(logging.WARNING, "penstock"):
        opened = ps.open(tmp_path / ONE)
    assert opened.schema == ps.open(write_plain(tmp_path / "bare", PAYLOADS[:2])).schema
    assert mentions(opened.notes[ONE], "manifest 85 bytes 170")
    assert ONE in caplog.text


def test_file_that_the_manifest_does_not_list_is_inferred(exact):
    path = write_plain(exact / "other.tfrecord", PAYLOADS)
    opened = ps.open(path)
    assert set(opened.schema) == set(NUMBERED)
    assert opened.splits == ("all",)


def test_shards_beside_files_of_no_manifest_are_inferred_and_noted(versions, tmp_path):
    bare = write_plain(tmp_path / "bare-train.tfrecord", [example(a=3, b=1.0)])
    opened = ps.open([versions / "v2" / ONE, bare])
    assert [sample["a"] for sample in opened["train"]] == [2, 3]
    assert opened.schema["b"].default is None
    assert mentions(opened.notes[f"{versions}/v2/penstock.json"], "files")


def test_invalid_manifest_is_refused_for_a_shard_too(exact):
    (exact / "penstock.json").write_text("{")
    with raises_with(ManifestError, "manifest JSON", field="$"):
        ps.open(exact / ONE)


def test_glob_of_shards_with_one_missing_is_refused(tmp_path):
    write_dataset(tmp_path)
    (tmp_path / "train-00000-of-00002.tfrecord").unlink()
    with pytest.raises(MissingShardError, match="train-00000-of-00002"):
        ps.open(f"{tmp_path}/*.tfrecord")
    assert len(ps.open(tmp_path / "train-00001-of-00002.tfrecord")["train"]) == 2


def test_glob_of_data_sets_is_those(versions, tmp_path):
    both = ps.open(f"{versions}/v[12]")
    assert list(both["train"]) == [{"a": 1, "b": 7.5}, {"a": 2, "b": 2.0}]
    assert ps.open(f"{versions}/v[1]").manifest is not None
    made = ps.convert(f"{versions}/v[12]", tmp_path / "made", shuffle=False)
    assert [sample["b"] for sample in made["train"]] == [7.5, 2.0]


def test_glob_of_data_sets_and_other_folders_is_all(versions):
    (versions / "v3").mkdir()
    write_plain(versions / "v3" / "train.tfrecord", [example(a=3)])
    opened = ps.open(f"{versions}/v[13]")
    assert [sample["a"] for sample in opened["train"]] == [1, 3]


def test_glob_of_data_sets_and_files_is_all(versions):
    write_plain(versions / "v9.tfrecord", [example(a=9)])
    listing = list_files(f"{versions}/v[19]*")
    assert {name: [path.name for path in paths] for name, paths in listing.paths().items()} == {
        "train": [ONE],
        "all": ["v9.tfrecord"],
    }
    assert not listing.is_described
