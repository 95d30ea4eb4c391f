"""Bytes that TensorFlow 2.21 framed, as they are: what the format is does not depend on any code here."""

import numpy as np

import penstock as ps
from wire.example import Feature, read_example, write_example
from wire.frame import read_records, write_records

# tf.io.TFRecordWriter: {"id": int64 [1, -1], "name": bytes ["rex", ""], "x": float [1.5, -0.0]}, then b"".
GOLDEN = bytes.fromhex(
    "3f00000000000000"  # length 63
    "51657661"  # its masked CRC
    "0a3d"  # features
    "0a15" "0a026964" "120f" "1a0d0a0b01ffffffffffffffffff01"  # "id"
    "0a11" "0a046e616d65" "1209" "0a070a037265780a00"  # "name"
    "0a11" "0a0178" "120c" "120a0a080000c03f00000080"  # "x"
    "aff463d7"  # masked CRC of the payload
    "0000000000000000" "29039807"  # length 0
    "d8ea82a2"
)  # fmt: skip
FEATURES = {
    "id": Feature("int64", [1, -1]),
    "name": Feature("bytes", [b"rex", b""]),
    "x": Feature("float", [1.5, -0.0]),
}


def test_golden_bytes_equal_the_bytes_of_wire():
    assert write_records([write_example(FEATURES), b""]) == GOLDEN


def test_golden_bytes_are_read_by_wire():
    first, second = read_records(GOLDEN)
    assert read_example(first) == FEATURES
    assert second == b""


def test_golden_bytes_are_read_by_the_core(tmp_path):
    path = tmp_path / "golden.tfrecord"
    path.write_bytes(GOLDEN)
    split = ps.open(path)["all"]
    assert len(split) == 2
    sample = split[0]
    assert sample["id"].tolist() == [1, -1]
    assert sample["name"] == ["rex", ""]
    assert sample["x"].view(np.uint32).tolist() == [0x3FC00000, 0x80000000]
    assert split[1] == {}
    assert list(split.records()) == list(read_records(GOLDEN))
