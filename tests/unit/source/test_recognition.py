"""What counts as TFRecords and what as raw data: by content, under any name; and the table of formats."""

import gzip
import zlib
from pathlib import Path

import pytest

from penstock import convert
from penstock.errors import NoSuchPathError, OptionError
from penstock.source.files import READERS
from penstock.source.recognition import FORMATS, is_a, is_dataset, is_table_name, named_kind
from penstock.storage.compression import describe_content
from penstock.storage.store_path import is_url
from record_files import example, write_record

CONVERT_PAGE = (Path(__file__).parents[3] / "docs" / "convert.md").read_text()


@pytest.mark.parametrize(
    "name",
    ["a.tfrecord", "a.tfrecords.gz", "train-00000-of-00002", "x.tfrec", "train-00000-of-00001.tfrecord"],
)
def test_file_named_like_a_tfrecord_is_one(tmp_path, name):
    (tmp_path / name).touch()
    assert is_dataset(tmp_path / name)
    assert is_dataset([str(tmp_path / name)] * 2)
    assert is_dataset(tmp_path)
    assert is_dataset(str(tmp_path / "*"))


def test_folder_with_a_manifest_is_one_whatever_else_it_holds(tmp_path):
    (tmp_path / "pets.csv").touch()
    assert not is_dataset(tmp_path)
    (tmp_path / "penstock.json").touch()
    assert is_dataset(tmp_path)


def test_folder_with_a_manifest_is_one_under_the_name_of_a_table(tmp_path):
    folder = tmp_path / "pets.csv"
    folder.mkdir()
    for name in ("penstock.json", "train-00000-of-00001.tfrecord", "rejects.jsonl"):
        (folder / name).touch()
    assert is_dataset(folder)


def test_text_of_a_table_in_the_place_of_a_path_is_no_data_set(tmp_path):
    assert not is_dataset("name,age\nRex,3\n" * 1000)
    with pytest.raises(NoSuchPathError):
        convert("name,age\nRex,3\n" * 1000, tmp_path / "pets")


@pytest.mark.parametrize("given", [None, [], {}, {"a": [1]}, [{"a": 1}], "nowhere.csv", b"a.tfrecord", print])
def test_raw_data_is_not_stored_data(given):
    assert not is_dataset(given)


def test_descriptions_may_lie_beside_tfrecords(tmp_path):
    for name in ("dataset_info.json", "features.json", "a.tfindex", "label.labels.txt"):
        (tmp_path / name).touch()
    assert not is_dataset(tmp_path)
    (tmp_path / "pets-train.tfrecord-00000-of-00001").touch()
    assert is_dataset(tmp_path)


def test_tar_archive_may_lie_beside_tfrecords(tmp_path):
    (tmp_path / "raw.tar").touch()
    assert not is_dataset(tmp_path)
    (tmp_path / "train-00000-of-00001.tfrecord").touch()
    assert is_dataset(tmp_path)


def test_hugging_face_shards_are_raw(tmp_path):
    (tmp_path / "train-00000-of-00002.parquet").touch()
    assert not is_dataset(tmp_path / "train-00000-of-00002.parquet")


RECORD = write_record(example(age=3))


@pytest.mark.parametrize("squeeze", [bytes, gzip.compress, zlib.compress])
@pytest.mark.parametrize("name", ["pets", "pets.recordio", "pets.gz", "pets.bin", "pets.csv", "part-0"])
def test_x15_content_decides_under_any_name(tmp_path, name, squeeze):
    folder = tmp_path / "pets"
    folder.mkdir()
    (folder / name).write_bytes(squeeze(RECORD * 3))
    assert is_dataset(folder / name)
    assert is_dataset([folder / name])
    assert is_dataset(str(folder / "p*"))
    assert is_dataset(folder) == (name != "pets.csv")  # a folder of tables is not searched for records


@pytest.mark.parametrize("data", [b"", b"name,age\nRex,3\n", b"\x1f\x8b", b"x\x9c", bytes(100), RECORD[:11]])
@pytest.mark.parametrize("name", ["pets", "pets.gz", "pets.csv", "pets.csv.gz"])
def test_x15_other_content_is_raw_data(tmp_path, name, data):
    for content in (data, gzip.compress(data)):
        (tmp_path / name).write_bytes(content)
        assert not is_dataset(tmp_path / name)
        assert not is_dataset(tmp_path)


def test_mixture_is_refused_by_name(tmp_path):
    (tmp_path / "b.csv").write_text("name,age\nRex,3\n")
    (tmp_path / "a.recordio").write_bytes(RECORD)
    for given in (tmp_path, str(tmp_path / "*"), [tmp_path / "a.recordio", tmp_path / "b.csv"]):
        with pytest.raises(OptionError) as caught:
            is_dataset(given)
        assert str(caught.value.path).endswith("a.recordio")
        assert "b.csv" in str(caught.value.got)


def test_path_of_several_that_does_not_exist_is_named(tmp_path):
    (tmp_path / "a.recordio").write_bytes(RECORD)
    with pytest.raises(NoSuchPathError) as caught:
        is_dataset([tmp_path / "a.recordio", tmp_path / "nowhere.csv"])
    assert str(caught.value.path).endswith("nowhere.csv")


def test_every_format_has_a_reader_and_its_own_suffixes():
    kinds = [each.kind for each in FORMATS]
    assert sorted(kinds) == sorted(READERS)
    suffixes = [suffix for each in FORMATS for suffix in each.suffixes]
    assert len(set(suffixes)) == len(suffixes)


@pytest.mark.parametrize("suffix", [suffix for each in FORMATS for suffix in each.suffixes])
def test_files_of_every_format_are_recognized_where_they_are_expected_and_where_not(suffix):
    assert named_kind(Path(f"a{suffix.upper()}")) is not None
    assert is_table_name(f"train.2{suffix}.gz") == next(
        each.may_be_gzip for each in FORMATS if suffix in each.suffixes
    )
    found = describe_content(f"a{suffix}", b"")  # for the error of `penstock.open`
    assert found.use == "table"
    assert f"`{suffix}`" in CONVERT_PAGE


def test_data_sets_of_other_packages_are_no_data_sets():
    class Dataset:
        """A class of another package with the same name."""

    assert not is_dataset(Dataset())
    assert not is_a(Dataset(), "penstock", "Dataset")


@pytest.mark.parametrize(
    ("path", "expected"),
    [("s3://a/b.csv", True), ("duckdb:///a.db?table=b", True), ("a.csv", False), ("/s3:/a", False)],
)
def test_urls_are_objects_of_stores_and_queries(path, expected):
    assert is_url(path) is expected
