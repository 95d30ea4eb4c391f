"""How to load: every choice with its default, checked when made.

In: what a caller chose. Out: `LoadOptions`.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, SupportsIndex, TypeAlias, TypedDict, Unpack, get_args

from penstock.errors import OptionError
from penstock.foundation.wording import check_keywords, list_choices, show

Shuffling: TypeAlias = Literal["block", "global"]
Last: TypeAlias = Literal["short", "drop", "pad"]
Weighing: TypeAlias = str | Mapping[str, Mapping[Any, float]]


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """Choices of a loader.

    Attributes:
        batch_size: Records of a global batch, all ranks together; at most so many, beside `max_tokens`.
        shuffle: True is a true shuffle of the whole split, another in each epoch. "block" shuffles blocks of
            neighbours, and records within a window of blocks, for storage where random reads are dear; a
            split of more than eight times the memory is read so under True as well (not by several ranks,
            whose memories may differ; "global" never is).
        seed: Of everything random.
        last: What becomes of the records that do not fill a batch at the end of an epoch: a "short" batch,
            "drop" them, or "pad" the batch with records of weight 0, for models that need one shape.
        repeat: How many epochs one iteration covers; None is forever. Batches never mix epochs.
        filter: Which records to take, as an expression over fields: `age < 3 and breed == "siamese"`.
        skip: How many of those to leave out at the beginning, in the order in which they are stored.
        take: How many of the rest to take; None is all.
        part: Two shares such as (0, 0.9): take the records whose random number, which only their place in the
            split decides, lies between them. (0.9, 1) holds out the others, whatever order they are in.
        shard: (rank, world): which part of every global batch this process takes.
        weights: Draw records with replacement, by weight: the name of a field that holds the weights, or
            `{"breed": {"siamese": 5.0}}` for weights by the values of a field, 1 where none is said.
        bucket_by: A field by whose length records are put together, so that little is padded.
        max_tokens: How many values a batch may have of that field, padding included.
        bucket_records: Within how many records of the order buckets are formed; 64 batches, if not said.
        block_records: How many neighbours are a block; a megabyte, if not said.
        window_blocks: Within how many blocks records are shuffled.
        num_threads: How many threads make batches; as many as there are cores, if not said. 0 makes them in
            the caller's thread. The batches are the same.
        prefetch_bytes: How large the batches that wait for the consumer may be together. Two always may.
        cache: "memory", or a folder for a file: keeps decoded columns for later epochs, images as pixels of
            the size that they are fed in.
        cache_bytes: How large that cache may be; a quarter of the memory, if not said. What does not fit is
            read anew in each epoch.
        augment: Whether images are changed at random, as the pipeline says: for training. If not said, for a
            split called "train" alone, and for files of no split if they are shuffled.

    Example:
        >>> LoadOptions(batch_size=64, shuffle=True, take=1000).take
        1000
    """

    batch_size: int = 32
    shuffle: bool | Shuffling = False
    seed: int = 0
    last: Last = "short"
    repeat: int | None = 1
    filter: str | None = None
    skip: int = 0
    take: int | None = None
    part: tuple[float, float] | None = None
    shard: tuple[int, int] = (0, 1)
    weights: Weighing | None = None
    bucket_by: str | None = None
    max_tokens: int | None = None
    bucket_records: int | None = None
    block_records: int | None = None
    window_blocks: int = 64
    num_threads: int | None = None
    prefetch_bytes: int = 64 << 20
    cache: str | os.PathLike[str] | None = None
    cache_bytes: int | None = None
    augment: bool | None = None

    def __post_init__(self) -> None:
        for each in fields(self):  # whole numbers of NumPy are as good as others
            value = getattr(self, each.name)
            if not isinstance(value, int) and hasattr(value, "__index__"):
                object.__setattr__(self, each.name, operator.index(value))
        _check_number("batch_size", self.batch_size, 1)
        if not isinstance(self.shuffle, bool) and self.shuffle not in get_args(Shuffling):
            raise OptionError("shuffle", expected="True, False, 'block' or 'global'", got=show(self.shuffle))
        _check_number("seed", self.seed, 0, 2**64 - 1)
        if self.last not in get_args(Last):
            raise OptionError("last", expected=list_choices(get_args(Last)), got=show(self.last))
        for name in ("skip", "prefetch_bytes"):
            _check_number(name, getattr(self, name), 0)
        _check_number("window_blocks", self.window_blocks, 1)
        for name in ("repeat", "max_tokens", "bucket_records", "block_records"):
            if getattr(self, name) is not None:
                _check_number(name, getattr(self, name), 1)
        for name in ("take", "num_threads", "cache_bytes"):
            if getattr(self, name) is not None:
                _check_number(name, getattr(self, name), 0)
        if self.augment is not None and not isinstance(self.augment, bool):
            raise OptionError("augment", expected="True, False or None", got=show(self.augment))
        self._check_strings()
        self._check_part()
        self._check_shard()
        self._check_buckets()

    @property
    def rank(self) -> int:
        """Which part of every batch this process takes."""
        return self.shard[0]

    @property
    def world(self) -> int:
        """How many processes share every batch."""
        return self.shard[1]

    @property
    def threads(self) -> int:
        """How many threads make batches."""
        if self.num_threads is not None:
            return self.num_threads
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def _check_strings(self) -> None:
        for name in ("filter", "bucket_by"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise OptionError(name, expected="a string", got=show(value))
        if self.cache is not None and not isinstance(self.cache, str | os.PathLike):
            raise OptionError("cache", expected="'memory' or the path of a folder", got=show(self.cache))
        if self.weights is None or isinstance(self.weights, str):
            return
        if not isinstance(self.weights, Mapping) or len(self.weights) != 1:
            expected = "the name of a field, or {field: {value: weight}}"
            raise OptionError("weights", expected=expected, got=show(self.weights))

    def _check_part(self) -> None:
        if self.part is None:
            return
        is_pair = isinstance(self.part, tuple | list) and len(self.part) == 2
        if not is_pair or not all(isinstance(each, int | float) for each in self.part):
            raise OptionError("part", expected="two shares, such as (0, 0.9)", got=show(self.part))
        if not 0 <= self.part[0] < self.part[1] <= 1:
            raise OptionError("part", expected="shares from 0 to 1, the lower one first", got=show(self.part))

    def _check_shard(self) -> None:
        is_pair = isinstance(self.shard, tuple | list) and len(self.shard) == 2
        if not is_pair or any(isinstance(each, bool) or not isinstance(each, int) for each in self.shard):
            raise OptionError("shard", expected="(rank, world)", got=show(self.shard))
        if not 0 <= self.shard[0] < self.shard[1]:
            raise OptionError("shard", expected="a rank from 0 to world − 1", got=show(self.shard))
        if self.batch_size < self.world:
            advice = "It is the size of the global batch, of which every rank takes a part."
            expected = f"at least {self.world}, a record a rank"
            raise OptionError("batch_size", expected=expected, got=self.batch_size, advice=advice)

    def _check_buckets(self) -> None:
        if self.bucket_by is None:
            for name in ("max_tokens", "bucket_records"):
                if getattr(self, name) is not None:
                    advice = "Name the field whose lengths count: bucket_by='tokens'."
                    raise OptionError(name, expected="a bucket_by beside it", got="none", advice=advice)
        elif self.last != "short":
            advice = "Buckets have short batches everywhere: leave `last` out."
            raise OptionError("last", expected="'short' beside bucket_by", got=show(self.last), advice=advice)


class LoadChoices(TypedDict, total=False):
    """The keywords of `Split.loader` beside those that it names itself."""

    last: Last
    repeat: int | None
    filter: str | None
    skip: int
    take: int | None
    part: tuple[float, float] | None
    shard: tuple[int, int]
    weights: Weighing | None
    bucket_by: str | None
    max_tokens: int | None
    bucket_records: int | None
    block_records: int | None
    window_blocks: int
    num_threads: int | None
    prefetch_bytes: int
    cache: str | os.PathLike[str] | None
    cache_bytes: int | None
    augment: bool | None


def make_options(
    batch_size: int, shuffle: bool | Shuffling, seed: int, **choices: Unpack[LoadChoices]
) -> LoadOptions:
    """Return the options for some keywords.

    Raises:
        OptionError: There is no such option, or it has a value that it cannot have.
    """
    check_keywords(choices, (each.name for each in fields(LoadOptions)), "loader")
    return LoadOptions(batch_size=batch_size, shuffle=shuffle, seed=seed, **choices)


def check_whole(name: str, value: object) -> int:
    """Return a whole number of at least 0.

    Raises:
        OptionError: It is something else.
    """
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or operator.index(value) < 0:
        raise OptionError(name, expected="a whole number of at least 0", got=show(value))
    return operator.index(value)


def _check_number(name: str, value: object, least: int, most: int | None = None) -> None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or value < least or (most is not None and value > most):  # type: ignore[operator]
        at_most = "" if most is None else f" and at most {most}"
        raise OptionError(name, expected=f"a whole number of at least {least}{at_most}", got=show(value))
