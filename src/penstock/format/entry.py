"""The entries of a manifest for shards and splits, and the same information in file names.

In: name, size and hash of written files, or parsed JSON. Out: frozen entries, and their JSON form. File names
of shards cannot point outside their folder. Files without a manifest are grouped into splits by their names,
in the order train, validation, test (`all` for names without a split).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from penstock.errors import MissingShardError, PathError
from penstock.foundation.json_form import INT64_MAX, SHA256, JsonValue
from penstock.storage.store_path import AnyPath

# Words for each split in file names and values; the canonical name first.
_SPLIT_WORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "val", "valid", "dev", "eval"),
    "test": ("test", "testing"),
}
_SPLIT_OF_WORD = {word: split for split, words in _SPLIT_WORDS.items() for word in words}
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
        if not _NAME.fullmatch(name.text()):  # such a name stays in its folder on any system
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


def canonical_split(word: str) -> str:
    """Return the canonical name of a split for a synonym such as "val"; otherwise the word itself.

    Example:
        >>> canonical_split("Val"), canonical_split("fold_3")
        ('validation', 'fold_3')
    """
    return _SPLIT_OF_WORD.get(word.lower(), word)


_WORD = re.compile(r"[A-Za-z]+")
_SHARD = re.compile(r"^(?P<stem>.*?)(?P<number>\d+)-of-(?P<count>\d+)(?P<rest>.*)$")


@dataclass(frozen=True)
class ShardName:
    """The parts of `STEM00003-of-00012REST`."""

    stem: str
    number: int
    count: int
    rest: str
    width: int
    count_width: int

    @classmethod
    def parse(cls, name: str) -> ShardName | None:
        """Parse a file name; return None if it is not numbered."""
        match = _SHARD.match(name)
        if match is None:
            return None
        number, count = match["number"], match["count"]
        return cls(match["stem"], int(number), int(count), match["rest"], len(number), len(count))

    def spell(self, number: int) -> str:
        """Return the name of another shard of the same set."""
        return f"{self.stem}{number:0{self.width}}-of-{self.count:0{self.count_width}}{self.rest}"


def split_of(path: AnyPath) -> str:
    """Return the split named by a whole word of the file name, else by the folder (`train`), else "all".

    Example:
        >>> from pathlib import Path
        >>> split_of(Path("pets/data.train.tfrecord"))
        'train'
    """
    words = map(str.lower, _WORD.findall(path.name))
    splits = {_SPLIT_OF_WORD[word] for word in words if word in _SPLIT_OF_WORD}
    if splits:
        return splits.pop() if len(splits) == 1 else "all"
    folder = path.parent.name.lower().removeprefix("split-")
    return _SPLIT_OF_WORD.get(folder, "all")


def group_files(paths: Sequence[AnyPath], *, named_singly: bool) -> Mapping[str, list[AnyPath]]:
    """Group files into splits; a set may be incomplete only if the caller named each file."""
    if not named_singly:
        check_complete(paths)
    groups: dict[str, list[AnyPath]] = defaultdict(list)
    for path in paths:
        groups[split_of(path)].append(path)
    order = [*_SPLIT_WORDS, "all"]
    return {name: groups[name] for name in order if name in groups}


def check_complete(paths: Iterable[AnyPath]) -> None:
    """Check numbered sets for gaps; numbers count from 0, or from 1 if the last number equals the count."""
    sets: dict[tuple[AnyPath, ShardName], dict[int, ShardName]] = defaultdict(dict)
    for path in paths:
        name = ShardName.parse(path.name)
        if name is not None:
            # The width of the number is ignored: 9 and 10 of 12 belong to one set.
            sets[path.parent, replace(name, number=0, width=0)][name.number] = name
    for (folder, _), found in sets.items():
        _check_set(folder, found)


def _check_set(folder: AnyPath, found: Mapping[int, ShardName]) -> None:
    some = min(found.values(), key=lambda name: name.width)
    first = 1 if some.count in found and 0 not in found else 0
    last = first + some.count - 1
    if max(found) > last:
        raise PathError(
            "shard number is not below the count of shards",
            path=folder / found[max(found)].spell(max(found)),
            expected=f"at most {last}",
            got=max(found),
            advice="Rename the file.",
        )
    num_missing = some.count - len(found)
    if num_missing:
        # Only the first one is named: the count in a name may be billions.
        missing = next(number for number in range(first, last + 1) if number not in found)
        more = f" and {num_missing - 1} more" if num_missing > 1 else ""
        raise MissingShardError(
            f"shard {some.spell(missing)} is missing{more}",
            path=folder,
            expected=f"{some.count} files",
            got=f"{len(found)}",
            advice="Restore the missing file, or pass the existing files one by one.",
        )
