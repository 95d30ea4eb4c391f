"""Where a data set may be written: checked before any work; no foreign file is ever deleted."""

import os
import tempfile
from pathlib import Path

import pytest

from manifest_folders import write_dataset
from penstock.errors import PathError
from penstock.shards.staging.destination import check_folder, resolve_output
from penstock.shards.staging.staging import Staging
from raising import containing, raises_with


@pytest.fixture
def pets(tmp_path):
    """A data set that is there already."""
    write_dataset(tmp_path / "pets")
    return tmp_path / "pets"


def test_folder_that_does_not_exist_or_is_empty_is_free(tmp_path):
    assert check_folder(tmp_path / "a" / "b", overwrite=False) is False
    (tmp_path / "empty").mkdir()
    assert check_folder(tmp_path / "empty", overwrite=False) is False


def test_folder_of_a_data_set_is_refused_without_overwrite(pets):
    with raises_with(PathError, advice=containing("name", "overwrite=True")):
        check_folder(pets, overwrite=False)
    assert check_folder(pets, overwrite=True) is True


def test_folder_of_a_data_set_with_all_its_files_can_be_overwritten(pets):
    for name in ("dataset_info.json", "features.json", "rejects.jsonl"):
        (pets / name).write_text("{}")
    assert check_folder(pets, overwrite=True) is True


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt",
        "index/mine.idx",
        "deep/er/file",
        "extra-00000-of-00001.tfrecord",
        "train-00000-of-00002.tfrecord.bak",
        "penstock.json.bak",
    ],
)
@pytest.mark.parametrize("kind", ["file", "link", "link to a folder", "empty folder"])
def test_folder_with_a_foreign_file_is_refused_even_with_overwrite(pets, tmp_path, name, kind):
    path = pets / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "file":
        path.write_text("mine")
    elif kind == "empty folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path if kind == "link to a folder" else tmp_path / "nowhere")
    with raises_with(PathError, f"'{name}"):
        check_folder(pets, overwrite=True)


def test_folder_without_a_manifest_names_a_few_files(tmp_path):
    for name in "abcde":
        (tmp_path / "photos").mkdir(exist_ok=True)
        (tmp_path / "photos" / name).write_text("")
    for overwrite in (False, True):
        with raises_with(PathError, "'a' 'b' 'c'"):
            check_folder(tmp_path / "photos", overwrite=overwrite)


def test_folder_with_a_manifest_that_cannot_be_read_is_not_overwritten(pets):
    (pets / "penstock.json").write_text("{")
    with raises_with(PathError, "manifest") as caught:
        check_folder(pets, overwrite=True)
    assert "penstock.json" in str(caught.value.__cause__)


def test_path_that_is_a_file_or_below_one_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with raises_with(PathError, "folder", path=str(tmp_path / "file")):
        check_folder(tmp_path / "file", overwrite=True)
    with raises_with(PathError, "file/below"):
        check_folder(tmp_path / "file" / "below", overwrite=True)


def test_mount_point_is_refused_with_advice():
    with raises_with(PathError, "folder"):
        check_folder(Path("/proc"), overwrite=True)


def test_current_folder_is_refused_with_advice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with raises_with(PathError, "current folder", path=str(tmp_path)):
        check_folder(resolve_output("."), overwrite=False)


def test_link_is_resolved_to_its_target(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "pets").symlink_to(tmp_path / "disk")
    assert resolve_output(tmp_path / "pets") == tmp_path / "disk"


def test_circular_link_is_refused_by_name(tmp_path):
    (tmp_path / "pets").symlink_to(tmp_path / "pets")
    with raises_with(PathError, "not a folder", path=str(tmp_path / "pets")):
        Staging(tmp_path / "pets")


def test_folder_inside_a_read_only_folder_is_refused_before_any_work():
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o555)
        is_root = os.geteuid() == 0
        if is_root:  # who may write anywhere
            os.seteuid(65534)
        try:
            with raises_with(PathError, "pets (Permission denied)"):
                Staging(Path(name) / "pets").__enter__()
        finally:
            if is_root:
                os.seteuid(0)
        assert list(Path(name).iterdir()) == []
