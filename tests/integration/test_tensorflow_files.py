"""Files that TensorFlow wrote, plain and compressed, open with the values that were put into them."""

import struct
import warnings
from typing import Any

import numpy as np
import pytest

import penstock as ps
from core_reading import expect_outcomes, read_outcomes
from penstock.columns import Bytes
from record_files import open_split

COMPRESSIONS = {"": "none", "GZIP": "gzip", "ZLIB": "zlib"}
NUM_RECORDS = 300
FLOATS = [0.5, -0.0, float("inf"), float("-inf"), 1e-45, 3.4e38, float("nan")]
INTS = [0, -1, 2**63 - 1, -(2**63), 300, 7]


@pytest.fixture(scope="module")
def tf() -> Any:
    """TensorFlow. It warns while it is imported, and here warnings are errors."""
    with pytest.MonkeyPatch.context() as environment, warnings.catch_warnings():
        environment.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
        environment.setenv("CUDA_VISIBLE_DEVICES", "")
        warnings.simplefilter("ignore")
        return pytest.importorskip("tensorflow")


def sample(row: int) -> dict[str, Any]:
    """Return the values of one record; a list where a record may have another number of them."""
    values = {
        "row": row,
        "weight": FLOATS[row % len(FLOATS)],
        "name": f"näme {row}".encode(),
        "box": [0.1 * row, 0.2, -0.3, row / 7],
        "shape": [row, -row, 3],
        "ints": INTS[: row % 7],
        "floats": FLOATS[: row % 5],
        "parts": [bytes([row % 256]) * n for n in range(row % 4)],
        "blob": bytes(range(256)) * (row % 9),
    }
    if row % 3 == 0:
        values["sometimes"] = row
    return values


def feature(tf: Any, value: Any) -> Any:
    values = value if isinstance(value, list) else [value]
    if values and isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if values and isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def features(tf: Any, values: dict[str, Any]) -> Any:
    kinds = {"floats": tf.train.Feature(float_list=tf.train.FloatList())}
    kinds["parts"] = tf.train.Feature(bytes_list=tf.train.BytesList())
    # An empty list has a kind too.
    made = {
        key: kinds[key] if value == [] and key in kinds else feature(tf, value)
        for key, value in values.items()
    }
    return tf.train.Features(feature=made)


def write(tf: Any, path: Any, payloads: list[bytes], compression: str) -> None:
    options = tf.io.TFRecordOptions(compression_type=compression)
    with tf.io.TFRecordWriter(str(path), options) as writer:
        for payload in payloads:
            writer.write(payload)


@pytest.fixture(scope="module")
def examples(tf) -> list[bytes]:
    return [
        tf.train.Example(features=features(tf, sample(row))).SerializeToString() for row in range(NUM_RECORDS)
    ]


@pytest.fixture(scope="module")
def sequences(tf) -> list[bytes]:
    return [
        tf.train.SequenceExample(
            context=features(tf, {"length": row % 5, "id": f"{row}".encode()}),
            feature_lists=tf.train.FeatureLists(
                feature_list={
                    key: tf.train.FeatureList(feature=steps) for key, steps in lists(tf, row).items()
                }
            ),
        ).SerializeToString()
        for row in range(NUM_RECORDS)
    ]


def lists(tf: Any, row: int) -> dict[str, list[Any]]:
    steps = range(row % 5)
    return {
        "tokens": [feature(tf, [row * n for n in range(step)]) for step in steps],
        "scores": [feature(tf, [step / 3, float(row)]) for step in steps],
        "words": [feature(tf, b"w" * step) for step in steps],
    }


def bits(value: Any) -> Any:
    """Return values as what can be compared: floats as the bits of float32."""
    if isinstance(value, float):
        return struct.pack("<f", value)
    if isinstance(value, np.ndarray):
        return [bits(float(each)) for each in value] if value.dtype == np.float32 else value.tolist()
    if isinstance(value, list):
        return [bits(each) for each in value]
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_examples_that_tensorflow_wrote_are_read_with_their_values(tf, examples, tmp_path, compression):
    path = tmp_path / "written.tfrecord"
    write(tf, path, examples, compression)
    dataset = ps.open(path, options=ps.options.ReadOptions(compression=COMPRESSIONS[compression]))
    assert dataset.payload == "example"
    split = dataset["all"]
    assert len(split) == NUM_RECORDS
    expected = [bits_of_sample(sample(row)) for row in range(NUM_RECORDS)]
    assert [bits_of_sample(each) for each in split] == expected
    assert [bits_of_sample(split[row]) for row in (299, 0, 150)] == [expected[row] for row in (299, 0, 150)]
    assert list(split.records()) == examples
    assert {name: type(field).__name__ for name, field in dataset.schema.items()} == {
        "row": "Number", "weight": "Number", "name": "Text", "box": "Tensor", "shape": "Tensor",
        "ints": "Sequence", "floats": "Sequence", "parts": "Sequence", "blob": "Bytes", "sometimes": "Number",
    }  # fmt: skip


