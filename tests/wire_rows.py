"""Records written byte by byte, opened in every way there is, and checked as `verify` does.

Values are compared by their bits. A record that must be refused stands between two sound ones, which must
be read all the same, and its error must name file, record, byte and field.
"""

import struct
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from core_reading import Refused, check_payloads, expect_outcomes, read_outcomes
from oracle_protobuf import Value
from penstock.columns import Columns, Dense, Ragged
from penstock.decode.losses import describe_malformed
from penstock.errors import CorruptRecordError
from penstock.schema.schema import Schema
from raising import containing
from record_files import open_split, write_plain
from wire.example import Feature, write_feature
from wire.fields import write_delimited as delimited

TOO_LONG, CUT, OVERRUN, FIELD_ZERO, BAD_TYPE, WRONG_TYPE, OPEN_GROUP, DEEP, FLOAT_SIZE, NOT_UTF8 = range(
    10, 20
)
OVERFLOW, DUPLICATE = 20, 21

DTYPES = {"bytes": "bytes", "float": "float32", "int64": "int64"}


def padded(value: int, num_bytes: int) -> bytes:
    """Write a varint in exactly so many bytes."""
    groups = [value >> 7 * index & 0x7F for index in range(num_bytes)]
    return bytes([group | 0x80 for group in groups[:-1]] + groups[-1:])


def entry(key: bytes | str, message: bytes) -> bytes:
    """Return a map entry as writers write it: the key, then the value."""
    name = key.encode() if isinstance(key, str) else key
    return delimited(1, name) + delimited(2, message)


def features(*entries: bytes) -> bytes:
    """Return field 1 of an Example with these map entries."""
    return delimited(1, b"".join(delimited(1, each) for each in entries))


def example(**messages: bytes | Feature) -> bytes:
    """Return an Example with these Feature messages."""
    return features(
        *(
            entry(key, write_feature(message) if isinstance(message, Feature) else message)
            for key, message in messages.items()
        )
    )


def ints(*values: int) -> Feature:
    return Feature("int64", list(values))


def floats(*bits: int) -> Feature:
    """Return floats by their bits."""
    return Feature("float", array("f", struct.pack(f"={len(bits)}I", *bits)))


def strings(*values: bytes) -> Feature:
    return Feature("bytes", list(values))


def wrapped(content: bytes, *numbers: int) -> bytes:
    """Put content into the messages that these field numbers lead to, the outermost first."""
    for number in reversed(numbers):
        content = delimited(number, content)
    return content


