"""Paths in object stores: accepted paths, refused paths, and which keys a pattern matches."""

from __future__ import annotations

import glob
from pathlib import Path

import pytest

from penstock.errors import OptionError
from penstock.storage.store_path import StorePath, as_path, is_store_path, parse_store_path, split_pattern


def _match(pattern, keys):
    folder, expression = split_pattern(parse_store_path(f"s3://animals/{pattern}"))
    assert folder.scheme == "s3"
    return [key for key in keys if expression.fullmatch(key)]


KEYS = [
    "pets/a.csv",
    "pets/b.csv",
    "pets/.hidden.csv",
    "pets/2024/a.csv",
    "pets/2024/05/a.csv",
    "pets/.shards-0123456789abcdef/a.csv",
    "pets/2024/.shards-0123456789abcdef/a.csv",
]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("pets/*.csv", ["pets/a.csv", "pets/b.csv"]),
        ("pets/?.csv", ["pets/a.csv", "pets/b.csv"]),
        ("pets/[!a].csv", ["pets/b.csv"]),
        ("pets/.*.csv", ["pets/.hidden.csv"]),
        ("pets/*/a.csv", ["pets/2024/a.csv"]),
        ("pets/**/a.csv", ["pets/a.csv", "pets/2024/a.csv", "pets/2024/05/a.csv"]),
        ("pets/**", ["pets/a.csv", "pets/b.csv", "pets/2024/a.csv", "pets/2024/05/a.csv"]),
        ("**/05/*", ["pets/2024/05/a.csv"]),
        ("pets/.shards-*/*", ["pets/.shards-0123456789abcdef/a.csv"]),
    ],
)
def test_pattern_matches_the_keys_that_it_would_match_on_a_disk(pattern, expected):
    assert _match(pattern, KEYS) == expected


def test_pattern_matches_the_files_that_glob_finds(tmp_path):
    for key in KEYS:
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).touch()
    for pattern in ("pets/*.csv", "pets/*/a.csv", "pets/**/a.csv", "pets/.*.csv", "pets/[!a].csv"):
        found = glob.glob(pattern, root_dir=tmp_path, recursive=True)  # noqa: PTH207 - names of hidden files differ
        assert _match(pattern, KEYS) == [key for key in KEYS if key in found]


def test_path_without_wildcards_is_no_pattern():
    assert split_pattern(parse_store_path("s3://animals/pets/a.csv")) is None


@pytest.mark.parametrize("path", [Path("s3://animals/pets"), "s3:/animals/pets", Path("https://host/pets")])
def test_path_that_lost_a_slash_is_refused_instead_of_written_to_a_folder(path):
    with pytest.raises(OptionError, match="pass paths of object stores as strings") as caught:
        as_path(path)
    assert caught.value.got == repr(str(Path(path)))


def test_local_folder_with_the_name_of_a_protocol_is_local(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("s3:").mkdir()
    assert as_path("s3:/animals") == Path("s3:/animals")
    assert as_path("s3:") == Path("s3:")


@pytest.mark.parametrize(
    "path",
    [
        "s3://user:password@animals/pets",
        "https://host/pets?sig=password",
        "http://host/pets",
        "s3:///pets",
        "s3://animals/../password",
        "https://host/%2e%2e/password",
        "ftp://animals/password",
    ],
)
def test_path_that_is_not_valid_is_refused(path):
    assert is_store_path(path)
    with pytest.raises(OptionError):
        parse_store_path(path)


@pytest.mark.parametrize("path", ["s3://user:password@animals/pets", "https://host/pets?sig=password"])
def test_refused_path_with_a_password_is_not_shown(path):
    with pytest.raises(OptionError) as caught:
        parse_store_path(path)
    assert "password@" not in str(caught.value)
    assert "sig=" not in str(caught.value)


def test_path_is_divided_like_a_local_one():
    path = parse_store_path("s3://animals//pets/train.tfrecord")
    assert path == StorePath("s3", "animals", "pets/train.tfrecord")
    assert (path.name, path.stem, path.suffix) == ("train.tfrecord", "train", ".tfrecord")
    assert path.parent == parse_store_path("s3://animals/pets/")
    assert path.relative_to(path.parent) == "train.tfrecord"
    with pytest.raises(ValueError, match="is not in"):
        path.relative_to(StorePath("s3", "animals", "pet"))
