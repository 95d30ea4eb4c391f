"""The files for TFDS: their content, and why there are none. TFDS itself reads them in integration."""

import json
from dataclasses import replace

import pytest

import penstock as ps
from manifest_folders import write_dataset
from penstock.fields import Image, Number, Sequence, Tensor, Text
from penstock.format.tfds import describe_tfds
from raising import containing
from record_files import PAYLOADS


@pytest.fixture
def manifest(tmp_path):
    return write_dataset(tmp_path)


def describe(manifest, **fields):
    schema = ps.Schema(fields) if fields else manifest.schema
    return describe_tfds(schema, replace(manifest, schema=schema))


def test_counts_are_counts_of_the_shards(manifest):
    info = json.loads(describe(manifest)[0])
    assert [(split["name"], split["shardLengths"]) for split in info["splits"]] == [
        ("train", ["3", "2"]),
        ("test", ["1"]),
    ]


def test_features_have_the_keys_of_the_records(manifest):
    features = json.loads(describe(manifest, age=Number(key="a"), photo=Image("png"))[1])
    assert list(features["featuresDict"]["features"]) == ["a", "photo"]


@pytest.mark.parametrize("format", ["png", "jpeg", "gif", None])
def test_image_is_declared_as_the_bytes_that_are_stored(manifest, format):
    features = json.loads(describe(manifest, photo=Image(format))[1])["featuresDict"]["features"]
    assert features["photo"]["tensor"] == {"shape": {}, "dtype": "string", "encoding": "none"}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"age": Number(optional=True)}, containing("'age'", "missing")),
        ({"name": Text(default="")}, containing("'name'", "missing")),
        ({"t": Tensor((2,), "uint32", "raw")}, containing("'t'", "TensorFlow", "uint32")),
    ],
)
def test_field_that_tfds_cannot_express_is_the_reason(manifest, fields, reason):
    assert describe(manifest, **fields) == reason


def test_manifest_that_tfds_cannot_read_is_the_reason(manifest, tmp_path):
    assert describe(replace(manifest, compression="gzip")) == containing("compressed")
    assert describe(replace(manifest, payload="sequence_example"), s=Sequence()) == containing(
        "SequenceExamples"
    )
    empty = write_dataset(tmp_path / "empty", {"train": [[]]})
    assert describe(empty) == containing("TFDS", "records")
    odd = replace(manifest, splits={"a b": manifest.splits["train"]})
    assert describe(odd) == containing("'a b'")
    renamed = replace(manifest, splits={"other": manifest.splits["train"]})
    assert describe(renamed) == containing("'other'")


def test_split_without_records_is_left_out(tmp_path):
    manifest = write_dataset(tmp_path, {"train": [PAYLOADS], "test": [[]]})
    assert [split["name"] for split in json.loads(describe(manifest)[0])["splits"]] == ["train"]
