"""Names in cells: the paths and addresses that they lead to."""

import os

import pytest

from penstock.storage.named_files import NamedFiles, RefusedNameError

NAMES = ("", "a.jpg", "deep/a.jpg", "/tmp/a.jpg", "../a.jpg", "s3://b/a.jpg", "S3://b/a.jpg", "x://y", "a://")  # noqa: S108
FOLDERS = (None, "", "pets", "/srv/pets", "s3://b", "s3://b/pets")


def outcome(resolve, name):
    try:
        return resolve(name)
    except RefusedNameError as error:
        return str(error)


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("allowed", [(), ("s3://b",), ("/tmp",)])  # noqa: S108
def test_resolver_of_many_names_returns_what_resolve_returns(folder, allowed):
    files = NamedFiles(folder, allowed)
    resolve = files.make_resolver()
    for name in NAMES:
        assert outcome(resolve, name) == outcome(files.resolve, name)


def test_relative_names_start_from_the_folder_or_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert NamedFiles("pets").make_resolver()("a.jpg") == f"{tmp_path}/pets/a.jpg"
    assert NamedFiles().make_resolver()("a.jpg") == os.path.join(os.getcwd(), "a.jpg")  # noqa: PTH109, PTH118
