"""One thing that is wrong with a file.

In: what the walks found, or an error. Out: `Fault`, in words and as JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError
from penstock.read.damage import Damage


@dataclass(frozen=True)
class Fault:
    """A fault and its place.

    Attributes:
        path: The file.
        record: Number of the record, or None where the file as a whole is concerned.
        offset: The byte where the record begins, in the inflated bytes of a compressed file; or None.
        what: What is wrong, and what was expected and found instead.
    """

    path: Path
    record: int | None
    offset: int | None
    what: str

    @classmethod
    def from_damage(cls, path: Path, damage: Damage) -> Fault:
        """Name damage of a file's frames."""
        what = word_contrast(damage.what, damage.expected, damage.got)
        return cls(path, damage.record, damage.offset, what)

    @classmethod
    def from_error(cls, path: Path, error: OSError | PenstockError) -> Fault:
        """Name why a file as a whole cannot be used."""
        if isinstance(error, PenstockError):
            what = word_contrast(error.what, error.expected, error.got)
            return cls(path, error.record, error.offset, what)
        return cls(path, None, None, f"cannot be read ({error.strerror or error})")

    def to_json(self) -> dict[str, Any]:
        """Return the fault for `json.dumps`."""
        return {"file": str(self.path), "record": self.record, "offset": self.offset, "what": self.what}


def word_contrast(what: str, expected: object, got: object) -> str:
    """Write *what: expected X, got Y*, as far as there is an X and a Y."""
    if expected is None:
        return what
    return f"{what}: expected {expected}" if got is None else f"{what}: expected {expected}, got {got}"
