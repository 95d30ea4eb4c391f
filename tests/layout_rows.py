"""Random records with a field of every layout that the core knows, and what each must be read as.

The same seed gives the same records. `damage_row` makes one field of a record bad, which the core must name.
"""

import random
import struct
from array import array
from typing import Any, NamedTuple

import numpy as np

from penstock import fields as f
from penstock.columns import Columns, Dense
from penstock.schema.schema import Schema
from wire.example import Feature, write_feature
from wire.fields import write_delimited, write_varint

SCHEMA = Schema(
    {
        "int": f.Number("int64"),
        "int default": f.Number("int64", default=-5),
        "float": f.Number("float32"),
        "float optional": f.Number("float32", optional=True),
        "text": f.Text(),
        "text default": f.Text(default="none"),
        "bytes optional": f.Bytes(optional=True),
        "category": f.Category("int64", default=3),
        "tensor of ints": f.Tensor((3,), "int64", "list"),
        "tensor default": f.Tensor((2, 2), "float32", "list", default=[[1, 2], [3, 4]]),
        "raw": f.Tensor((4,), "uint8", "raw"),
        "raw default": f.Tensor((3,), "int16", "raw", default=[-1, 0, 1]),
        "list of ints": f.Sequence("int64"),
        "list of floats": f.Sequence("float32", optional=True),
        "list default": f.Sequence("int64", default=(7, 8)),
        "list of bytes": f.Sequence("bytes"),
        "bytes default": f.Sequence("bytes", default=(b"x", b"")),
        "any ints a step": f.Sequence("int64", None, "feature_list"),
        "one float a step": f.Sequence("float32", (), "feature_list"),
        "two ints a step": f.Sequence("int64", (2,), "feature_list", optional=True),
        "any bytes a step": f.Sequence("bytes", None, "feature_list", optional=True),
        "one string a step": f.Sequence("bytes", (), "feature_list"),
    }
)

FAULTS = ("wrong kind", "wrong count", "malformed", "missing")


class Row(NamedTuple):
    """A record and what it is read as.

    Attributes:
        features: The messages of its features, by key; a list of them where the field is a feature list.
        sample: What a reader must find, in the form of `plain_sample`.
    """

    features: dict[str, Any]
    sample: dict[str, Any]

    def payload(self, rng: random.Random) -> bytes:
        """Return the record with its keys in any order."""
        maps = {1: [], 2: []}
        for key, content in rng.sample(sorted(self.features.items()), len(self.features)):
            is_list = SCHEMA[key].is_feature_list
            value = b"".join(write_delimited(1, step) for step in content) if is_list else content
            entry = write_delimited(1, key.encode()) + write_delimited(2, value)
            maps[2 if is_list else 1].append(write_delimited(1, entry))
        return b"".join(write_delimited(number, b"".join(entries)) for number, entries in maps.items())


def _values(rng: random.Random, kind: str, count: int) -> list[Any]:
    """Return values in the form of `plain_sample`: floats as their bits."""
    if kind == "int64":
        limits = [2 ** rng.choice((3, 6, 7, 20, 60, 63)) for _ in range(count)]
        return [rng.randrange(-limit, limit) for limit in limits]
    if kind == "float":
        return [rng.getrandbits(24) | 0x3F000000 for _ in range(count)]
    return [rng.randbytes(rng.choice((0, 1, 5, 16, 17, 40))) for _ in range(count)]


def _message(rng: random.Random, kind: str, values: list[Any]) -> bytes:
    """Spell values as a list of their kind: as writers do, or unpacked, or as two lists."""
    if kind == "float":
        values = array("f", struct.pack(f"={len(values)}I", *values))
    odd = rng.random()
    if odd < 0.1:
        return write_feature(Feature(kind, values[:1])) + write_feature(Feature(kind, values[1:]))
    if odd < 0.2 and kind == "int64":
        single = (b"\x08" + write_varint(value % 2**64) for value in values)
        return write_delimited(3, b"".join(single))
    return write_feature(Feature(kind, values))


