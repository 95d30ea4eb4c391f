"""Where output goes, and where it may not."""

import pytest

from penstock.errors import NoSuchPathError, PathError
from penstock.jobs.check.repair import assign_paths
from raising import containing, raises_with
from record_files import PAYLOADS, write_plain


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    for name in ("a.tfrecord", "deep/a.tfrecord", "deep/b.tfrecord"):
        write_plain(tmp_path / "in" / name, PAYLOADS)
    return tmp_path / "in"


def names(places) -> list[str]:
    return [place.as_posix() for place in places.values()]


def test_output_of_a_folder_keeps_the_paths_inside_it(folder, tmp_path) -> None:
    assert names(assign_paths(folder, tmp_path / "out")) == [
        "a.tfrecord",
        "deep/a.tfrecord",
        "deep/b.tfrecord",
    ]


def test_output_of_files_and_globs_keeps_their_names(folder, tmp_path) -> None:
    assert names(assign_paths(folder / "deep" / "b.tfrecord", tmp_path / "out")) == ["b.tfrecord"]
    assert names(assign_paths(f"{folder}/deep/*", tmp_path / "out")) == ["a.tfrecord", "b.tfrecord"]


def test_output_of_a_file_named_twice_is_one_path(folder, tmp_path) -> None:
    path = folder / "a.tfrecord"
    assert names(assign_paths([path, path], tmp_path / "out")) == ["a.tfrecord"]


def test_output_of_equal_names_from_two_folders_is_refused(folder, tmp_path) -> None:
    given = [folder / "a.tfrecord", folder / "deep" / "a.tfrecord"]
    with raises_with(PathError, "in/a.tfrecord"):
        assign_paths(given, tmp_path / "out")


def test_output_of_a_file_and_its_folder_is_refused(folder, tmp_path) -> None:
    given = [folder / "deep" / "b.tfrecord", folder]
    with raises_with(PathError, got=containing("b.tfrecord", "deep/b.tfrecord")):
        assign_paths(given, tmp_path / "out")


@pytest.mark.parametrize("out", ["in", "in/deep", "in/new", "in/../in", "link"])
def test_output_into_the_input_folder_is_refused(out, folder, tmp_path) -> None:
    (tmp_path / "link").symlink_to(folder)
    with raises_with(PathError, "output folder input"):
        assign_paths(folder, tmp_path / out)


def test_output_beside_a_named_file_is_refused(folder) -> None:
    with raises_with(PathError, "output folder input"):
        assign_paths(folder / "a.tfrecord", folder)


def test_output_onto_an_existing_file_is_refused_unless_it_may_be_overwritten(folder, tmp_path) -> None:
    write_plain(tmp_path / "a.tfrecord", PAYLOADS)
    with raises_with(PathError, "a.tfrecord"):
        assign_paths(folder / "a.tfrecord", tmp_path)
    assert names(assign_paths(folder / "a.tfrecord", tmp_path, overwrite=True)) == ["a.tfrecord"]


def test_output_below_a_file_is_refused(folder, tmp_path) -> None:
    (tmp_path / "out").write_bytes(b"")
    with raises_with(PathError, "folder", path=str(tmp_path / "out")):
        assign_paths(folder, tmp_path / "out")


def test_output_of_a_file_named_like_the_quarantine_is_refused(folder, tmp_path) -> None:
    path = write_plain(folder / "quarantine", PAYLOADS)
    with raises_with(PathError, "quarantine folder"):
        assign_paths(path, tmp_path / "out")


def test_output_of_a_path_that_does_not_exist_is_refused(tmp_path) -> None:
    with pytest.raises(NoSuchPathError):
        assign_paths(tmp_path / "nothing", tmp_path / "out")
