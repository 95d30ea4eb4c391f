"""Digests of source files: the same with and without a thread, which ends with the object."""

import gc
import hashlib
import threading

import pytest

import penstock as ps
from penstock.jobs.convert.convert import plan_conversion
from penstock.plan.planner import PlanOverrides
from penstock.settings.conversion import ConvertOptions
from penstock.source import file_digests, files
from penstock.source.file_digests import FileDigests


def list_threads():
    return [each for each in threading.enumerate() if each.name == "penstock-source"]


@pytest.fixture
def paths(tmp_path):
    found = [tmp_path / name for name in "abc"]
    for number, path in enumerate(found):
        path.write_bytes(bytes([number]) * (number << 20))
    return found


@pytest.mark.parametrize("begins", [False, True])
def test_digests_are_the_sha256_of_each_file(paths, begins):
    digests = FileDigests([*paths, paths[0]])
    if begins:
        digests.begin()
        digests.begin()
    assert [digests.find(path) for path in paths] == [
        hashlib.sha256(path.read_bytes()).hexdigest() for path in paths
    ]


def test_error_of_the_thread_is_raised_where_the_digest_is_needed(paths):
    paths[1].unlink()
    digests = FileDigests(paths)
    digests.begin()
    assert digests.find(paths[2])
    with pytest.raises(FileNotFoundError):
        digests.find(paths[1])


def test_thread_ends_with_the_object(paths, monkeypatch):
    monkeypatch.setattr(file_digests, "_PIECE_BYTES", 1)
    digests = FileDigests(paths)
    digests.begin()
    assert list_threads()
    del digests
    gc.collect()
    assert not list_threads()


def test_conversion_hashes_its_source_while_rows_are_read_and_a_plan_does_not(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_HASHED_AHEAD", 0)
    begun = []
    begin = FileDigests.begin
    monkeypatch.setattr(FileDigests, "begin", lambda digests: (begun.append(digests), begin(digests)))
    source = tmp_path / "pets.csv"
    source.write_text("name,age\n" + "rex,3\n" * 30)
    assert len(plan_conversion(source, PlanOverrides(), ConvertOptions()).columns) == 2
    assert not begun
    data = ps.convert(source, tmp_path / "out")
    assert len(begun) == 1
    assert data.manifest.source[0]["sha256"] == hashlib.sha256(source.read_bytes()).hexdigest()
