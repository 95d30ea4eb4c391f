"""Where Penstock departs from protobuf on purpose: finds the places in a payload, and takes them out.

The rest must be read alike by both; so a difference is accepted for its one reason and no other.
"""

from dataclasses import dataclass

from wire.fields import Field, Span, WireType, read_fields, write_varint

DELIMITED = frozenset({WireType.LENGTH_DELIMITED})

MESSAGES: dict[str, dict[int, str]] = {
    "Example": {1: "Features"},
    "SequenceExample": {1: "Features", 2: "FeatureLists"},
    "Features": {1: "FeaturesEntry"},
    "FeaturesEntry": {1: "key", 2: "Feature"},
    "FeatureLists": {1: "FeatureListsEntry"},
    "FeatureListsEntry": {1: "key", 2: "FeatureList"},
    "FeatureList": {1: "Feature"},
    "Feature": {1: "BytesList", 2: "FloatList", 3: "Int64List"},
    "BytesList": {1: "bytes"},
    "FloatList": {1: "floats"},
    "Int64List": {1: "ints"},
}
"""What each field of each message holds: another message, or one of the four leaves."""

WIRE_TYPES: dict[str, frozenset[WireType]] = {
    "floats": DELIMITED | {WireType.FIXED32},
    "ints": DELIMITED | {WireType.VARINT},
}
"""The wire types that are right for a field; length-delimited alone where nothing is said."""


@dataclass
class Differences:
    """The places in one payload that are read differently.

    Attributes:
        wrong_wire_types: Known fields in a wire type that is not theirs. Penstock refuses the payload;
            protobuf skips the field.
        odd_entries: Map entries that hold an unknown field (or one of a wrong wire type, which protobuf
            takes for unknown). Penstock keeps the entry; protobuf drops it.
    """

    wrong_wire_types: int = 0
    odd_entries: int = 0


def without_skipped(payload: bytes, root: str, *, drop_odd_entries: bool) -> tuple[bytes, Differences]:
    """Rewrite a payload without the fields that a reader skips: unknown ones and fields of a wrong wire type.

    Args:
        payload: A payload that has no fault in its syntax.
        root: Name of its message.
        drop_odd_entries: Take out the map entries that protobuf drops, too.

    Returns:
        The payload, rewritten, and what was found in it.
    """
    found = Differences()
    return _rewrite(Span.whole(payload), root, found, drop_odd_entries)[0], found


def _rewrite(message: Span, name: str, found: Differences, drop: bool) -> tuple[bytes, bool]:
    """Return the message without skipped fields, and whether there were any."""
    out = bytearray()
    skipped = False
    for part in read_fields(message):
        child = MESSAGES[name].get(part.number)
        if child is None:
            skipped = True
        elif part.wire_type not in WIRE_TYPES.get(child, DELIMITED):
            skipped = True
            found.wrong_wire_types += 1
        elif child not in MESSAGES:
            out += part.value.data[part.position : part.stop]
        else:
            out += _rewrite_child(part, child, found, drop)
    return bytes(out), skipped


def _rewrite_child(part: Field, name: str, found: Differences, drop: bool) -> bytes:
    content, skipped = _rewrite(part.value, name, found, drop)
    if skipped and name.endswith("Entry"):
        found.odd_entries += 1
        if drop:
            return b""
    return write_varint(part.number << 3 | part.wire_type) + write_varint(len(content)) + content