def ways_to_open(kinds: dict[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the ways to open a file whose keys hold lists of these kinds."""
    fields = {key: ps.fields.Sequence(DTYPES[kind]) for key, kind in kinds.items()}
    whole = {key: ps.fields.Sequence(DTYPES[kind], optional=True) for key, kind in kinds.items()}
    yield "inferred", {}
    yield "fields", {"fields": fields}
    yield "schema", {"schema": Schema(whole)}


def bits(value: Any) -> list[Any]:
    """Return a value of a sample, or a row of a column, as the list that was stored; floats as their bits."""
    if isinstance(value, float):
        return [struct.unpack("<I", struct.pack("<f", value))[0]]
    if isinstance(value, np.ndarray | np.generic):
        flat = np.atleast_1d(value)
        return (flat.view(np.uint32) if flat.dtype == np.float32 else flat).tolist()
    values = value if isinstance(value, list) else [value]
    return [each.encode() if isinstance(each, str) else each for each in values]


def check_read(folder: Path, payloads: list[bytes], expected: list[dict[str, Value]], **options: Any) -> None:
    """Read records by every plan, by samples and by columns, and hold them against kinds and values.

    Each key must have one kind in all records that set it.
    """
    path = write_plain(folder / "sound.tfrecord", payloads)
    kinds = {key: kind for record in expected for key, (kind, _) in record.items() if kind is not None}
    wanted = [
        {key: values for key, (kind, values) in record.items() if kind is not None} for record in expected
    ]
    for way, declared in ways_to_open(kinds):
        split = open_split(path, options=ps.options.ReadOptions(**options), **declared)
        assert [_by_bits(sample) for sample in split] == wanted, way
        assert [_by_bits(split[row]) for row in range(len(split))] == wanted, way
        assert _rows(split.columns(), len(split)) == wanted, way
        for name in kinds:
            assert _rows(split.columns(fields=[name]), len(split)) == [
                {name: record[name]} if name in record else {} for record in wanted
            ]
    read = read_outcomes(payloads, kinds, strict=options.get("strict", False))
    assert read == [expect_outcomes(record) for record in expected]
    checked = check_payloads(payloads)
    assert not checked.refused
    assert checked.keys == {key for record in expected for key in record}


def _by_bits(sample: dict[str, Any]) -> dict[str, Any]:
    # A Python float cannot hold a signalling NaN: such samples are compared by their columns.
    return {name: bits(value) for name, value in sample.items()}


def _rows(columns: Columns, num_rows: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{} for _ in range(num_rows)]
    for name, column in columns.items():
        assert len(column) == num_rows
        for number, row in enumerate(rows):
            if column.present is None or column.present[number]:
                row[name] = bits(_row(column, number))
    return rows


def _row(column: Any, number: int) -> Any:
    if isinstance(column, Dense):
        return column.values[number]
    if isinstance(column, Ragged) and isinstance(column.values, np.ndarray):
        return column.values[column.offsets[number] : column.offsets[number + 1]]
    return column[number]


SOUND = example(a=ints(1))


def check_refused(
    folder: Path,
    payload: bytes,
    status: int,
    field: str = "payload",
    *,
    detail: str = "",
    in_check: bool = True,
    **options: Any,
) -> None:
    """Read a record between two sound ones, by every plan, and hold its error against status and field.

    Args:
        folder: Where to write the file.
        payload: The record.
        status: What the core must say of it, as numbered in native/record/status.h.
        field: What the error must name: a field whose value is malformed, or "payload".
        detail: A value that the error shows in addition to the fault itself.
        in_check: Whether `verify` refuses it as well.
        options: Of reading.
    """
    path = write_plain(folder / "bad.tfrecord", [SOUND, payload, SOUND])
    offset = len(SOUND) + 16
    what = containing("" if field == "payload" else repr(field), describe_malformed(status), detail)
    messages = set()
    for way, declared in ways_to_open({"a": "int64"}):
        opened = {"options": ps.options.ReadOptions(**options), **declared}
        split = open_split(path, **opened)
        for read in (
            lambda split=split: split[1],
            lambda split=split: split.columns(),
            lambda split=split: list(split),
        ):
            with pytest.raises(CorruptRecordError) as caught:
                read()
            error = caught.value
            messages.add(str(error))
            assert (error.what, error.advice) == (what, containing(f"'penstock verify {path}'")), way
            assert (error.path, error.record, error.offset) == (str(path), 1, offset), way
            assert (error.field, error.expected, error.got) == (field, None, None), way
        assert [bits(split[row]["a"]) for row in (0, 2)] == [[1], [1]], way
        collecting = open_split(path, on_error="collect", **opened)
        assert [bits(sample["a"]) for sample in collecting] == [[1], [1]], way
        assert {str(error) for error in collecting.rejected} == messages, way
        assert len(messages) == 1, way
    (refused,) = read_outcomes([payload], ["a"], strict=options.get("strict", False))
    assert isinstance(refused, Refused)
    checked = check_payloads([SOUND, payload, SOUND])
    assert {number: each.status for number, each in checked.refused.items()} == (
        {1: status} if in_check else {}
    )


def named(cases: Iterable[tuple[str, Any]] | dict[str, Any]) -> Any:
    """Return test parameters from a table of cases with their names in front."""
    rows = cases.items() if isinstance(cases, dict) else cases
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), id=name) for name, case in rows]