def make_row(rng: random.Random) -> Row:
    """Return a random record that is sound."""
    row = Row({}, {})
    for name, field in SCHEMA.items():
        if field.optional and rng.random() < 0.3:
            if rng.random() < 0.3 and not field.is_feature_list:
                row.features[name] = b""  # the key without a kind
            if field.default is not None:
                row.sample[name] = plain(_as_read(field))
            continue
        if field.is_feature_list:
            counts = [rng.randrange(4) if field.shape is None else field.num_step_values] * rng.randrange(4)
            steps = [_values(rng, field.kind, count) for count in counts]
            row.features[name] = [_message(rng, field.kind, step) for step in steps]
            row.sample[name] = [step[0] for step in steps] if field.shape == () else steps
            continue
        raw = isinstance(field, f.Tensor) and field.kind == "bytes"
        count = 1 if raw else rng.randrange(5) if field.num_values is None else field.num_values
        values = [rng.randbytes(field.num_bytes)] if raw else _values(rng, field.kind, count)
        row.features[name] = _message(rng, field.kind, values)
        row.sample[name] = _shaped(field, values, raw)
    return row


def _as_read(field: f.Field) -> Any:
    return list(field.default) if isinstance(field.default, tuple) else field.default


def _shaped(field: f.Field, values: list[Any], raw: bool) -> Any:
    if raw:
        return np.frombuffer(values[0], field.dtype).reshape(field.shape).tolist()
    if isinstance(field, f.Tensor):
        return np.array(values, object).reshape(field.shape).tolist()
    return values if isinstance(field, f.Sequence) else values[0]


def plain(value: Any) -> Any:
    """Return a value of a sample as Python objects that can be compared: floats as bits, texts as bytes."""
    if isinstance(value, np.ndarray | np.generic):
        return (value.view(np.uint32) if value.dtype == np.float32 else value).tolist()
    if isinstance(value, float):
        return struct.unpack("<I", struct.pack("<f", value))[0]
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.encode() if isinstance(value, str) else value


def plain_sample(sample: dict[str, Any]) -> dict[str, Any]:
    """Return a sample in the form in which rows know theirs."""
    return {name: plain(value) for name, value in sample.items()}


def plain_rows(columns: Columns, num_rows: int) -> list[dict[str, Any]]:
    """Return columns row by row, in the form in which rows know their samples."""
    rows: list[dict[str, Any]] = [{} for _ in range(num_rows)]
    for name, column in columns.items():
        assert len(column) == num_rows
        for number, row in enumerate(rows):
            has_value = column.present is None or column.present[number]
            if has_value or SCHEMA[name].default is not None:
                row[name] = plain(column.values[number] if isinstance(column, Dense) else column[number])
    return rows


def has_count(field: f.Field) -> bool:
    """Whether a list of the field, or of one of its steps, has the number of values of the schema."""
    return field.num_values is not None or (field.is_feature_list and field.shape is not None)


def damage_row(rng: random.Random, row: Row) -> tuple[Row, str]:
    """Make one field of a record bad; return the record, and the name of the field."""
    while True:
        name, fault = rng.choice(sorted(SCHEMA)), rng.choice(FAULTS)
        field = SCHEMA[name]
        features = dict(row.features)
        if fault == "missing" and not field.optional:
            features.pop(name, None)
        elif fault == "wrong kind":
            other = Feature("float", [0.5]) if field.kind == "bytes" else Feature("bytes", [b"ab"])
            features[name] = write_feature(other)
        elif fault == "wrong count" and has_count(field):
            features[name] = _message(rng, field.kind, _values(rng, field.kind, 5))
        elif fault == "malformed":
            broken = {
                "int64": b"\x1a\x03\x0a\x01\x80",
                "float": b"\x12\x04\x0a\x02\0\0",
                "bytes": b"\x0a\x03\x0a\x05a",
            }
            features[name] = broken[field.kind]
        else:
            continue
        if field.is_feature_list and name in features:
            features[name] = [*(row.features.get(name) or [])[:1], features[name]]
        return Row(features, {}), name
