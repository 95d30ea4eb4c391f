"""`tf.train.Example`: the payload of a record to its features by name, and back."""

from collections.abc import Mapping

from penstock.wire.error import WireError
from penstock.wire.feature import Feature, read_feature, write_feature
from penstock.wire.field import Field, Span, WireType, expect_wire_type, read_fields, write_delimited
from penstock.wire.mapping import read_map, write_map

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
