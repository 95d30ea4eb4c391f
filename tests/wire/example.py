"""`tf.train.Example` and `tf.train.SequenceExample`: the payload of a record to features, and back.

A map is a repeated field of entries, each a message with the key as field 1 and the value as field 2.
"""

import dataclasses
import sys
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from wire.fields import (
    Field,
    Span,
    WireError,
    WireType,
    expect_wire_type,
    read_fields,
    read_varint,
    write_delimited,
    write_varint,
)

Kind = Literal["bytes", "float", "int64"]

_KINDS: dict[int, Kind] = {1: "bytes", 2: "float", 3: "int64"}
_NUMBERS: dict[Kind, int] = {kind: number for number, kind in _KINDS.items()}
_LIST_VALUE = 1
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
        return b"".join(write_delimited(_LIST_VALUE, value) for value in feature.values)
    return write_delimited(_LIST_VALUE, packed) if packed else b""


def _read_bytes_list(message: Span, _strict: bool) -> list[bytes]:
    return [
        expect_wire_type(field, "BytesList.value", WireType.LENGTH_DELIMITED).tobytes()
        for field in read_fields(message)
        if field.number == _LIST_VALUE
    ]


def _read_float_list(message: Span, _strict: bool) -> "array[float]":
    """Read floats, packed or one by one: a single float is laid out like a packed list of one."""
    values = array("f")
    for field in read_fields(message):
        if field.number != _LIST_VALUE:
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
        if field.number != _LIST_VALUE:
            continue
        packed = expect_wire_type(field, "Int64List.value", WireType.LENGTH_DELIMITED, WireType.VARINT)
        position = packed.start
        while position < packed.stop:
            value, end = read_varint(packed.data, position, packed.stop)
            if strict and value > _UINT64:
                raise WireError(
                    "varint_overflow", position, f"Int64List.value: expected 64 bits, got {value:#x}"
                )
            values.append(_to_signed(value))
            position = end
    return values


_READERS: "dict[Kind, Callable[[Span, bool], list[Any] | array[float]]]" = {
    "bytes": _read_bytes_list,
    "float": _read_float_list,
    "int64": _read_int64_list,
}


def _little_endian(values: "array[float]") -> "array[float]":
    """Turn the machine's byte order into the byte order of the wire, or back."""
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


_ENTRY = 1
_ENTRY_KEY = 1
_ENTRY_VALUE = 2

V = TypeVar("V")


def read_map(
    message: Span,
    onto: dict[str, V],
    make_value: Callable[[], V],
    read_value: Callable[[Span, V], V],
    strict: bool,
) -> None:
    """Add the entries of a message with a map to those read before it.

    The last entry with a key wins, whole: its value replaces the earlier one and is not merged with it. In
    an entry, the key may be missing (""), the value too (an empty one), either may come first, the last key
    counts, and several values are merged. Unknown fields are skipped; protobuf's Python parser would drop
    the whole entry for them.

    Args:
        message: The message that holds the map.
        onto: The entries so far; changed in place.
        make_value: Makes the empty value.
        read_value: Reads a value's message and merges it onto the value it is given.
        strict: Refuse a key that is there already.
    """
    for field in read_fields(message):
        if field.number != _ENTRY:
            continue
        entry = expect_wire_type(field, "map entry", WireType.LENGTH_DELIMITED)
        key, value = "", make_value()
        for part in read_fields(entry):
            if part.number == _ENTRY_KEY:
                key = _read_key(part)
            elif part.number == _ENTRY_VALUE:
                value = read_value(expect_wire_type(part, "map value", WireType.LENGTH_DELIMITED), value)
        if strict and key in onto:
            raise WireError("duplicate_key", field.position, f"expected each key once, got {key!r} again")
        onto[key] = value


def write_map(values: Mapping[str, bytes]) -> bytes:
    """Return the fields of a map whose values are the bytes of messages, in the order given."""
    entries = []
    for key, value in values.items():
        content = write_delimited(_ENTRY_KEY, key.encode("utf-8")) + write_delimited(_ENTRY_VALUE, value)
        entries.append(write_delimited(_ENTRY, content))
    return b"".join(entries)


def _read_key(field: Field) -> str:
    key = expect_wire_type(field, "map key", WireType.LENGTH_DELIMITED)
    try:
        return key.tobytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise WireError(
            "invalid_utf8", key.start + error.start, f"map key: expected UTF-8, got {key.tobytes()!r}"
        ) from None


