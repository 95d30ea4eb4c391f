"""The folder of an export: complete or not there, and nothing replaced that is not an export."""

import pytest

from penstock.errors import PathError
from penstock.export.manifest import EXPORT, write_manifest
from penstock.storage.paths import locate


def list_all(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def write(folder, text):
    (folder / "sub").mkdir()
    (folder / "sub" / "file").write_text(text)
    write_manifest(folder, "bundle", {})


def test_folder_appears_complete_at_the_end(tmp_path):
    out = tmp_path / "deep" / "out"
    with locate(out).replacing_folder(EXPORT, overwrite=False) as hidden:
        write(hidden, "new")
        assert not out.exists()
        assert hidden.name.startswith(".")
    assert list_all(tmp_path) == [
        "deep",
        "deep/out",
        "deep/out/export.json",
        "deep/out/sub",
        "deep/out/sub/file",
    ]


def test_error_leaves_nothing(tmp_path):
    def fail():
        with locate(tmp_path / "out").replacing_folder(EXPORT, overwrite=False) as hidden:
            write(hidden, "new")
            raise ValueError

    with pytest.raises(ValueError):
        fail()
    assert list_all(tmp_path) == []


def test_error_keeps_the_old_export(tmp_path):
    out = tmp_path / "out"
    with locate(out).replacing_folder(EXPORT, overwrite=False) as hidden:
        write(hidden, "old")

    def fail():
        with locate(out).replacing_folder(EXPORT, overwrite=True) as hidden:
            write(hidden, "new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (out / "sub" / "file").read_text() == "old"
    assert list_all(tmp_path) == ["out", "out/export.json", "out/sub", "out/sub/file"]


def test_overwrite_replaces_an_export_as_a_whole(tmp_path):
    out = tmp_path / "out"
    with locate(out).replacing_folder(EXPORT, overwrite=False) as hidden:
        write(hidden, "old")
        (hidden / "more").touch()
    with pytest.raises(PathError) as caught:
        locate(out).check_folder(EXPORT, overwrite=False)
    assert "overwrite" in caught.value.advice
    with locate(out).replacing_folder(EXPORT, overwrite=True) as hidden:
        write(hidden, "new")
    assert (out / "sub" / "file").read_text() == "new"
    assert list_all(tmp_path) == ["out", "out/export.json", "out/sub", "out/sub/file"]


def test_empty_folder_is_used(tmp_path):
    (tmp_path / "out").mkdir()
    with locate(tmp_path / "out").replacing_folder(EXPORT, overwrite=False) as hidden:
        write(hidden, "new")
    assert (tmp_path / "out" / "sub" / "file").read_text() == "new"


@pytest.mark.parametrize("overwrite", [False, True])
def test_folder_of_other_files_is_never_replaced(tmp_path, overwrite):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    with pytest.raises(PathError) as caught:
        locate(tmp_path / "out").check_folder(EXPORT, overwrite=overwrite)
    assert caught.value.path == str(tmp_path / "out")


@pytest.mark.parametrize("kind", ["file", "link"])
def test_output_that_is_no_folder_is_refused(tmp_path, kind):
    if kind == "file":
        (tmp_path / "out").touch()
    else:
        (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PathError) as caught:
        locate(tmp_path / "out").check_folder(EXPORT, overwrite=True)
    assert caught.value.path == str(tmp_path / "out")
