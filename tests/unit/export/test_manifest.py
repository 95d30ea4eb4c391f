"""`export.json`: the digests of all files, and files that do not belong to the export."""

import json
import os

import pytest

from penstock.errors import ExportError, NoSuchPathError
from penstock.export.manifest import MANIFEST_NAME, digest_file, is_export, read_manifest, write_manifest


@pytest.fixture
def export(tmp_path):
    (tmp_path / "variables").mkdir()
    for name in ("architecture.json", "model.json", "pipeline.json", "schema.json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "variables" / "data").write_bytes(bytes(range(256)))
    write_manifest(tmp_path, "bundle", {"inputs": ["age"]})
    return tmp_path


def change(export, **changes):
    path = export / MANIFEST_NAME
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_manifest_names_all_files_with_their_digests(export):
    found = read_manifest(export)
    assert is_export(export)
    assert found.format == "bundle"
    assert found.details == {"inputs": ["age"]}
    assert list(found.files) == [
        "architecture.json",
        "model.json",
        "pipeline.json",
        "schema.json",
        "variables/data",
    ]
    # SHA-256 of "{}", by any other tool.
    assert found.files["model.json"] == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


def test_folder_without_a_manifest_is_not_an_export(tmp_path):
    assert not is_export(tmp_path)
    with pytest.raises(NoSuchPathError) as caught:
        read_manifest(tmp_path)
    assert caught.value.path == str(tmp_path)


def test_changed_file_is_an_error_that_names_it(export):
    path = export / "variables" / "data"
    expected = digest_file(path)
    data = bytearray(path.read_bytes())
    data[7] ^= 1
    path.write_bytes(data)
    with pytest.raises(ExportError) as caught:
        read_manifest(export)
    assert caught.value.path == str(path)
    assert (caught.value.expected, caught.value.got) == (expected, digest_file(path))


def test_missing_file_is_an_error_that_names_it(export):
    (export / "model.json").unlink()
    with pytest.raises(ExportError) as caught:
        read_manifest(export)
    assert caught.value.path == str(export / "model.json")


@pytest.mark.parametrize("name", ["model.json", "pipeline.json", "schema.json"])
def test_file_that_the_format_reads_must_be_listed(export, name):
    """Otherwise it could be changed, although all listed files have their digests."""
    files = json.loads((export / MANIFEST_NAME).read_text())["files"]
    change(export, files={key: each for key, each in files.items() if key != name})
    with pytest.raises(ExportError) as caught:
        read_manifest(export)
    assert caught.value.path == str(export / MANIFEST_NAME)
    assert caught.value.field == "$.files"
    assert repr(name) in caught.value.got


@pytest.mark.parametrize("name", ["weights.safetensors", "variables/more"])
def test_file_that_is_not_listed_is_refused(export, name):
    (export / name).write_bytes(b"x")
    with pytest.raises(ExportError) as caught:
        read_manifest(export)
    assert caught.value.path == str(export / name)


def test_hidden_file_of_a_file_manager_is_ignored(export):
    (export / ".DS_Store").write_bytes(b"x")
    assert ".DS_Store" not in read_manifest(export).files


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("kind", "got"), [("pipe", "a pipe"), ("folder", "a folder")])
def test_file_that_is_not_a_regular_one_is_refused_and_not_waited_for(export, kind, got):
    path = export / "pipeline.json"
    path.unlink()
    os.mkfifo(path) if kind == "pipe" else path.mkdir()
    with pytest.raises(ExportError) as caught:
        read_manifest(export)
    assert (caught.value.path, caught.value.got) == (str(path), got)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../b", "", "a\0b"])
def test_name_that_leaves_the_folder_is_refused_before_the_file_is_read(export, name):
    change(export, files={name: {"sha256": "0" * 64}})
    with pytest.raises(ExportError) as caught:
        read_manifest(export)
    assert caught.value.path == str(export / MANIFEST_NAME)
    assert repr(name) in caught.value.got


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"files": {}}, "$.files"),
        ({"version": 2}, "$.version"),
        ({"version": "1"}, "$.version"),
        ({"format": "pickle"}, "$.format"),
        ({"files": []}, "$.files"),
        ({"files": {"model.json": {"sha256": "00"}}}, '$.files["model.json"].sha256'),
        ({"details": 3}, "$.details"),
        ({"more": 1}, "$.more"),
    ],
)
def test_manifest_that_is_not_valid_is_an_error_with_the_path_of_the_value(export, changes, field):
    change(export, **changes)
    with pytest.raises(ExportError) as caught:
        read_manifest(export)
    assert caught.value.field == field


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\xff"])
def test_manifest_that_is_not_json_is_an_error(export, text):
    (export / MANIFEST_NAME).write_text(text, encoding="latin-1")
    with pytest.raises(ExportError) as caught:
        read_manifest(export)
    assert caught.value.path == str(export / MANIFEST_NAME)