_FEATURES = 1


def read_example(payload: bytes, *, strict: bool = False) -> dict[str, Feature]:
    """Read an `Example` by protobuf's rules.

    Unlike protobuf, a known field in another wire type than declared is refused, and an unknown field
    inside a map entry does not make the entry disappear.

    Example:
        >>> read_example(write_example({"age": Feature("int64", [7])}))
        {'age': Feature(kind='int64', values=[7])}

    Args:
        payload: The bytes of one record.
        strict: Refuse as well what protobuf resolves in silence: a key given twice, the `features` field
            given twice, an integer of more than 64 bits.

    Raises:
        WireError: The payload is no `Example`.
    """
    features: dict[str, Feature] = {}
    seen: set[int] = set()
    for field in read_fields(Span.whole(payload)):
        if field.number == _FEATURES:
            read_features(field, "Example.features", features, strict)
            if strict:
                check_first(field, "Example.features", seen)
    return features


def write_example(features: Mapping[str, Feature]) -> bytes:
    """Return an `Example` with its features in the order given; no features give no bytes."""
    return write_features(_FEATURES, features)


def read_features(field: Field, name: str, onto: dict[str, Feature], strict: bool) -> None:
    """Add the map of a `Features` message to the features read before it."""
    read_map(
        expect_wire_type(field, name, WireType.LENGTH_DELIMITED),
        onto,
        make_value=lambda: Feature(None, []),
        read_value=lambda message, feature: read_feature(message, feature, strict=strict),
        strict=strict,
    )


def write_features(number: int, features: Mapping[str, Feature]) -> bytes:
    """Return field `number` with a `Features` message, or nothing when there are no features."""
    if not features:
        return b""
    return write_delimited(number, write_map({key: write_feature(value) for key, value in features.items()}))


def check_first(field: Field, name: str, seen: set[int]) -> None:
    """Refuse a field that was there before, and remember it."""
    if field.number in seen:
        raise WireError("repeated_message", field.position, f"expected {name} once, got it again")
    seen.add(field.number)


_CONTEXT = 1
_FEATURE_LISTS = 2
_STEP = 1


@dataclass(frozen=True)
class SequenceExample:
    """What a `SequenceExample` holds.

    Attributes:
        context: Features of the whole sequence, by name.
        feature_lists: For each name one feature per step. Lists may differ in length, and steps in kind.
    """

    context: dict[str, Feature] = dataclasses.field(default_factory=dict)
    feature_lists: dict[str, list[Feature]] = dataclasses.field(default_factory=dict)


def read_sequence_example(payload: bytes, *, strict: bool = False) -> SequenceExample:
    """Read a `SequenceExample` by protobuf's rules, with the exceptions and the `strict` of `read_example`.

    Raises:
        WireError: The payload is no `SequenceExample`.
    """
    example = SequenceExample()
    seen: set[int] = set()
    for part in read_fields(Span.whole(payload)):
        if part.number == _CONTEXT:
            name = "SequenceExample.context"
            read_features(part, name, example.context, strict)
        elif part.number == _FEATURE_LISTS:
            name = "SequenceExample.feature_lists"
            _read_feature_lists(part, name, example.feature_lists, strict)
        else:
            continue
        if strict:
            check_first(part, name, seen)
    return example


def write_sequence_example(example: SequenceExample) -> bytes:
    """Return a `SequenceExample`, names in the order given; an empty part gives no bytes."""
    context = write_features(_CONTEXT, example.context)
    if not example.feature_lists:
        return context
    lists = {key: _write_feature_list(steps) for key, steps in example.feature_lists.items()}
    return context + write_delimited(_FEATURE_LISTS, write_map(lists))


def _read_feature_lists(part: Field, name: str, onto: dict[str, list[Feature]], strict: bool) -> None:
    def read_feature_list(message: Span, steps: list[Feature]) -> list[Feature]:
        for step in read_fields(message):
            if step.number == _STEP:
                content = expect_wire_type(step, "FeatureList.feature", WireType.LENGTH_DELIMITED)
                steps.append(read_feature(content, strict=strict))
        return steps

    content = expect_wire_type(part, name, WireType.LENGTH_DELIMITED)
    read_map(content, onto, make_value=list, read_value=read_feature_list, strict=strict)


def _write_feature_list(steps: list[Feature]) -> bytes:
    return b"".join(write_delimited(_STEP, write_feature(step)) for step in steps)
