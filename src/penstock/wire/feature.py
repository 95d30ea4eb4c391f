"""`tf.train.Feature`: one list of bytes, floats or integers, or nothing; read and written."""

import sys
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from penstock.wire.error import WireError
from penstock.wire.field import Span, WireType, expect_wire_type, read_fields, write_delimited
from penstock.wire.varint import read_varint, write_varint

Kind = Literal["bytes", "float", "int64"]

_KINDS: dict[int, Kind] = {1: "bytes", 2: "float", 3: "int64"}
_NUMBERS: dict[Kind, int] = {kind: number for number, kind in _KINDS.items()}
_VALUE = 1
_FLOAT_BYTES = 4
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_UINT64 = 2**64 - 1


@dataclass(frozen=True, eq=False)
class Feature:
    """One feature as it is stored. Equal means the same kind and the same bits: NaN = NaN, -0.0 is not 0.0.

    Example:
        >>> Feature("int64", [1, 2]) == read_feature(Span.whole(write_feature(Feature("int64", [1, 2]))))
        True

    Attributes:
        kind: Which list is there; None when there is none, which is not the same as an empty one.
        values: A list of `bytes` or of `int`; for floats an `array("f")`, made from any other sequence.
            A Python float is a double, and turning a signalling NaN into one changes its bits; the array
            keeps the 32 bits that were read, and so does `numpy.asarray` of it.
    """

    kind: Kind | None
    values: "list[Any] | array[float]"

    def __post_init__(self) -> None:
        is_exact = isinstance(self.values, array) and self.values.typecode == "f"
        if self.kind == "float" and not is_exact:
            object.__setattr__(self, "values", array("f", self.values))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Feature):
            return NotImplemented
        return self.kind == other.kind and self._exact() == other._exact()

    __hash__ = None  # type: ignore[assignment]  # lists have none

    def _exact(self) -> "list[Any] | bytes":
        return self.values.tobytes() if isinstance(self.values, array) else self.values


def read_feature(message: Span, onto: Feature | None = None, *, strict: bool = False) -> Feature:
    """Read a feature and merge it onto the one read before it, if any.

    A further list of the same kind adds its values; one of another kind clears what was there.
    """
    feature = Feature(None, []) if onto is None else onto
    for field in read_fields(message):
        kind = _KINDS.get(field.number)
        if kind is None:
            continue
        content = expect_wire_type(field, f"Feature.{kind}_list", WireType.LENGTH_DELIMITED)
        values = _READERS[kind](content, strict)
        if feature.kind != kind:
            feature = Feature(kind, [])
        feature.values.extend(values)
    return feature


def write_feature(feature: Feature) -> bytes:
    """Return the message of a feature, its numbers packed."""
    if feature.kind is None:
        return b""
    return write_delimited(_NUMBERS[feature.kind], _write_list(feature))


def _write_list(feature: Feature) -> bytes:
    if isinstance(feature.values, array):
        packed = _little_endian(feature.values).tobytes()
    elif feature.kind == "int64":
        packed = b"".join(write_varint(_to_unsigned(value)) for value in feature.values)
    else:
        return b"".join(write_delimited(_VALUE, value) for value in feature.values)
    return write_delimited(_VALUE, packed) if packed else b""


def _read_bytes_list(message: Span, _strict: bool) -> list[bytes]:
    return [
        expect_wire_type(field, "BytesList.value", WireType.LENGTH_DELIMITED).tobytes()
        for field in read_fields(message)
        if field.number == _VALUE
    ]


def _read_float_list(message: Span, _strict: bool) -> "array[float]":
    """Read floats, packed or one by one: a single float is laid out like a packed list of one."""
    values = array("f")
    for field in read_fields(message):
        if field.number != _VALUE:
            continue
        packed = expect_wire_type(field, "FloatList.value", WireType.LENGTH_DELIMITED, WireType.FIXED32)
        num_bytes = packed.stop - packed.start
        if num_bytes % _FLOAT_BYTES:
            raise WireError(
                "packed_size",
                field.position,
                f"FloatList.value: expected a multiple of 4 bytes, got {num_bytes}",
            )
        values.frombytes(packed.tobytes())
    return _little_endian(values)


def _read_int64_list(message: Span, strict: bool) -> list[int]:
    """Read integers, packed or one by one: a single varint is laid out like a packed list of one."""
    values = []
    for field in read_fields(message):
        if field.number != _VALUE:
            continue
        packed = expect_wire_type(field, "Int64List.value", WireType.LENGTH_DELIMITED, WireType.VARINT)
        position = packed.start
        while position < packed.stop:
            value, behind = read_varint(packed.data, position, packed.stop)
            if strict and value > _UINT64:
                raise WireError(
                    "varint_overflow", position, f"Int64List.value: expected 64 bits, got {value:#x}"
                )
            values.append(_to_signed(value))
            position = behind
    return values


_READERS: "dict[Kind, Callable[[Span, bool], list[Any] | array[float]]]" = {
    "bytes": _read_bytes_list,
    "float": _read_float_list,
    "int64": _read_int64_list,
}


def _little_endian(values: "array[float]") -> "array[float]":
    """Turn the machine's byte order into that of the wire, or back."""
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values


def _to_signed(value: int) -> int:
    """Read the lowest 64 bits as two's complement; bits above them are dropped, as protobuf does."""
    value &= _UINT64
    return value - 2**64 if value > _INT64_MAX else value


def _to_unsigned(value: int) -> int:
    if not _INT64_MIN <= value <= _INT64_MAX:
        raise ValueError(f"int64 value: expected {_INT64_MIN} to {_INT64_MAX}, got {value}")
    return value & _UINT64
