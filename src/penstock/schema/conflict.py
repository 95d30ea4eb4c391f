"""What the fields of one schema must not do to each other.

In: fields by name, each sound in itself. Out: the first conflict, as facts that an error is made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.foundation.wording import show
from penstock.schema.array import Tensor
from penstock.schema.field import Field


class Conflict(NamedTuple):
    """A field that cannot be beside the others: its name, the attribute at fault, and what to say."""

    name: str
    attribute: str
    expected: str
    got: str
    advice: str


def find_conflict(fields: Mapping[str, Field]) -> Conflict | None:
    """Return the first field that conflicts with those before it, or None."""
    single: dict[str, str] = {}
    keys: dict[tuple[bool, str], str] = {}
    for name, field in fields.items():
        if field.role in ("weight", "id"):
            first = single.setdefault(field.role, name)
            if first != name:
                got = f"a second one beside {show(first)}"
                return Conflict(
                    name, "role", f"one {field.role} field", got, "Give one of them another role."
                )
        if field.role == "weight" and field.kind == "bytes" and not isinstance(field, Tensor):
            return Conflict(name, "role", "numbers as weight", f"a {field.type_name} field", "")
        key = field.wire_key(name)
        owner = keys.setdefault((field.is_feature_list, key), name)
        if owner != name:
            got = f"{show(key)}, which is the key of {show(owner)} too"
            return Conflict(
                name, "key", "a key of its own", got, "Read the key once, and transform it later."
            )
    return None
