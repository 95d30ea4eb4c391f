"""A value of parsed JSON that knows its place, so that whoever reads it can say where a fault is.

In: what `json.loads` made of a file from anywhere. Out: values of the wanted type, or a `ManifestError` whose
`field` is the place, such as `$.splits.train.shards[3].bytes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from penstock.errors import ManifestError
from penstock.foundation.wording import is_finite, join_place, list_choices, show

_INT64_MAX = 2**63 - 1
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Node:
    """A value, where it stands, and the file that it stands in."""

    __slots__ = ("path", "place", "value")

    def __init__(self, value: Any, path: Path | None = None, place: str = "$") -> None:
        self.value = value
        self.path = path
        self.place = place

    def refuse(self, expected: str, got: str | None = None, advice: str = "") -> ManifestError:
        """Make the error for this value; `got` is the value itself if nothing is said of it."""
        if got is None:
            got = "nothing" if self.value is None else show(self.value)
        return ManifestError(
            f"manifest at {self.place}",
            path=self.path,
            field=self.place,
            expected=expected,
            got=got,
            advice=advice,
        )

    def child(self, key: str) -> Node:
        """Return a value of this object; that of a key which is not there is None."""
        return Node(self.object().get(key), self.path, join_place(self.place, key))

    def items(self) -> Iterator[tuple[str, Node]]:
        """Yield the keys and values of this object."""
        for key, value in self.object().items():
            yield key, Node(value, self.path, join_place(self.place, key))

    def elements(self) -> Iterator[Node]:
        """Yield the values of this array."""
        if not isinstance(self.value, list):
            raise self.refuse("an array")
        for i, value in enumerate(self.value):
            yield Node(value, self.path, f"{self.place}[{i}]")

    def object(self) -> Mapping[str, Any]:
        """Return this object."""
        if not isinstance(self.value, dict):
            raise self.refuse("an object")
        return self.value

    def optional_object(self) -> Mapping[str, Any] | None:
        """Return this object, or None for null."""
        return None if self.value is None else self.object()

    def text(self) -> str:
        """Return this string."""
        if not isinstance(self.value, str):
            raise self.refuse("a string")
        return self.value

    def sha256(self) -> str:
        """Return this SHA-256 digest in hex."""
        if not _SHA256.fullmatch(self.text()):
            raise self.refuse("64 hexadecimal digits, small letters")
        return self.text()

    def choice(self, choices: tuple[str, ...]) -> str:
        """Return this string, which must be one of some."""
        if self.value not in choices:
            raise self.refuse(list_choices(choices))
        return str(self.value)

    def flag(self) -> bool:
        """Return this true or false."""
        if not isinstance(self.value, bool):
            raise self.refuse("true or false")
        return self.value

    def number(self) -> float:
        """Return this finite number."""
        if not is_finite(self.value):
            raise self.refuse("a finite number")
        return self.value

    def count(self) -> int:
        """Return this whole number of at least 0 that 64 bits hold."""
        value = self.value
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _INT64_MAX:
            raise self.refuse("a whole number from 0 to 2^63 - 1")
        return value
