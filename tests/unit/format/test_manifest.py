"""The manifest: the same bytes for the same facts, and every fault of it named with its place."""

import json
import os
from dataclasses import replace

import pytest

import penstock as ps
from manifest_folders import write_dataset
from penstock.errors import ManifestError, PathError
from penstock.format import manifest as module
from penstock.format.entry import ShardEntry, SplitEntry
from penstock.format.manifest import Manifest, dump, load_manifest, parse_manifest
from raising import containing, raises_with

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


def test_sums_are_sums_of_the_shards():
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
    "format 2": ("format", 2, "$.format 1 2"),
    "format 0": ("format", 0, "$.format 1 0"),
    "format text": ("format", "1", "$.format 1 '1'"),
    "version": ("penstock", {}, "$.penstock.version"),
    "schema": ("schema.fields.age.dtype", "int3", "$.schema.fields.age.dtype 'int3'"),
    "no schema": ("schema", None, "$.schema object"),
    "payload": ("payload", "other", "$.payload 'example' 'sequence_example' 'other'"),
    "compression": ("compression", "zlib", "$.compression 'none' 'gzip' 'zlib'"),
    "compression list": ("compression", ["none"], "$.compression 'none' 'gzip' ['none']"),
    "splits": ("splits", [], "$.splits object []"),
    "split name": ("splits", {"a\nb": {}}, '$.splits["a\\nb"]'),
    "shards": ("splits.train.shards", {}, "$.splits.train.shards array {}"),
    "sum": ("splits.train.records", 6, "$.splits.train.records 5 6"),
    "bytes": ("splits.train.bytes", 1, "$.splits.train.bytes 425 1"),
    "negative": ("splits.train.shards.0.records", -1, "$.splits.train.shards[0].records -1"),
    "beyond int64": ("splits.train.shards.0.bytes", 2**63, f"$.splits.train.shards[0].bytes {2**63}"),
    "a bool": ("splits.train.shards.0.bytes", True, "$.splits.train.shards[0].bytes True"),
    "a float": ("splits.train.shards.0.bytes", 1.0, "$.splits.train.shards[0].bytes 1.0"),
    "sha256": ("splits.train.shards.0.sha256", "AB" * 32, "$.splits.train.shards[0].sha256 64"),
    "no sha256": ("splits.train.shards.0.sha256", None, "$.splits.train.shards[0].sha256"),
    "source": ("source", [1], "$.source[0] object 1"),
    "statistics": ("statistics", [], "$.statistics object []"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_named_with_its_path(fault, tmp_path):
    place, value, facts = FAULTS[fault]
    (tmp_path / "penstock.json").write_text(json.dumps(change(place, value)))
    with raises_with(ManifestError, f"{tmp_path / 'penstock.json'} manifest {facts}") as caught:
        load_manifest(tmp_path)
    assert caught.value.field.startswith("$.")


@pytest.mark.parametrize(
    "name", ["../a", "/etc/passwd", "a/b", "a\\b", "..", ".hidden", "", "a b", "a\0", "ä", "a\n", "c:a"]
)
def test_name_that_could_leave_the_folder_is_refused(name):
    with raises_with(
        ManifestError, field="$.splits.train.shards[0].file", expected=containing("'.'", "'_'", "'-'")
    ):
        parse_manifest(json.dumps(change("splits.train.shards.0.file", name)).encode())


def test_file_that_stands_there_twice_is_refused():
    twice = {"records": 10, "bytes": 850, "shards": [SHARD.to_json()] * 2}
    with raises_with(ManifestError, "shards[1].file", field="$.splits.train.shards[1].file"):
        parse_manifest(json.dumps(change("splits.train", twice)).encode())
    other = {"records": 5, "bytes": 425, "shards": [SHARD.to_json()]}
    with raises_with(
        ManifestError, field="$.splits.test.shards[0].file", got=containing("'train-00000-of-00001.tfrecord'")
    ):
        parse_manifest(json.dumps(change("splits.test", other)).encode())


def test_more_records_than_the_bytes_can_hold_are_refused():
    shard = {**SHARD.to_json(), "records": 27}
    many = {"records": 27, "bytes": 425, "shards": [shard]}
    with raises_with(
        ManifestError,
        "records",
        field="$.splits.train.shards[0].records",
        expected=containing(26, 425, "bytes"),
        got="27",
    ):
        parse_manifest(json.dumps(change("splits.train", many)).encode())
    packed = {**change("splits.train", many), "compression": "gzip"}
    assert parse_manifest(json.dumps(packed).encode()).num_records == 27


@pytest.mark.parametrize(
    ("data", "facts"),
    [
        (b"", "b''"),
        (b"\xff\xfe{", "b'\\xff"),
        (b"[" * 100_000, "b'[["),
        (b'{"a":' * 100_000, "nested"),
        (b'{"a": NaN}', "NaN JSON"),
        (b'{"format": 1, "format": 1}', "key 'format' object"),
        (b'{"a": ' + b"9" * 5000 + b"}", "limit"),
        (b"null", "$ object"),
    ],
)
def test_bytes_that_are_no_json_object_are_refused(data, facts):
    with raises_with(ManifestError, facts):
        parse_manifest(data)


def test_manifest_above_the_limit_is_refused_unread(tmp_path, monkeypatch):
    write_dataset(tmp_path)
    monkeypatch.setattr(module, "MAX_MANIFEST_BYTES", 100)
    with raises_with(ManifestError, field="$", expected=containing(100, "bytes")):
        load_manifest(tmp_path)


def test_pipe_instead_of_a_manifest_is_refused_and_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "penstock.json")
    with raises_with(PathError, advice=containing("TFRecord")):
        load_manifest(tmp_path)


@pytest.mark.parametrize("shard", [0, 999])
@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("file", "../a.tfrecord", containing("name")),
        ("file", 7, containing("string")),
        ("records", -1, containing("integer")),
        ("records", True, containing("integer")),
        ("bytes", 2**63, containing("integer")),
        ("bytes", 1.0, containing("integer")),
        ("records", 10**6, containing("at most")),
        ("sha256", "AB" * 32, containing("64")),
        ("sha256", None, containing("string")),
    ],
)
def test_fault_of_one_of_many_shards_is_named_by_its_path(shard, key, value, expected):
    entries = tuple(ShardEntry(f"train-{i:05}-of-01000.tfrecord", 5, 425, f"{i:064x}") for i in range(1000))
    changed = json.loads(dump(replace(MANIFEST, splits={"train": SplitEntry(entries)})))
    assert parse_manifest(json.dumps(changed).encode()).splits["train"].shards == entries
    changed["splits"]["train"]["shards"][shard][key] = value
    if key in ("records", "bytes"):  # the sums are checked after the entries
        total = sum(each[key] for each in changed["splits"]["train"]["shards"])
        changed["splits"]["train"][key] = total
    with raises_with(ManifestError, field=f"$.splits.train.shards[{shard}].{key}", expected=expected):
        parse_manifest(json.dumps(changed).encode())
