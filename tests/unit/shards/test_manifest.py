"""The manifest: the same bytes for the same facts, and every fault of it named with its place."""

import json
import os

import pytest

import penstock as ps
from manifest_folders import write_dataset
from penstock.errors import ManifestError, PathError
from penstock.shards import manifest as module
from penstock.shards.entry import ShardEntry, SplitEntry
from penstock.shards.manifest import Manifest, dump, load_manifest, parse_manifest

SHARD = ShardEntry("train-00000-of-00001.tfrecord", 5, 425, "ab" * 32)
MANIFEST = Manifest(
    schema=ps.Schema({"age": ps.fields.Number(), "photo": ps.fields.Image("png")}),
    payload="example",
    compression="none",
    splits={"train": SplitEntry((SHARD,)), "test": SplitEntry(())},
    split={"method": "hash rank", "shares": {"train": 0.9, "test": 0.1}, "seed": 7},
    order={"shuffled": True, "seed": 7},
    rejects={"count": 0, "file": None, "by_column": {}},
    plan={"columns": []},
    source=({"name": "pets.csv", "bytes": 12, "sha256": "cd" * 32, "rows": 5},),
    statistics=None,
    version="0.2.0",
)


def form() -> dict:
    return json.loads(dump(MANIFEST))


def test_manifest_that_was_dumped_is_loaded_as_it_was():
    assert parse_manifest(dump(MANIFEST)) == MANIFEST


def test_dump_is_a_function_of_the_manifest_alone():
    data = dump(MANIFEST)
    assert dump(parse_manifest(data)) == data
    assert data.endswith(b"}\n")
    assert data.isascii()
    assert list(json.loads(data)) == [
        "penstock",
        "format",
        "schema",
        "payload",
        "compression",
        "splits",
        "split",
        "order",
        "rejects",
        "plan",
        "source",
        "statistics",
    ]


def test_sums_are_those_of_the_shards():
    assert (MANIFEST.num_records, MANIFEST.num_bytes) == (5, 425)
    assert form()["splits"]["train"] == {"records": 5, "bytes": 425, "shards": [SHARD.to_json()]}
    assert list(MANIFEST.shards()) == [SHARD]


def test_folder_without_a_manifest_has_none(tmp_path):
    assert load_manifest(tmp_path) is None


def test_folder_with_a_manifest_gives_it(tmp_path):
    assert load_manifest(tmp_path / "pets") is None
    assert load_manifest(tmp_path) is None
    made = write_dataset(tmp_path)
    assert load_manifest(tmp_path) == made


def test_key_at_the_top_that_is_not_known_is_passed_over():
    assert parse_manifest(json.dumps({**form(), "later": [1]}).encode()) == MANIFEST


def change(place: str, value: object) -> dict:
    """Return the form with another value at a place, such as `splits.train.records`."""
    changed = form()
    *path, last = [int(part) if part.isdecimal() else part for part in place.split(".")]
    node = changed
    for part in path:
        node = node[part]
    node[last] = value
    return changed


