"""Options of a loader with their defaults, checked when made.

In: keyword arguments of the caller. Out: `LoadOptions`.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, SupportsIndex, TypeAlias, TypedDict, Unpack, get_args

from penstock.errors import OptionError
from penstock.foundation.option_checks import OptionChecks
from penstock.foundation.process import count_cores
from penstock.foundation.wording import check_keywords, show
from penstock.storage.store_path import take_local_path

Shuffling: TypeAlias = Literal["block", "global"]
Last: TypeAlias = Literal["short", "drop", "pad"]
Weighing: TypeAlias = str | Mapping[str, Mapping[Any, float]]


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """Options of a loader; `Split.loader` takes them as keyword arguments.

    Attributes:
        batch_size: Number of records per global batch, over all ranks; with `max_tokens`, the maximum number.
        shuffle: False keeps the stored order. True shuffles the whole split, differently in each epoch.
            "block" shuffles blocks of neighbouring records, and records within a window of blocks, for
            storage where random reads are expensive. True uses "block" if the split is in an object store,
            or larger than eight times the memory while there is only one rank (the memory of several may
            differ); "global" always shuffles the whole split.
        seed: Random seed of shuffling, drawing and augmentation.
        last: What to do with the records that do not fill the last batch of an epoch: yield a "short" batch,
            "drop" them, or "pad" the batch with records of weight 0, for models that need a fixed shape.
        repeat: Number of epochs per iteration; None repeats indefinitely. A batch never mixes epochs.
        filter: Expression that selects records by their fields, such as `age < 3 and breed == "siamese"`.
        skip: Number of selected records to leave out at the beginning, in stored order.
        take: Maximum number of the remaining records to use; None uses all.
        part: Interval within 0 to 1, such as (0, 0.9): each row of the split has a fixed random number, and
            only records whose number lies in the interval are used. (0.9, 1) gives the other records, for
            instance to validate on them.
        shard: (rank, world): this process takes part number `rank` of the `world` parts of each global batch.
        weights: Weights for drawing records with replacement: the name of a field that holds them, or
            `{"breed": {"siamese": 5.0}}` for weights by field value (1 for values that are not listed).
        bucket_by: Name of a field; records in which it has a similar length are batched together, to reduce
            padding.
        max_tokens: Maximum number of values of that field per batch, padding included.
        bucket_records: Number of consecutive records in which buckets are formed. Defaults to 64 batches.
        block_records: Number of records per block for `shuffle="block"`. Defaults to about one megabyte.
        window_blocks: Number of blocks whose records are shuffled together for `shuffle="block"`.
        num_threads: Number of threads that load data. Defaults to the number of available cores; 0 loads in
            the caller's thread. It does not change the batches.
        prefetch_bytes: Maximum total size of the batches that are ready or in the making, ahead of the
            consumer; two batches are always allowed. By default enough batches that all threads have work, at
            least 64 MiB and at most an eighth of the memory.
        cache: "memory", or the path of a folder for a cache file: keeps decoded values for later epochs;
            images are kept as pixels of their final size.
        cache_bytes: Maximum size of the cache. Defaults to a quarter of the memory. Records that do not fit
            are read again in each epoch.
        augment: Whether to apply the random image augmentation of the pipeline, for training. Defaults to
            True for the split "train", and for shuffled files that have no split; otherwise False.

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
    prefetch_bytes: int | None = None
    cache: str | os.PathLike[str] | None = None
    cache_bytes: int | None = None
    augment: bool | None = None

    def __post_init__(self) -> None:
        checks = OptionChecks(self)
        checks.integers("batch_size", "window_blocks", least=1)
        if not isinstance(self.shuffle, bool) and self.shuffle not in get_args(Shuffling):
            raise OptionError("shuffle", expected="True, False, 'block' or 'global'", got=show(self.shuffle))
        checks.integers("seed", least=0, most=2**64 - 1)
        checks.choice("last", get_args(Last))
        checks.integers("max_tokens", "bucket_records", "block_records", least=1)
        if self.repeat is not None:  # repeats without end; the default is 1
            checks.integers("repeat", least=1)
        checks.integers("skip", "prefetch_bytes", "take", "num_threads", "cache_bytes", least=0)
        checks.flags("augment")
        checks.instance("filter", str, "a string")
        checks.instance("bucket_by", str, "a string")
        checks.instance("cache", str | os.PathLike, "'memory' or the path of a folder")
        if self.cache is not None:
            take_local_path(self.cache, "cache")
        self._check_weights()
        self._check_part()
        self._check_shard()
        self._check_buckets()

    @property
    def rank(self) -> int:
        """Number of the part of each batch that this process takes."""
        return self.shard[0]

    @property
    def world(self) -> int:
        """Number of processes that share each batch."""
        return self.shard[1]

    @property
    def threads(self) -> int:
        """Number of threads that load data."""
        if self.num_threads is not None:
            return self.num_threads
        return count_cores()

    def _check_weights(self) -> None:
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
            advice = "It is the size of the global batch; each rank takes a part of it."
            expected = f"at least {self.world}, one record per rank"
            raise OptionError("batch_size", expected=expected, got=self.batch_size, advice=advice)

    def _check_buckets(self) -> None:
        if self.bucket_by is None:
            for name in ("max_tokens", "bucket_records"):
                if getattr(self, name) is not None:
                    advice = "Name the field whose length matters, such as bucket_by='tokens'."
                    raise OptionError(name, expected="bucket_by as well", got="none", advice=advice)
        elif self.last != "short":
            advice = "Any bucket may end with a short batch: leave out `last`."
            raise OptionError("last", expected="'short' with bucket_by", got=show(self.last), advice=advice)


class LoadChoices(TypedDict, total=False):
    """Additional keyword arguments of `Split.loader`."""

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
    prefetch_bytes: int | None
    cache: str | os.PathLike[str] | None
    cache_bytes: int | None
    augment: bool | None


def make_options(
    batch_size: int, shuffle: bool | Shuffling, seed: int, **choices: Unpack[LoadChoices]
) -> LoadOptions:
    """Return the options for keyword arguments.

    Raises:
        OptionError: There is no such option, or its value is not valid.
    """
    check_keywords(choices, (each.name for each in fields(LoadOptions)), "loader")
    return LoadOptions(batch_size=batch_size, shuffle=shuffle, seed=seed, **choices)


def check_whole(name: str, value: object) -> int:
    """Return an argument as an integer of at least 0.

    Raises:
        OptionError: It is not one.
    """
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or operator.index(value) < 0:
        raise OptionError(name, expected="a whole number of at least 0", got=show(value))
    return operator.index(value)


def check_shares(batch_size: int, number: int, sharers: str) -> None:
    """Refuse batches that cannot be shared equally.

    Args:
        batch_size: Number of records of a batch.
        number: Number of those that share it.
        sharers: What they are, for the error: "workers" or "devices".

    Raises:
        OptionError: The batch size is not a multiple of the number.
    """
    if batch_size % number:
        above = -(-batch_size // number) * number
        raise OptionError(
            "batch_size",
            field="batch_size",
            expected=f"a multiple of {number}, the number of {sharers} that share a batch",
            got=batch_size,
            advice=f"For example: --batch-size {above}, in Python batch_size={above}.",
        )
