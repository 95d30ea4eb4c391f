"""Values of parsed JSON or YAML that know their path, so that every error can name it.

In: the output of a parser, for a file from anywhere. Out: values of the expected type, or an error whose
`field` is the path of the value, such as `$.splits.train.shards[3].bytes`. `dump_value` is the inverse.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, TypeVar, cast

from penstock.errors import PenstockError, SchemaError
from penstock.foundation.wording import find_nearest, is_finite, is_utf8, join_path, list_choices, show

_Choice = TypeVar("_Choice", bound=str)

INT64_MAX: Final = 2**63 - 1
_MAX_DEPTH: Final = 8
_NON_FINITE: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Document:
    """What a value was read from.

    Attributes:
        name: Name of the document in messages, such as "manifest".
        error: Class of the errors.
        path: Path of the file, if there is one.
        root: Path of the topmost value, with which all other paths begin.
        advice: Advice for any fault without specific advice.
    """

    name: str
    error: type[PenstockError] = SchemaError
    path: Any = None
    root: str = "$"
    advice: str = ""


class JsonValue:
    """A value of parsed JSON, with its path in a document.

    Example:
        >>> schema = JsonValue({"fields": {"age": {"type": 7}}}, Document("schema"))
        >>> schema.child("fields").child("age").child("type").text()
        Traceback (most recent call last):
        penstock.errors.SchemaError: schema at $.fields.age.type: expected a string, got 7.
    """

    __slots__ = ("_key", "_parent", "document", "value")

    def __init__(
        self,
        value: Any,
        document: Document,
        parent: JsonValue | None = None,
        key: str | int | None = None,
    ) -> None:
        self.value = value
        self.document = document
        self._parent = parent
        self._key = key

    @property
    def location(self) -> str:
        """Path of this value in its document; it is made only for errors."""
        if self._parent is None:
            return self.document.root
        above = self._parent.location
        return f"{above}[{self._key}]" if isinstance(self._key, int) else join_path(above, str(self._key))

    @property
    def shown(self) -> str:
        """This value in a few words."""
        return "nothing" if self.value is None else show(self.value)

    def change(self, value: Any, *, advice: str = "") -> JsonValue:
        """Return another value at the same path; `advice` is what to do about faults without advice."""
        document = replace(self.document, advice=advice) if advice else self.document
        return JsonValue(value, document, self._parent, self._key)

    def refuse(
        self, expected: object, got: object = None, advice: str = "", *, at: str = ""
    ) -> PenstockError:
        """Make the error for this value.

        `got`: description of the actual value; this value, if not given. `at`: rest of the path, where the
        fault is inside this value: `.shape[1]`.
        """
        location = f"{self.location}{at}".removeprefix("." if not self.document.root else "")
        return self.document.error(
            f"{self.document.name} at {location}" if location else self.document.name,
            path=self.document.path,
            field=location or None,
            expected=expected,
            got=self.shown if got is None else got,
            advice=advice or self.document.advice,
        )

    def child(self, key: str) -> JsonValue:
        """Return the value of a key of this object; it is null if the key does not exist."""
        if not isinstance(self.value, Mapping):
            raise self.refuse("an object")
        return JsonValue(self.value.get(key), self.document, self, key)

    def children(self, *allowed: str) -> dict[str, JsonValue]:
        """Return the values of this object by key; only keys in `allowed`, if given."""
        document = self.document
        return {key: JsonValue(item, document, self, key) for key, item in self.object(*allowed).items()}

    def elements(self) -> Iterator[JsonValue]:
        """Yield the values of this array."""
        if not isinstance(self.value, list | tuple):
            raise self.refuse("an array")
        for i, value in enumerate(self.value):
            yield JsonValue(value, self.document, self, i)

    def object(self, *allowed: str) -> Mapping[str, Any]:
        """Return this object, whose keys are strings; only keys in `allowed`, if given."""
        if not isinstance(self.value, Mapping):
            raise self.refuse("an object")
        for key in self.value:
            if not isinstance(key, str):
                raise self.refuse("keys that are strings", show(key), "Put it into quotes.")
            if allowed and key not in allowed:
                raise self._refuse_key(key, allowed)
        return self.value

    def optional_object(self) -> Mapping[str, Any] | None:
        """Return this object, or None for null."""
        return None if self.value is None else self.object()

    def _refuse_key(self, key: str, allowed: Collection[str]) -> PenstockError:
        nearest = find_nearest(key, allowed)
        advice = "" if nearest is None else f"Did you mean {nearest!r}?"
        unknown = JsonValue(None, self.document, self, key)
        return unknown.refuse(f"only {list_choices(allowed)}", "an unknown key", advice)

    def text(self) -> str:
        """Return this string, which UTF-8 can hold: JSON can also write a half of a surrogate pair."""
        if not isinstance(self.value, str) or not is_utf8(self.value):
            raise self.refuse("a string")
        return self.value

    def sha256(self) -> str:
        """Return this SHA-256 digest in hexadecimal digits."""
        if not SHA256.fullmatch(self.text()):
            raise self.refuse("64 hexadecimal digits in lower case")
        return self.text()

    def choice(self, choices: Collection[_Choice]) -> _Choice:
        """Return this string, which must be one of `choices`."""
        if not isinstance(self.value, str) or self.value not in choices:
            nearest = find_nearest(self.value, choices) if isinstance(self.value, str) else None
            raise self.refuse(list_choices(choices), advice=f"Did you mean {nearest!r}?" if nearest else "")
        return cast("_Choice", self.value)

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

    def any_number(self) -> float:
        """Return this number; NaN and infinity are objects such as `{"float": "nan"}`."""
        if not isinstance(self.value, Mapping):
            return self.number()
        name = self.children("float").get("float") or self.child("float")
        return _NON_FINITE[name.choice(_NON_FINITE)]

    def count(self) -> int:
        """Return this integer of at least 0 that 64 bits hold."""
        return self.integer(0, INT64_MAX)

    def integer(self, least: int, most: int) -> int:
        """Return this integer, which must be between two others, or equal to one."""
        value = self.value
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            limit = "2^63 - 1" if most == INT64_MAX else f"{most:,}"
            raise self.refuse(f"an integer from {least} to {limit}")
        return value

    def version(self, newest: int) -> int:
        """Return this number of a version, which this version of Penstock must know."""
        value = self.value
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.refuse(newest)
        if value > newest:
            advice = f"A newer version of Penstock wrote this {self.document.name}: upgrade Penstock."
            raise self.refuse(f"at most {newest}", advice=advice)
        return value

    def base64(self) -> bytes:
        """Return the bytes of this object, which is `{"base64": "…"}`."""
        encoded = self.children("base64").get("base64") or self.child("base64")
        try:
            return base64.b64decode(encoded.text().encode("ascii"), validate=True)
        except (UnicodeEncodeError, binascii.Error):
            raise encoded.refuse("base64") from None

    def entry(self) -> str | bytes | int:
        """Return this entry of a vocabulary: a string, bytes or an integer of 64 bits."""
        if isinstance(self.value, Mapping):
            return self.base64()
        if isinstance(self.value, int):
            return self.integer(-INT64_MAX - 1, INT64_MAX)
        if not isinstance(self.value, str):
            raise self.refuse("a string, bytes or an integer")
        return self.text()

    def any_value(self, depth: int = 0) -> Any:
        """Return whatever `dump_value` has written; arrays are returned as tuples."""
        if isinstance(self.value, list | tuple):
            # Since Python 3.12 json.loads reads deeper lists than a recursive function can visit.
            if depth == _MAX_DEPTH:
                raise self.refuse(f"at most {_MAX_DEPTH} nested arrays", "more")
            return tuple(item.any_value(depth + 1) for item in self.elements())
        if not isinstance(self.value, Mapping):
            return self.value
        return self.any_number() if "float" in self.object("base64", "float") else self.base64()


Load: TypeAlias = Callable[[JsonValue], Any]
"""Reads one value, such as `JsonValue.count`."""


def choice_of(*choices: str) -> Load:
    """Return a reader of one of some strings."""
    return lambda value: value.choice(choices)


def list_of(load: Load) -> Load:
    """Return a reader of arrays, which are returned as tuples."""
    return lambda value: tuple(load(item) for item in value.elements())


def optional(load: Load) -> Load:
    """Return a reader of a value that may be null."""
    return lambda value: None if value.value is None else load(value)


def dump_value(value: Any) -> Any:
    """Return a value as JSON has it: a tuple as a list, bytes as base64, NaN and infinity by name."""
    if isinstance(value, tuple | list):
        # Finite numbers, the usual items, need no call: a table can have 100,000 columns.
        return [item if type(item) is float and math.isfinite(item) else dump_value(item) for item in value]
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}  # JSON has no such numbers, and parsers differ on `NaN`
    return value
