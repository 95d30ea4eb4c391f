"""Files and messages that pass between the plain readers and TensorFlow."""

import warnings
from array import array
from pathlib import Path
from typing import Any

import pytest

from wire.example import (
    Feature,
    SequenceExample,
    read_example,
    read_sequence_example,
    write_example,
    write_sequence_example,
)
from wire.frame import read_records, write_records

FEATURES = {
    "image": Feature("bytes", [b"\xff\xd8\x00", b""]),
    "weights": Feature("float", [0.5, -0.0, float("inf"), 1e-45]),
    "ids": Feature("int64", [-1, 0, 2**63 - 1, -(2**63)]),
    "empty": Feature("int64", []),
    "unset": Feature(None, []),
}
SEQUENCE = SequenceExample(
    {"label": Feature("int64", [3])},
    {"tokens": [Feature("int64", [1, 2]), Feature("int64", []), Feature(None, [])], "none": []},
)


@pytest.fixture(scope="module")
def tf() -> Any:
    """TensorFlow. It warns while it is imported, and here warnings are errors."""
    with pytest.MonkeyPatch.context() as environment, warnings.catch_warnings():
        environment.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
        environment.setenv("CUDA_VISIBLE_DEVICES", "")
        warnings.simplefilter("ignore")
        import tensorflow  # noqa: PLC0415
    return tensorflow


def tf_feature(tf: Any, feature: Feature) -> Any:
    lists = {"bytes": tf.train.BytesList, "float": tf.train.FloatList, "int64": tf.train.Int64List}
    if feature.kind is None:
        return tf.train.Feature()
    return tf.train.Feature(**{f"{feature.kind}_list": lists[feature.kind](value=feature.values)})


def tf_features(tf: Any, features: dict[str, Feature]) -> Any:
    return tf.train.Features(feature={key: tf_feature(tf, feature) for key, feature in features.items()})


def tf_sequence(tf: Any) -> Any:
    lists = {
        key: tf.train.FeatureList(feature=[tf_feature(tf, step) for step in steps])
        for key, steps in SEQUENCE.feature_lists.items()
    }
    return tf.train.SequenceExample(
        context=tf_features(tf, SEQUENCE.context), feature_lists=tf.train.FeatureLists(feature_list=lists)
    )


def test_file_written_by_tensorflow_is_read_by_wire(tf: Any, tmp_path: Path) -> None:
    path = tmp_path / "tensorflow.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(tf.train.Example(features=tf_features(tf, FEATURES)).SerializeToString())
        writer.write(b"")
        writer.write(tf_sequence(tf).SerializeToString())
    data = path.read_bytes()
    example, empty, sequence = read_records(data)
    assert read_example(example, strict=True) == FEATURES
    assert empty == b""
    assert read_sequence_example(sequence, strict=True) == SEQUENCE
    assert write_records([example, empty, sequence]) == data


def test_file_written_by_wire_is_read_by_tensorflow(tf: Any, tmp_path: Path) -> None:
    path = tmp_path / "wire.tfrecord"
    path.write_bytes(write_records([write_example(FEATURES), b"", write_sequence_example(SEQUENCE)]))
    example, empty, sequence = (record.numpy() for record in tf.data.TFRecordDataset(str(path)))
    assert tf.train.Example.FromString(example) == tf.train.Example(features=tf_features(tf, FEATURES))
    assert empty == b""
    assert tf.train.SequenceExample.FromString(sequence) == tf_sequence(tf)


def test_example_written_by_wire_is_parsed_by_tensorflow(tf: Any) -> None:
    parsed = tf.io.parse_single_example(
        write_example(FEATURES),
        {
            "image": tf.io.FixedLenFeature([2], tf.string),
            "weights": tf.io.FixedLenFeature([4], tf.float32),
            "ids": tf.io.FixedLenFeature([4], tf.int64),
        },
    )
    assert parsed["image"].numpy().tolist() == FEATURES["image"].values
    assert parsed["weights"].numpy().tobytes() == array("f", FEATURES["weights"].values).tobytes()
    assert parsed["ids"].numpy().tolist() == FEATURES["ids"].values
