"""Read `Example` and `SequenceExample` with `wire`, into the plain form of `oracle_protobuf`."""

import struct
from array import array

from oracle_protobuf import Value
from wire.example import Feature, read_example, read_sequence_example


def plain(feature: Feature) -> Value:
    """Return kind and values of a feature, floats as their bits."""
    values = feature.values
    if isinstance(values, array):
        return "float", list(struct.unpack(f"={len(values)}I", values))
    return feature.kind, list(values)


def wire_example(payload: bytes, *, strict: bool = False) -> dict[str, Value]:
    """Return kind and values of each feature of an `Example`, as `wire` reads it."""
    return {key: plain(feature) for key, feature in read_example(payload, strict=strict).items()}


def wire_sequence_example(
    payload: bytes, *, strict: bool = False
) -> tuple[dict[str, Value], dict[str, list[Value]]]:
    """Return the context and the feature lists of a `SequenceExample`, as `wire` reads it."""
    example = read_sequence_example(payload, strict=strict)
    return (
        {key: plain(feature) for key, feature in example.context.items()},
        {key: [plain(step) for step in steps] for key, steps in example.feature_lists.items()},
    )
