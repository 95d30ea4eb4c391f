"""The part of a payload that a plan reads: the map entries with the selected keys, and what surrounds them.

The plain readers read every value. Without the other entries, they must find what the core finds.
"""

from collections.abc import Collection, Iterator

from wire.fields import Field, Span, WireError, WireType, expect_wire_type, read_fields, write_delimited

_MAPS = {"Example": (1,), "SequenceExample": (1, 2)}


def select_entries(
    payload: bytes, root: str, keys: Collection[str], list_keys: Collection[str] = ()
) -> bytes:
    """Return a payload without the entries of other keys.

    Raises:
        WireError: The payload, a map in it or an entry is malformed. Values are not looked at.
    """
    out = bytearray()
    for part in read_fields(Span.whole(payload)):
        if part.number not in _MAPS[root]:
            out += payload[part.position : part.stop]
            continue
        wanted = keys if part.number == 1 else list_keys
        kept = (payload[a:b] for a, b, key in _entries(part) if key is None or key in wanted)
        out += write_delimited(part.number, b"".join(kept))
    return bytes(out)


def list_keys_of(payload: bytes, root: str) -> tuple[list[str], list[str]]:
    """Return the keys of all features and of all feature lists, as far as the payload can be read."""
    found: dict[int, dict[str, None]] = {1: {}, 2: {}}
    try:
        for part in read_fields(Span.whole(payload)):
            if part.number in _MAPS[root]:
                for _, _, key in _entries(part):
                    found[part.number][key or ""] = None
    except WireError:
        pass
    return list(found[1]), list(found[2])


def _entries(part: Field) -> Iterator[tuple[int, int, str | None]]:
    """Yield start, stop and key of every field of a map; the key is None if the field is no entry."""
    for field in read_fields(expect_wire_type(part, "map", WireType.LENGTH_DELIMITED)):
        if field.number != 1:
            yield field.position, field.stop, None
            continue
        key = ""
        for each in read_fields(expect_wire_type(field, "map entry", WireType.LENGTH_DELIMITED)):
            if each.number in (1, 2):
                content = expect_wire_type(each, "key or value", WireType.LENGTH_DELIMITED)
                if each.number == 1:
                    key = _text(content)
        yield field.position, field.stop, key


def _text(content: Span) -> str:
    try:
        return content.tobytes().decode()
    except UnicodeDecodeError:
        raise WireError("invalid_utf8", content.start, "map key: expected UTF-8") from None
