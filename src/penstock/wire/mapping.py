"""Maps from string to message: the field 1 of `Features` and of `FeatureLists`, read and written.

On the wire a map is a repeated field of entries, each a message with the key as field 1 and the value as 2.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from penstock.wire.error import WireError
from penstock.wire.field import Field, Span, WireType, expect_wire_type, read_fields, write_delimited

_ENTRY = 1
_KEY = 1
_VALUE = 2

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
            if part.number == _KEY:
                key = _read_key(part)
            elif part.number == _VALUE:
                value = read_value(expect_wire_type(part, "map value", WireType.LENGTH_DELIMITED), value)
        if strict and key in onto:
            raise WireError("duplicate_key", field.position, f"expected each key once, got {key!r} again")
        onto[key] = value


def write_map(values: Mapping[str, bytes]) -> bytes:
    """Return the fields of a map whose values are the bytes of messages, in the order given."""
    entries = []
    for key, value in values.items():
        content = write_delimited(_KEY, key.encode("utf-8")) + write_delimited(_VALUE, value)
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