FAULTS = {
    "format 2": ("format", 2, "$.format: expected at most 1, got 2. A newer Penstock wrote this data set"),
    "format 0": ("format", 0, "$.format: expected 1, got 0"),
    "format text": ("format", "1", r"$.format: expected a whole number from 0 to 2^63 - 1, got '1'"),
    "version": ("penstock", {}, "$.penstock.version: expected a string, got nothing"),
    "schema": ("schema.fields.age.dtype", "int3", "$.schema.fields.age.dtype: expected"),
    "no schema": ("schema", None, "$.schema: expected an object, got nothing"),
    "payload": ("payload", "other", "$.payload: expected 'example' or 'sequence_example', got 'other'"),
    "compression": ("compression", "zlib", "$.compression: expected 'none' or 'gzip', got 'zlib'"),
    "compression list": ("compression", ["none"], "$.compression: expected 'none' or 'gzip', got ['none']"),
    "splits": ("splits", [], "$.splits: expected an object, got []"),
    "split name": ("splits", {"a\nb": {}}, r'$.splits["a\nb"]: expected a name that can be printed'),
    "shards": ("splits.train.shards", {}, "$.splits.train.shards: expected an array, got {}"),
    "sum": ("splits.train.records", 6, "$.splits.train.records: expected 5, the sum over its shards, got 6"),
    "bytes": ("splits.train.bytes", 1, "$.splits.train.bytes: expected 425, the sum over its shards, got 1"),
    "negative": ("splits.train.shards.0.records", -1, "$.splits.train.shards[0].records: expected a whole"),
    "beyond int64": (
        "splits.train.shards.0.bytes",
        2**63,
        "$.splits.train.shards[0].bytes: expected a whole",
    ),
    "a bool": (
        "splits.train.shards.0.bytes",
        True,
        "$.splits.train.shards[0].bytes: expected a whole number",
    ),
    "a float": (
        "splits.train.shards.0.bytes",
        1.0,
        "$.splits.train.shards[0].bytes: expected a whole number",
    ),
    "sha256": ("splits.train.shards.0.sha256", "AB" * 32, "$.splits.train.shards[0].sha256: expected 64 hex"),
    "no sha256": ("splits.train.shards.0.sha256", None, "$.splits.train.shards[0].sha256: expected a string"),
    "source": ("source", [1], "$.source[0]: expected an object, got 1"),
    "statistics": ("statistics", [], "$.statistics: expected an object, got []"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_named_with_its_place(fault, tmp_path):
    place, value, message = FAULTS[fault]
    (tmp_path / "penstock.json").write_text(json.dumps(change(place, value)))
    with pytest.raises(ManifestError) as caught:
        load_manifest(tmp_path)
    assert f"{tmp_path / 'penstock.json'}: manifest at {message}" in str(caught.value)
    assert caught.value.field.startswith("$.")


@pytest.mark.parametrize(
    "name", ["../a", "/etc/passwd", "a/b", "a\\b", "..", ".hidden", "", "a b", "a\0", "ä", "a\n", "c:a"]
)
def test_name_that_could_leave_the_folder_is_refused(name):
    with pytest.raises(ManifestError, match="a name of letters, digits"):
        parse_manifest(json.dumps(change("splits.train.shards.0.file", name)).encode())


def test_file_that_stands_there_twice_is_refused():
    twice = {"records": 10, "bytes": 850, "shards": [SHARD.to_json()] * 2}
    with pytest.raises(ManifestError, match=r"shards\[1\]\.file: expected a file of its own"):
        parse_manifest(json.dumps(change("splits.train", twice)).encode())
    other = {"records": 5, "bytes": 425, "shards": [SHARD.to_json()]}
    with pytest.raises(ManifestError, match=r"\$\.splits\.test\.shards\[0\]\.file: expected a file of its"):
        parse_manifest(json.dumps(change("splits.test", other)).encode())


def test_more_records_than_the_bytes_can_hold_are_refused():
    shard = {**SHARD.to_json(), "records": 27}
    many = {"records": 27, "bytes": 425, "shards": [shard]}
    with pytest.raises(ManifestError, match=r"records: expected at most 26, in 425 bytes, got 27"):
        parse_manifest(json.dumps(change("splits.train", many)).encode())
    packed = {**change("splits.train", many), "compression": "gzip"}
    assert parse_manifest(json.dumps(packed).encode()).num_records == 27


@pytest.mark.parametrize(
    ("data", "got"),
    [
        (b"", "got b''"),
        (b"\xff\xfe{", "got b'"),
        (b"[" * 100_000, "got b'\\[\\["),
        (b'{"a":' * 100_000, "it is nested too deep"),
        (b'{"a": NaN}', "NaN, which is no number in JSON"),
        (b'{"format": 1, "format": 1}', "the key 'format' twice in one object"),
        (b'{"a": ' + b"9" * 5000 + b"}", "Exceeds the limit"),
        (b"null", "expected an object, got nothing"),
    ],
)
def test_bytes_that_are_no_json_object_are_refused(data, got):
    with pytest.raises(ManifestError, match=got):
        parse_manifest(data)


def test_manifest_above_the_limit_is_refused_unread(tmp_path, monkeypatch):
    write_dataset(tmp_path)
    monkeypatch.setattr(module, "MAX_MANIFEST_BYTES", 100)
    with pytest.raises(ManifestError, match="size of the manifest: expected at most 100 bytes, got"):
        load_manifest(tmp_path)


def test_pipe_in_its_place_is_refused_and_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "penstock.json")
    with pytest.raises(PathError, match="expected a regular file, got a pipe"):
        load_manifest(tmp_path)
