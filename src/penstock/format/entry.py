"""The entries of a manifest for one shard and for one split.

In: name, size and hash of written files, or parsed JSON. Out: frozen entries, and their JSON form. File names
of shards cannot point outside their folder.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from penstock.foundation.json_form import INT64_MAX, SHA256, JsonValue

# Words for each split in file names and values; the canonical name first.
SPLIT_WORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "val", "valid", "dev", "eval"),
    "test": ("test", "testing"),
}
SPLIT_OF_WORD = {word: split for split, words in SPLIT_WORDS.items() for word in words}
_NAME = re.compile(r"(?!\.)[A-Za-z0-9._-]+")


class ShardEntry(NamedTuple):
    """One file of a split.

    Attributes:
        name: Name of the file, in the folder of the manifest.
        num_records: Number of records.
        num_bytes: Size on disk.
        sha256: SHA-256 of the file, in hex.
    """

    name: str
    num_records: int
    num_bytes: int
    sha256: str

    @classmethod
    def from_json(cls, value: JsonValue) -> ShardEntry:
        """Return the entry of a JSON form by `to_json`."""
        name = value.child("file")
        if not is_file_name(name.text()):
            raise name.refuse("a name of letters, digits, '.', '_' and '-' that does not begin with '.'")
        sha256 = value.child("sha256").sha256()
        return cls(name.text(), value.child("records").count(), value.child("bytes").count(), sha256)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of the entry."""
        return {
            "file": self.name,
            "records": self.num_records,
            "bytes": self.num_bytes,
            "sha256": self.sha256,
        }


@dataclass(frozen=True)
class SplitEntry:
    """The files of one split, in order."""

    shards: tuple[ShardEntry, ...]

    @property
    def num_records(self) -> int:
        """Number of records in all shards."""
        return sum(shard.num_records for shard in self.shards)

    @property
    def num_bytes(self) -> int:
        """Size of all shards on disk, in bytes."""
        return sum(shard.num_bytes for shard in self.shards)

    @classmethod
    def from_json(cls, value: JsonValue) -> SplitEntry:
        """Return the entry of a JSON form by `to_json`."""
        shards = value.child("shards")
        entries = _load_valid(shards.value)
        if entries is None:  # entry by entry, up to the one that is not valid
            entries = tuple(ShardEntry.from_json(each) for each in shards.elements())
        split = cls(entries)
        for key, total in (("records", split.num_records), ("bytes", split.num_bytes)):
            stated = value.child(key)
            if stated.count() != total:
                raise stated.refuse(f"{total}, the sum over its shards")
        return split

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of the entry."""
        return {
            "records": self.num_records,
            "bytes": self.num_bytes,
            "shards": [shard.to_json() for shard in self.shards],
        }


def _load_valid(values: Any) -> tuple[ShardEntry, ...] | None:
    """Return the entries of a split, or None if one of them is not valid.

    Each attribute is checked for all entries at once: of 100,000 entries, this takes 0.1 s instead of 0.6 s.
    """
    if not isinstance(values, Sequence) or set(map(type, values)) != {dict}:
        return None
    names, records, sizes, digests = (
        [each.get(key) for each in values] for key in ("file", "records", "bytes", "sha256")
    )
    counts = records + sizes
    is_typed = set(map(type, names)) | set(map(type, digests)) == {str} and set(map(type, counts)) == {int}
    if not is_typed or min(counts) < 0 or max(counts) > INT64_MAX:
        return None
    if not all(map(_NAME.fullmatch, names)) or not all(map(SHA256.fullmatch, digests)):
        return None
    make = partial(tuple.__new__, ShardEntry)  # in one call, without a Python function per entry
    return tuple(map(make, zip(names, records, sizes, digests, strict=True)))


def is_file_name(text: str) -> bool:
    """Return whether a text is a valid file name of a data set: it stays in its folder on any system."""
    return _NAME.fullmatch(text) is not None


def canonical_split(word: str) -> str:
    """Return the canonical name of a split for a synonym such as "val"; otherwise the word itself.

    Example:
        >>> canonical_split("Val"), canonical_split("fold_3")
        ('validation', 'fold_3')
    """
    return SPLIT_OF_WORD.get(word.lower(), word)