def bits_of_sample(values: dict[str, Any]) -> dict[str, Any]:
    return {name: bits(value) for name, value in values.items()}


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_columns_of_examples_that_tensorflow_wrote_are_those_that_it_parses(
    tf, examples, tmp_path, compression
):
    path = tmp_path / "written.tfrecord"
    write(tf, path, examples, compression)
    columns = open_split(path).columns()
    parsed = tf.io.parse_example(
        examples,
        {
            "row": tf.io.FixedLenFeature((), tf.int64),
            "weight": tf.io.FixedLenFeature((), tf.float32),
            "name": tf.io.FixedLenFeature((), tf.string),
            "box": tf.io.FixedLenFeature((4,), tf.float32),
            "shape": tf.io.FixedLenFeature((3,), tf.int64),
            "ints": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64),
            "floats": tf.io.RaggedFeature(tf.float32, row_splits_dtype=tf.int64),
            "parts": tf.io.RaggedFeature(tf.string, row_splits_dtype=tf.int64),
            "blob": tf.io.FixedLenFeature((), tf.string),
        },
    )
    for name in ("row", "weight", "box", "shape"):
        assert columns[name].values.tobytes() == parsed[name].numpy().tobytes()
    for name in ("name", "blob"):
        assert columns[name].tolist() == parsed[name].numpy().tolist()
    for name in ("ints", "floats", "parts"):
        assert columns[name].offsets.tolist() == parsed[name].row_splits.numpy().tolist()
        theirs, ours = parsed[name].flat_values.numpy(), columns[name].values
        if isinstance(ours, Bytes):
            assert ours.tolist() == theirs.tolist()
        else:
            assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_sequence_examples_that_tensorflow_wrote_are_read_with_their_values(
    tf, sequences, tmp_path, compression
):
    path = tmp_path / "written.tfrecord"
    write(tf, path, sequences, compression)
    dataset = ps.open(path)
    assert dataset.payload == "sequence_example"
    for row, got in enumerate(dataset["all"]):
        steps = range(row % 5)
        assert got["length"] == row % 5
        assert got["id"] == f"{row}"
        assert [step.tolist() for step in got["tokens"]] == [[row * n for n in range(step)] for step in steps]
        assert [bits(step) for step in got["scores"]] == [bits([step / 3, float(row)]) for step in steps]
        assert got["words"] == ["w" * step for step in steps]
    assert dataset["all"].columns()["tokens"].offsets[-1] == sum(row % 5 for row in range(NUM_RECORDS))


def test_records_of_tensorflow_are_read_alike_by_every_plan(tf, examples):
    parsed = [tf.train.Example.FromString(payload) for payload in examples[:50]]
    keys = sorted({key for each in parsed for key in each.features.feature})
    for wanted in (keys, keys[::2], keys[:1], []):
        for outcomes, each in zip(read_outcomes(examples[:50], wanted), parsed, strict=True):
            found = {key: plain(each.features.feature[key]) for key in each.features.feature if key in wanted}
            assert outcomes == expect_outcomes(found)


def plain(found: Any) -> tuple[str, list[Any]]:
    kind = found.WhichOneof("kind").removesuffix("_list")
    values = list(getattr(found, f"{kind}_list").value)
    if kind == "float":
        return kind, list(struct.unpack(f"<{len(values)}I", struct.pack(f"<{len(values)}f", *values)))
    return kind, values


def test_a_file_of_no_records_that_tensorflow_wrote_is_empty(tf, tmp_path):
    for compression in COMPRESSIONS:
        path = tmp_path / f"none{compression}.tfrecord"
        write(tf, path, [], compression)
        dataset = ps.open(path)
        assert (dataset.payload, len(dataset["all"])) == ("empty", 0)
