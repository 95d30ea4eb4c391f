"""The two files that TensorFlow Datasets needs to read a data set: `dataset_info.json` and `features.json`.

In: a schema and a manifest. Out: the bytes of the files, or the reason why TFDS cannot read the data set: it
does not support missing values, feature lists or compression.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from penstock.format.manifest import Manifest
from penstock.foundation.json_text import write_json
from penstock.foundation.wording import show
from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import Date
from penstock.schema.field import Field
from penstock.schema.scalar import Bytes, Category, Image, Number, Text
from penstock.schema.schema import Schema

TFDS_NAMES: Final = ("dataset_info.json", "features.json")

_FEATURES = "tensorflow_datasets.core.features"
_SPLIT_NAME = re.compile(r"[\w-]+")  # a split name in `split="NAME[:10%]"` of TFDS
_RAW_DTYPES = {  # types of tf.io.decode_raw; TFDS reads uint64 as int64
    "bool",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint64",
}


def describe_tfds(schema: Schema, manifest: Manifest) -> tuple[bytes, bytes] | str:
    """Return the bytes of `dataset_info.json` and `features.json`, or the reason why they are not written.

    TFDS returns images as the stored bytes. Its own `Image` feature has one number of channels and one bit
    depth per field, which a manifest does not know: it would change gray, transparent and 16-bit images.
    """
    obstacles = (_find_obstacle(name, field) for name, field in schema.items())
    reason = _find_general_obstacle(manifest) or next(filter(None, obstacles), None)
    if reason is not None:
        return reason
    features = {field.wire_key(name): DESCRIPTIONS[type(field)](field) for name, field in schema.items()}
    info = {
        "name": "penstock",
        "version": "1.0.0",
        "fileFormat": "tfrecord",
        "splits": [
            {
                "name": name,
                "filepathTemplate": "{SPLIT}-{SHARD_X_OF_Y}.tfrecord",
                "numBytes": str(split.num_bytes),
                "shardLengths": [str(shard.num_records) for shard in split.shards],
            }
            for name, split in manifest.splits.items()
            if split.num_records  # TFDS refuses to read an empty split
        ],
    }
    outer = {
        "pythonClassName": f"{_FEATURES}.features_dict.FeaturesDict",
        "featuresDict": {"features": features},
    }
    return _dump(info), _dump(outer)


def _find_general_obstacle(manifest: Manifest) -> str | None:
    if manifest.payload != "example":
        return "TFDS cannot read SequenceExamples"
    if manifest.compression != "none":
        return "TFDS cannot read compressed shards"
    if not manifest.num_records:
        return "TFDS cannot read a data set without records"
    for name, split in manifest.splits.items():
        count = len(split.shards)
        usual = [f"{name}-{i:05}-of-{count:05}.tfrecord" for i in range(count)]
        if not _SPLIT_NAME.fullmatch(name) or [shard.name for shard in split.shards] != usual:
            return f"TFDS cannot find the shards of split {show(name)} by their names"
    return None


def _find_obstacle(name: str, field: Field) -> str | None:
    if field.optional:
        return f"field {show(name)}: TFDS does not support missing values"
    if isinstance(field, Tensor) and field.kind == "bytes" and field.dtype not in _RAW_DTYPES:
        return f"field {show(name)}: TensorFlow cannot decode raw {field.dtype}"
    return None


def _sequence(field: Sequence) -> dict[str, Any]:
    item = _text() if field.dtype == "string" else _tensor((), field.dtype)
    sequence = {"feature": item, "length": "-1"}
    return {"pythonClassName": f"{_FEATURES}.sequence_feature.Sequence", "sequence": sequence}


def _numbers(field: Number | Tensor, shape: tuple[int, ...]) -> dict[str, Any]:
    return _tensor(shape, field.dtype, "bytes" if field.kind == "bytes" else "none")


# How TFDS declares each type of field.
DESCRIPTIONS: Final[dict[type[Field], Callable[[Any], dict[str, Any]]]] = {
    Number: lambda field: _numbers(field, ()),
    Category: lambda field: _tensor((), "int64") if field.kind == "int64" else _text(),
    Date: lambda _: _tensor((), "int64"),
    Text: lambda _: _text(),
    Image: lambda _: _tensor((), "bytes"),
    Bytes: lambda _: _tensor((), "bytes"),
    Sequence: _sequence,
    Tensor: lambda field: _numbers(field, field.shape),
}


def _text() -> dict[str, Any]:
    return {"pythonClassName": f"{_FEATURES}.text_feature.Text", "text": {}}


def _tensor(shape: tuple[int, ...], dtype: str, encoding: str = "none") -> dict[str, Any]:
    form = {
        # The JSON form of protobuf: 64-bit ints are strings, and empty lists are omitted.
        "shape": {"dimensions": [str(dim) for dim in shape]} if shape else {},
        "dtype": "string" if dtype == "bytes" else dtype,
        "encoding": encoding,
    }
    return {"pythonClassName": f"{_FEATURES}.tensor_feature.Tensor", "tensor": form}


def _dump(form: dict[str, Any]) -> bytes:
    return write_json(form, 4).encode("ascii") + b"\n"
