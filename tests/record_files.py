"""TFRecord files as the tests need them, made by `wire`; and what reading a damaged one gives."""

import gzip
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.errors import PenstockError
from wire.example import Feature, write_example
from wire.frame import masked_crc32c, write_record, write_records

NUM_RECORDS = 5
PAYLOAD_BYTES = 69
FRAME_BYTES = PAYLOAD_BYTES + 16
FILE_BYTES = NUM_RECORDS * FRAME_BYTES


def feature(value: Any) -> Feature:
    """Return a feature of a Python value, or of a list of such; a feature is taken as it is."""
    if isinstance(value, Feature):
        return value
    values = value if isinstance(value, list) else [value]
    if all(isinstance(each, int) for each in values):
        return Feature("int64", values)
    if all(isinstance(each, float) for each in values):
        return Feature("float", values)
    return Feature("bytes", [each.encode() if isinstance(each, str) else each for each in values])


def example(**values: Any) -> bytes:
    """Return the payload of an Example."""
    return write_example({name: feature(value) for name, value in values.items()})


def numbered(number: int) -> bytes:
    """Return one of the payloads of 69 bytes that the fault tables count in."""
    return example(row=number, text=f"record {number}".ljust(39, "."))


PAYLOADS = [numbered(number) for number in range(NUM_RECORDS)]
FRAMES = [write_record(payload) for payload in PAYLOADS]
BASE = b"".join(FRAMES)


def row_numbers(payloads: Iterable[bytes]) -> list[int]:
    """Tell which of the numbered payloads these are."""
    return [PAYLOADS.index(payload) for payload in payloads]


def write_plain(path: Path, payloads: Iterable[bytes]) -> Path:
    path.write_bytes(write_records(payloads))
    return path


def write_gzip(path: Path, payloads: Iterable[bytes]) -> Path:
    path.write_bytes(gzip.compress(write_records(payloads), mtime=0))
    return path


def write_zlib(path: Path, payloads: Iterable[bytes]) -> Path:
    path.write_bytes(zlib.compress(write_records(payloads)))
    return path


def flip(data: bytes, position: int, bit: int = 0) -> bytes:
    """Return the bytes with one bit turned."""
    return data[:position] + bytes([data[position] ^ 1 << bit]) + data[position + 1 :]


def header(length: int) -> bytes:
    """Return a record's header with a CRC that fits, whatever it claims."""
    packed = struct.pack("<Q", length)
    return packed + struct.pack("<I", masked_crc32c(packed))


def read_until_error(items: Iterator[Any]) -> tuple[list[Any], PenstockError | None]:
    """Return what comes before an error, and the error, if there is one."""
    delivered = []
    try:
        for item in items:
            delivered.append(item)
    except PenstockError as error:
        return delivered, error
    return delivered, None


def open_split(path: Path, **options: Any) -> Any:
    """Open one file and return its only split."""
    dataset = ps.open(path, **options)
    (name,) = dataset.splits
    return dataset[name]
