"""What a caller names, and the files that it means."""

import os
from pathlib import Path

import pytest

from penstock.errors import NoSuchPathError, OptionError
from penstock.storage.paths import find_files
from raising import raises_with


@pytest.fixture
def folder(tmp_path):
    for name in [
        "train-00000-of-00002",
        "train-00001-of-00002",
        "b.tfrecord",
        "a.tfrecords.gz",
        "c.record",
        "d.tfr",
        "readme.txt",
        "penstock.json",
        "b.tfindex",
        "train-00000-of-00002.csv",
        ".hidden.tfrecord",
        "_temporary.tfrecord",
        "notes",
        "deeper/e.tfrecord",
        ".cache/f.tfrecord",
        "quarantine/g.tfrecord",
    ]:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    return tmp_path


def names(found, folder):
    return [str(path.relative_to(folder)) for path in found]


def test_file_is_itself(folder):
    path = folder / "notes"
    assert find_files(path) == ([path], True)
    assert find_files(str(path)) == ([path], True)


def test_files_keep_their_order_and_each_counts_once(folder):
    paths = [folder / "c.record", folder / "b.tfrecord", str(folder / "c.record")]
    assert find_files(paths) == ([folder / "c.record", folder / "b.tfrecord"], True)


def test_file_named_in_two_spellings_counts_once_under_the_first(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "link").symlink_to(folder)
    (folder / "z.tfrecord").symlink_to("b.tfrecord")
    path = folder / "b.tfrecord"
    assert find_files(["b.tfrecord", path, folder / "link" / "b.tfrecord", "z.tfrecord"]) == (
        [Path("b.tfrecord")],
        True,
    )
    assert find_files(["z.tfrecord", path])[0] == [Path("z.tfrecord")]
    assert path in find_files(folder)[0]
    assert folder / "z.tfrecord" not in find_files(folder)[0]
    assert find_files(f"{folder}/[bz].tfrecord") == ([path], False)


class BytesPath:
    def __fspath__(self):
        return b"x"

    def __repr__(self):
        return "BytesPath"


@pytest.mark.parametrize(
    ("given", "facts"),
    [
        (None, "path os.PathLike None"),
        (3, "path os.PathLike 3"),
        (b"x", "path os.PathLike b'x' os.fsdecode"),
        (["a.tfrecord", None], "path[1] os.PathLike None"),
        ([b"x"], "path[0] os.PathLike b'x'"),
        (BytesPath(), "path[0] os.PathLike BytesPath"),
    ],
)
def test_value_that_is_not_a_path_is_refused(given, facts, folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "a.tfrecord").touch()
    with raises_with(OptionError, facts):
        find_files(given)


def test_folder_is_its_data_files_sorted(folder):
    found, named_singly = find_files(folder)
    assert not named_singly
    assert names(found, folder) == [
        "a.tfrecords.gz",
        "b.tfrecord",
        "c.record",
        "d.tfr",
        "deeper/e.tfrecord",
        "train-00000-of-00002",
        "train-00001-of-00002",
    ]


@pytest.mark.parametrize(
    ("name", "is_data"),
    [
        ("pets_examples.record", True),
        ("bridge-train.tfrecord-00000-of-00001", True),
        ("data_tfrecord-00000-of-00012.gz", True),
        ("en_examples-00000-of-00001", True),
        ("golden.training_examples.tfrecord.gz-00000-of-00003", True),
        ("sentences.tfe-tfrecord", True),
        ("test.tfr-00000-of-00001", True),
        ("X.TFRECORD", True),
        ("discarded-data-00000-of-00001", True),
        ("data_tfrecord_eval.gz", True),
        ("toy.nocompress-tfe-tfrecord-00000-of-00002", True),
        ("iris.tfrecords", True),
        ("iris.tfrecords.gz", True),
        ("x-00000-of-00001.tfrecord.gz", True),
        ("small.tfrec", True),
        ("mnist.tfrecord.train", True),
        ("x.tfrecord.00001", True),
        ("x.tfrecord.zst", True),
        ("my.recording", False),
        ("x.tfrx", False),
        ("x.tfrecord.sha256", False),
        ("x.tfrecord.tmp", False),
        ("x.idx", False),
        ("x.tfrecord~", False),
        ("tfrecord_reader.py", False),
        ("train-00000-of-00002.json", False),
        *((f"x.tfrecord.{ending}", False) for ending in ("md5", "sha1", "crc", "asc", "sig", "lock", "log")),
        *((f"x.tfrecord.{ending}", False) for ending in ("bak", "bad", "old", "orig", "swp", "zip", "tar")),
        *((f"x.tfrecord.{ending}", False) for ending in ("part", "crdownload", "tar.gz", "gz.md5", "gz~")),
    ],
)
def test_folder_takes_the_names_of_the_wild(tmp_path, name, is_data):
    (tmp_path / name).touch()
    (tmp_path / "always.tfrecord").touch()
    assert ((tmp_path / name) in find_files(tmp_path)[0]) is is_data


