"""What a manifest says of one shard, and of one split.

In: the facts of files that were written, or parsed JSON. Out: frozen entries, and their JSON. Names of shards
cannot leave their folder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from penstock.foundation.json_form import JsonValue

# Whole words of a name; the canonical name first.
SPLIT_WORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "val", "valid", "dev", "eval"),
    "test": ("test", "testing"),
}
SPLIT_OF_WORD = {word: split for split, words in SPLIT_WORDS.items() for word in words}
_NAME = re.compile(r"(?!\.)[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class ShardEntry:
    """One file of a split.

    Attributes:
        name: Of the file, in the folder of the manifest.
        num_records: How many records it holds.
        num_bytes: Its size on disk.
        sha256: Of its bytes on disk, in hex.
    """

    name: str
    num_records: int
    num_bytes: int
    sha256: str

    @classmethod
    def from_json(cls, value: JsonValue) -> ShardEntry:
        """Read what `to_json` makes.

        Raises:
            ManifestError: It is something else.
        """
        name = value.child("file")
        if not is_file_name(name.text()):
            raise name.refuse("a name of letters, digits, '.', '_' and '-' that does not begin with '.'")
        sha256 = value.child("sha256").sha256()
        return cls(name.text(), value.child("records").count(), value.child("bytes").count(), sha256)

    def to_json(self) -> dict[str, Any]:
        """Return the entry for `json.dumps`."""
        return {
            "file": self.name,
            "records": self.num_records,
            "bytes": self.num_bytes,
            "sha256": self.sha256,
        }


@dataclass(frozen=True)
class SplitEntry:
    """The files of one split, in their order."""

    shards: tuple[ShardEntry, ...]

    @property
    def num_records(self) -> int:
        """The records of all its shards."""
        return sum(shard.num_records for shard in self.shards)

    @property
    def num_bytes(self) -> int:
        """What all its shards take on disk."""
        return sum(shard.num_bytes for shard in self.shards)

    @classmethod
    def from_json(cls, value: JsonValue) -> SplitEntry:
        """Read what `to_json` makes.

        Raises:
            ManifestError: It is something else, or its sums are not those of its shards.
        """
        split = cls(tuple(ShardEntry.from_json(each) for each in value.child("shards").elements()))
        for key, total in (("records", split.num_records), ("bytes", split.num_bytes)):
            stated = value.child(key)
            if stated.count() != total:
                raise stated.refuse(f"{total}, the sum over its shards")
        return split

    def to_json(self) -> dict[str, Any]:
        """Return the entry for `json.dumps`."""
        return {
            "records": self.num_records,
            "bytes": self.num_bytes,
            "shards": [shard.to_json() for shard in self.shards],
        }


def is_file_name(text: str) -> bool:
    """Tell whether a text can be the name of a file of a data set: it leads nowhere else, on any system."""
    return _NAME.fullmatch(text) is not None


def canonical_split(word: str) -> str:
    """Return the usual name of a split that is called by another word; else the word itself.

    Example:
        >>> canonical_split("Val"), canonical_split("fold_3")
        ('validation', 'fold_3')
    """
    return SPLIT_OF_WORD.get(word.lower(), word)
