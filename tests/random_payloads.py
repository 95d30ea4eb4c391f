"""Random payloads that no writer makes and every reader must stand, the same for the same seed.

`random_payload` is valid protobuf in odd forms; `mutate` damages any bytes.
"""

import random
from collections.abc import Callable

from oracle_differences import DELIMITED, MESSAGES, WIRE_TYPES
from wire.fields import WireType

_KEYS = (b"", b"a", b"b", b"key", "naïve-π".encode(), b"\xff")
_KEY_WEIGHTS = (4, 10, 10, 10, 4, 1)


class Forms:
    """Writes random messages.

    Args:
        rng: Where all choices come from.
        oddity: How often a choice falls on an odd form, 0 to 1; 0 gives what an ordinary writer writes,
            except for repeated and missing parts.
        wrong_wire_types: Whether known fields may come in a wire type that is not theirs.
    """

    def __init__(self, rng: random.Random, oddity: float, wrong_wire_types: bool) -> None:
        self._rng = rng
        self._oddity = oddity
        self._wrong_wire_types = wrong_wire_types
        self._leaves: dict[str, Callable[[int], bytes]] = {
            "key": lambda number: self._delimited(number, rng.choices(_KEYS, _KEY_WEIGHTS)[0]),
            "bytes": lambda number: self._delimited(number, rng.randbytes(rng.randrange(6))),
            "floats": self._floats,
            "ints": self._ints,
        }

    def message(self, name: str) -> bytes:
        """Return a random message of the schema."""
        if name.endswith("Entry"):
            numbers = [1, 2] if not self._odd() else self._rng.choices([1, 2], k=self._rng.randrange(4))
        else:
            numbers = self._rng.choices(sorted(MESSAGES[name]), k=self._rng.choice((0, 1, 1, 1, 2, 3)))
        parts = []
        for number in numbers:
            parts.append(self._known(name, number))
            while self._odd(0.3):
                parts.append(self._skippable(self._rng.randrange(4, 30)))
        return b"".join(parts)

    def _odd(self, scale: float = 1.0) -> bool:
        return self._rng.random() < self._oddity * scale

    def _known(self, name: str, number: int) -> bytes:
        child = MESSAGES[name][number]
        if self._wrong_wire_types and self._odd(0.1):
            return self._skippable(number, WIRE_TYPES.get(child, DELIMITED))
        if child in self._leaves:
            return self._leaves[child](number)
        return self._delimited(number, self.message(child))

    def _floats(self, number: int) -> bytes:
        if self._odd():
            return self._tag(number, 5) + self._rng.randbytes(4)
        return self._delimited(number, self._rng.randbytes(4 * self._rng.randrange(4)))

    def _ints(self, number: int) -> bytes:
        if self._odd():
            return self._tag(number, 0) + self._int()
        return self._delimited(number, b"".join(self._int() for _ in range(self._rng.randrange(4))))

    def _int(self) -> bytes:
        value = self._rng.getrandbits(self._rng.choice((1, 7, 8, 31, 63, 64)))
        if self._odd(0.2):
            value |= self._rng.getrandbits(70)
        return self._varint(value, 10)

    def _skippable(self, number: int, avoid: frozenset[WireType] = frozenset(), depth: int = 0) -> bytes:
        """Return a field with random content, in any wire type but those to avoid."""
        choices = [code for code in (0, 1, 2, 3, 5) if code not in avoid and not (code == 3 and depth == 3)]
        wire_type = self._rng.choice(choices)
        tag = self._tag(number, wire_type)
        if wire_type == 0:
            return tag + self._int()
        if wire_type == 2:
            return self._delimited(number, self._rng.randbytes(self._rng.randrange(5)))
        if wire_type == 3:
            num_inner = self._rng.randrange(3)
            inner = (self._skippable(self._rng.randrange(9), depth=depth + 1) for _ in range(num_inner))
            return b"".join((tag, *inner, self._tag(number, 4)))
        return tag + self._rng.randbytes(8 if wire_type == 1 else 4)

    def _delimited(self, number: int, content: bytes) -> bytes:
        return self._tag(number, 2) + self._varint(len(content), 5) + content

    def _tag(self, number: int, wire_type: int) -> bytes:
        return self._varint(number << 3 | wire_type, 5)

    def _varint(self, value: int, max_bytes: int) -> bytes:
        """Return a varint, now and then longer than it need be."""
        groups = [value >> shift & 0x7F for shift in range(0, max(value.bit_length(), 1), 7)]
        if self._odd(0.3):
            groups += [0] * (self._rng.randint(len(groups), max_bytes) - len(groups))
        return bytes([group | 0x80 for group in groups[:-1]] + groups[-1:])


def random_payload(rng: random.Random, root: str) -> bytes:
    """Return a random payload of the message `root`; its keys may be invalid UTF-8, its syntax is valid."""
    oddity = rng.choice((0.0, 0.1, 0.4))
    return Forms(rng, oddity, wrong_wire_types=rng.random() < 0.5).message(root)


def mutate(rng: random.Random, payload: bytes) -> bytes:
    """Damage a payload in one to three places: a bit, a byte, an insertion, a deletion, a copy or a cut."""
    data = bytearray(payload)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        place = rng.randrange(len(data) + 1)
        width = rng.randint(1, 4)
        kind = rng.choice(("bit", "bit", "byte", "insert", "delete", "copy", "cut"))
        if kind in ("bit", "byte") and place < len(data):
            data[place] = data[place] ^ 1 << rng.randrange(8) if kind == "bit" else rng.randrange(256)
        elif kind == "insert":
            data[place:place] = rng.randbytes(width)
        elif kind == "delete":
            del data[place : place + width]
        elif kind == "copy":
            source = rng.randrange(len(data) + 1)
            data[place:place] = data[source : source + 4 * width]
        elif kind == "cut" and rng.random() < 0.3:
            del data[place:]
    return bytes(data)