def test_glob_is_its_matches_sorted(folder):
    found, named_singly = find_files(f"{folder}/train-*")
    assert names(found, folder) == [
        "train-00000-of-00002",
        "train-00000-of-00002.csv",
        "train-00001-of-00002",
    ]
    assert not named_singly
    assert names(find_files(f"{folder}/**/*.tfrecord")[0], folder) == [
        "_temporary.tfrecord",
        "b.tfrecord",
        "deeper/e.tfrecord",
        "quarantine/g.tfrecord",
    ]


def test_file_whose_name_is_a_glob_is_itself(tmp_path):
    path = tmp_path / "a[1]*.tfrecord"
    path.touch()
    (tmp_path / "a1.tfrecord").touch()
    assert find_files(path) == ([path], True)


def test_list_that_holds_a_glob_was_not_named_singly(folder):
    assert find_files([folder / "notes", f"{folder}/*.record"]) == (
        [folder / "notes", folder / "c.record"],
        False,
    )


def test_path_that_leads_nowhere_names_the_nearest(folder):
    with raises_with(NoSuchPathError, f"{folder}/b.tfrecrd folder '{folder}/b.tfrecord'") as caught:
        find_files(folder / "b.tfrecrd")
    assert isinstance(caught.value, FileNotFoundError)
    assert caught.value.path == str(folder / "b.tfrecrd")


def test_path_in_a_folder_that_does_not_exist_is_refused(tmp_path):
    with raises_with(NoSuchPathError, path=str(tmp_path / "nothing" / "x.tfrecord")):
        find_files(tmp_path / "nothing" / "x.tfrecord")


def test_path_of_an_absurd_length_is_refused(tmp_path):
    with raises_with(NoSuchPathError, path=str(tmp_path / ("n" * 5000))):
        find_files(tmp_path / ("n" * 5000))


def test_glob_that_matches_nothing_is_refused(folder):
    with raises_with(NoSuchPathError, path=f"{folder}/*.nothing"):
        find_files(f"{folder}/*.nothing")


def test_glob_that_matches_folders_alone_is_their_files(folder):
    (folder / "deepest").mkdir()
    (folder / "deepest" / "h.tfrecord").touch()
    (folder / "deep and empty").mkdir()
    found, named_singly = find_files(f"{folder}/deep*")
    assert names(found, folder) == ["deeper/e.tfrecord", "deepest/h.tfrecord"]
    assert not named_singly


def test_glob_that_matches_files_and_folders_is_the_files(folder):
    (folder / "deep.tfrecord").touch()
    assert names(find_files(f"{folder}/deep*")[0], folder) == ["deep.tfrecord"]


def test_glob_that_matches_folders_without_data_is_refused(folder):
    (folder / "deeper" / "e.tfrecord").unlink()
    with raises_with(NoSuchPathError, "folders", path=f"{folder}/deep*"):
        find_files(f"{folder}/deep*")


def test_folder_without_data_is_refused(tmp_path):
    (tmp_path / "notes.txt").touch()
    with raises_with(NoSuchPathError, "folder TFRecord"):
        find_files(tmp_path)


def test_no_paths_at_all_are_refused():
    with raises_with(NoSuchPathError, "paths", path=None):
        find_files([])


def test_name_that_is_no_text_is_found(tmp_path):
    name = os.fsdecode(b"\xff.tfrecord")
    (tmp_path / name).touch()
    assert find_files(tmp_path)[0] == [tmp_path / name]
