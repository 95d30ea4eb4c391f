"""What counts as TFRecords and what as raw data: by content, under any name."""

import gzip
import zlib

import pytest

from penstock.errors import NoSuchPathError, OptionError
from penstock.jobs.stored_data import is_stored
from record_files import example, write_record


@pytest.mark.parametrize(
    "name",
    ["a.tfrecord", "a.tfrecords.gz", "train-00000-of-00002", "x.tfrec", "train-00000-of-00001.tfrecord"],
)
def test_file_named_like_a_tfrecord_is_one(tmp_path, name):
    (tmp_path / name).touch()
    assert is_stored(tmp_path / name)
    assert is_stored([str(tmp_path / name)] * 2)
    assert is_stored(tmp_path)
    assert is_stored(str(tmp_path / "*"))


def test_folder_with_a_manifest_is_one_whatever_else_it_holds(tmp_path):
    (tmp_path / "pets.csv").touch()
    assert not is_stored(tmp_path)
    (tmp_path / "penstock.json").touch()
    assert is_stored(tmp_path)


@pytest.mark.parametrize("given", [None, [], {}, {"a": [1]}, [{"a": 1}], "nowhere.csv", b"a.tfrecord", print])
def test_raw_data_is_not_stored_data(given):
    assert not is_stored(given)


def test_descriptions_may_lie_beside_tfrecords(tmp_path):
    for name in ("dataset_info.json", "features.json", "a.tfindex", "label.labels.txt"):
        (tmp_path / name).touch()
    assert not is_stored(tmp_path)
    (tmp_path / "pets-train.tfrecord-00000-of-00001").touch()
    assert is_stored(tmp_path)


def test_hugging_face_shards_are_raw(tmp_path):
    (tmp_path / "train-00000-of-00002.parquet").touch()
    assert not is_stored(tmp_path / "train-00000-of-00002.parquet")


RECORD = write_record(example(age=3))


@pytest.mark.parametrize("squeeze", [bytes, gzip.compress, zlib.compress])
@pytest.mark.parametrize("name", ["pets", "pets.recordio", "pets.gz", "pets.bin", "pets.csv", "part-0"])
def test_x15_content_decides_under_any_name(tmp_path, name, squeeze):
    folder = tmp_path / "pets"
    folder.mkdir()
    (folder / name).write_bytes(squeeze(RECORD * 3))
    assert is_stored(folder / name)
    assert is_stored([folder / name])
    assert is_stored(str(folder / "p*"))
    assert is_stored(folder) == (name != "pets.csv")  # a folder of tables is not searched for records


@pytest.mark.parametrize("data", [b"", b"name,age\nRex,3\n", b"\x1f\x8b", b"x\x9c", bytes(100), RECORD[:11]])
@pytest.mark.parametrize("name", ["pets", "pets.gz", "pets.csv", "pets.csv.gz"])
def test_x15_other_content_is_raw_data(tmp_path, name, data):
    for content in (data, gzip.compress(data)):
        (tmp_path / name).write_bytes(content)
        assert not is_stored(tmp_path / name)
        assert not is_stored(tmp_path)


def test_mixture_is_refused_by_name(tmp_path):
    (tmp_path / "b.csv").write_text("name,age\nRex,3\n")
    (tmp_path / "a.recordio").write_bytes(RECORD)
    for given in (tmp_path, str(tmp_path / "*"), [tmp_path / "a.recordio", tmp_path / "b.csv"]):
        with pytest.raises(OptionError) as caught:
            is_stored(given)
        assert str(caught.value.path).endswith("a.recordio")
        assert "b.csv" in str(caught.value.got)


def test_path_of_several_that_does_not_exist_is_named(tmp_path):
    (tmp_path / "a.recordio").write_bytes(RECORD)
    with pytest.raises(NoSuchPathError) as caught:
        is_stored([tmp_path / "a.recordio", tmp_path / "nowhere.csv"])
    assert str(caught.value.path).endswith("nowhere.csv")
