"""Splits and shard numbers from file names: group files into splits, and find missing files of a set.

In: paths. Out: paths by split, in the order train, validation, test; `all` for names without a split.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.errors import MissingShardError, PathError
from penstock.format.entry import SPLIT_OF_WORD, SPLIT_WORDS
from penstock.storage.store_path import AnyPath

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
    splits = {SPLIT_OF_WORD[word] for word in words if word in SPLIT_OF_WORD}
    if splits:
        return splits.pop() if len(splits) == 1 else "all"
    folder = path.parent.name.lower().removeprefix("split-")
    return SPLIT_OF_WORD.get(folder, "all")


def group_files(paths: Sequence[AnyPath], *, named_singly: bool) -> Mapping[str, list[AnyPath]]:
    """Group files into splits.

    `named_singly`: whether the caller named each file; if so, a set may be incomplete on purpose.
    """
    if not named_singly:
        check_complete(paths)
    groups: dict[str, list[AnyPath]] = defaultdict(list)
    for path in paths:
        groups[split_of(path)].append(path)
    order = [*SPLIT_WORDS, "all"]
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
