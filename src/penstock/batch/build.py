"""Puts a loader together.

In: one split or several, a pipeline, and what the caller chose. Out: a `Loader`.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Unpack

import numpy as np
from numpy.typing import NDArray

from penstock.batch.batch_plan import BatchPlan, BucketPlan, FixedPlan
from penstock.batch.cache import CachedStore, check_folder, usual_cache_bytes
from penstock.batch.image_cache import GrowingStore
from penstock.batch.loader import Loader, LoaderParts
from penstock.batch.maker import Transforming
from penstock.batch.options import LoadChoices, LoadOptions, Shuffling, make_options
from penstock.batch.state import Identity
from penstock.batch.stored import StoredValues
from penstock.batch.supply import ColumnStore, DiskStore, SplitSource, Supply
from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.errors import NotPicklableError, OptionError
from penstock.filter.expression import parse_expression
from penstock.filter.scan import filter_rows, row_lengths
from penstock.filter.weights import class_weights, example_weights
from penstock.foundation.process import usable_memory
from penstock.foundation.wording import show, unknown_name
from penstock.read.bitmap import both, choose_part
from penstock.read.mixed_order import MixedOrder
from penstock.read.order import Order, Shuffle, SplitOrder
from penstock.read.rows import Rows
from penstock.read.scatter import Scatter
from penstock.schema.schema import Schema
from penstock.transform.pipeline import Pipeline

_log = logging.getLogger("penstock")

_BLOCK_BYTES = 1 << 20
_MUCH_LARGER = 8  # times the memory: a random read then hardly ever finds its page there
_MOST_SPLITS = 256  # the number of a split is eight bits of what names a record in random draws
_TRAINING, _WHOLE = "train", "all"  # the split to train on, and that of files which form none
_SEED_STEP = 0x9E3779B97F4A7C15  # odd, so that no two of them meet
_LONGEST_FACTS = 400  # characters of JSON; what is longer stands in a state as its digest


@dataclass(frozen=True)
class LoadedSplit:
    """What a loader is told of a split.

    Attributes:
        name: What messages call it.
        rows: Its records.
        schema: What they hold.
        losses: What becomes of bad ones.
        strict: Whether to refuse what no sound writer makes.
        fingerprint: What tells its records from others.
    """

    name: str
    rows: Rows
    schema: Schema
    losses: Losses
    strict: bool
    fingerprint: str


def make_loader(
    splits: Sequence[LoadedSplit],
    pipeline: Transforming,
    options: LoadOptions,
    shares: Sequence[float] | None = None,
) -> Loader:
    """Return a loader over a split, or over several that are mixed by shares.

    Raises:
        OptionError: There is no record to load, or a choice does not fit the data.
        UnknownNameError: The pipeline, or a choice, names a field that the data does not have.
    """
    if len(splits) > _MOST_SPLITS:
        raise OptionError("splits", expected=f"at most {_MOST_SPLITS} in a mixture", got=len(splits))
    if options.augment and not pipeline.augments:
        raise OptionError(
            "augment",
            expected="None or False, as there is nothing to augment",
            got="True",
            advice="Give the pipeline an Image(augment=…), or a map that takes draws.",
        )
    if options.augment is None:
        options = replace(options, augment=all(_is_for_training(split, options) for split in splits))
    orders = [_make_order(split, options, number) for number, split in enumerate(splits)]
    for split, each in zip(splits, orders, strict=True):
        if len(each) == 0:
            raise _refuse_empty(split, options)
    order: Order = orders[0] if shares is None else MixedOrder(orders, shares, options.seed)
    sources = [_make_source(split, pipeline, options.threads) for split in splits]
    stores = [
        _make_store(source, each, pipeline, options) for source, each in zip(sources, orders, strict=True)
    ]
    supply = Supply(sources, stores)
    plan = _make_plan(order, splits, pipeline, options)
    if plan.num_steps(0) == 0:
        raise OptionError(
            "batch_size",
            expected=f"at most {len(order)}, the records of an epoch, with last='drop'",
            got=options.batch_size,
            advice="Lower it, or keep the short batch: last='short'.",
        )
    identity = Identity(
        data=_join([split.fingerprint for split in splits]),
        pipeline=pipeline.fingerprint()[:32],
        order=_shorten({**order.describe(), "seed": options.seed, "filter": options.filter}),
        batches=_shorten(_describe_batches(options, pipeline)),
    )
    return Loader(LoaderParts(plan, supply, pipeline, options, identity))


def _make_source(split: LoadedSplit, pipeline: Transforming, num_threads: int) -> SplitSource:
    for name in pipeline.fields:
        if name not in split.schema:
            raise unknown_name(name, split.schema)
    schema = split.schema.select(pipeline.fields)
    pipeline.check_schema(schema)
    plan = DecodePlan(schema, strict=split.strict, dictionaries=pipeline.dictionaries())
    return SplitSource(Scatter(split.rows, num_threads), plan, schema, split.losses, split.name)


def _is_for_training(split: LoadedSplit, options: LoadOptions) -> bool:
    return split.name == _TRAINING or (split.name == _WHOLE and options.shuffle is not False)


def _make_store(
    source: SplitSource, order: SplitOrder, pipeline: Transforming, options: LoadOptions
) -> ColumnStore:
    if options.cache is None:
        return DiskStore(source)
    most = usual_cache_bytes() if options.cache_bytes is None else options.cache_bytes
    folder = None if options.cache == "memory" else Path(os.fspath(options.cache))
    if folder is not None:
        check_folder(folder)
    stored = replace(order, shuffle="none", weights=None)
    if pipeline.prepares:
        prepare = partial(pipeline.prepare_to_keep, augments=options.augment is True)
        return GrowingStore(source, len(stored), prepare, most, folder)
    return CachedStore(source, stored, most, folder)


def _make_order(split: LoadedSplit, options: LoadOptions, number: int) -> SplitOrder:
    bitmap = None
    if options.filter is not None:
        expression = parse_expression(options.filter, split.schema)
        bitmap = filter_rows(
            split.rows,
            split.schema,
            expression,
            split.losses,
            strict=split.strict,
            num_threads=options.threads,
        )
    if options.part is not None:
        part = choose_part(len(split.rows), options.part)
        bitmap = part if bitmap is None else both(bitmap, part)
    mean_bytes = _num_bytes(split.rows) // max(1, len(split.rows))
    return SplitOrder(
        len(split.rows),
        shuffle=_choose_shuffle(split, options),
        # Each split of a mixture has an order of its own, also if two are of one size.
        seed=(options.seed + number * _SEED_STEP) % 2**64,
        block_records=options.block_records or max(1, _BLOCK_BYTES // max(1, mean_bytes)),
        window_blocks=options.window_blocks,
        bitmap=bitmap,
        skip=options.skip,
        take=options.take,
        weights=_make_weights(split, options),
    )


def _choose_shuffle(split: LoadedSplit, options: LoadOptions) -> Shuffle:
    if options.shuffle is False:
        return "none"
    if options.shuffle is not True:
        return options.shuffle
    if options.world == 1 and _num_bytes(split.rows) > _MUCH_LARGER * usable_memory():
        _log.warning(
            "split %r is more than %d times as large as the memory: it is shuffled by blocks; say "
            "shuffle='global' for a true shuffle, or shuffle='block' to have blocks everywhere",
            split.name,
            _MUCH_LARGER,
        )
        return "block"
    return "global"


def _num_bytes(rows: Rows) -> int:
    return sum(shard.index.identity.size for shard in rows.shards)


def _make_weights(split: LoadedSplit, options: LoadOptions) -> NDArray[np.float64] | None:
    weights = options.weights
    if weights is None:
        return None
    facts = (split.rows, split.schema)
    if isinstance(weights, str):
        return example_weights(
            *facts, weights, split.losses, strict=split.strict, num_threads=options.threads
        )
    ((field, by_value),) = weights.items()
    return class_weights(
        *facts, field, by_value, split.losses, strict=split.strict, num_threads=options.threads
    )


def _make_plan(
    order: Order, splits: Sequence[LoadedSplit], pipeline: Transforming, options: LoadOptions
) -> BatchPlan:
    if options.bucket_by is None:
        return FixedPlan(order, options.batch_size, options.last, options.shard)
    measure = pipeline.measure(options.bucket_by) if isinstance(pipeline, Pipeline) else None
    lengths = [
        row_lengths(
            split.rows,
            split.schema,
            options.bucket_by,
            split.losses,
            strict=split.strict,
            num_threads=options.threads,
            measure=measure,
        )
        for split in splits
    ]
    return BucketPlan(
        order,
        lengths,
        options.batch_size,
        options.max_tokens,
        options.bucket_records or 64 * options.batch_size,
        seed=None if options.shuffle is False else options.seed,
        shard=options.shard,
    )


def _describe_batches(options: LoadOptions, pipeline: Transforming) -> dict[str, Any]:
    facts: dict[str, Any] = {"batch_size": options.batch_size, "last": options.last}
    if pipeline.augments:
        facts["augment"] = options.augment
    if options.bucket_by is not None:
        facts |= {
            "bucket_by": options.bucket_by,
            "max_tokens": options.max_tokens,
            "bucket_records": options.bucket_records,
        }
    return facts


def _shorten(facts: Mapping[str, Any]) -> dict[str, Any]:
    # In their own order: of what differs, a refusal names the first.
    told = {name: value for name, value in facts.items() if value is not None}
    text = json.dumps(told, sort_keys=True)
    if len(text) <= _LONGEST_FACTS:
        return json.loads(json.dumps(told))  # type: ignore[no-any-return]
    return {"digest": hashlib.sha256(text.encode()).hexdigest()[:32]}


def _join(fingerprints: Sequence[str]) -> str:
    if len(fingerprints) == 1:
        return fingerprints[0]
    return hashlib.sha256(" ".join(fingerprints).encode()).hexdigest()[:32]


def _refuse_empty(split: LoadedSplit, options: LoadOptions) -> OptionError:
    if len(split.rows) == 0:
        return OptionError(f"split {split.name!r}", expected="at least one record", got="none")
    asked = [
        f"{name}={getattr(options, name)!r}"
        for name in ("filter", "skip", "take", "part")
        if getattr(options, name) not in (None, 0) or (name == "take" and options.take == 0)
    ]
    return OptionError(
        f"what is left of split {split.name!r}",
        expected="at least one record",
        got=f"none of {len(split.rows)} with {', '.join(asked)}",
    )


class Mixture:
    """Splits that are mixed, each record drawn from one of them by its share.

    Every 1024 records hold the shares to a record; which comes when is random. A split that is at its end
    begins anew, in another order. An epoch is as long as all splits together.
    """

    def __init__(self, splits: Sequence[LoadedSplit], shares: Sequence[float] | None = None) -> None:
        """Mix splits by their shares; by the numbers of their records, if not given.

        Raises:
            OptionError: There are not as many shares as splits, or one is no positive number.
        """
        parts = [float(len(each.rows)) for each in splits] if shares is None else list(shares)
        if len(parts) != len(splits):
            raise OptionError("shares", expected=f"{len(splits)} numbers, one per split", got=len(parts))
        for i, share in enumerate(parts):
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < math.inf:
                raise OptionError(f"shares[{i}]", expected="a number above 0", got=show(share))
        self._splits = tuple(splits)
        self._shares = tuple(parts)

    def __len__(self) -> int:
        return sum(len(split.rows) for split in self._splits)

    def loader(
        self,
        pipeline: Pipeline | None = None,
        batch_size: int = 32,
        shuffle: bool | Shuffling = False,
        seed: int = 0,
        **choices: Unpack[LoadChoices],
    ) -> Loader:
        """Return a loader over the mixture; see `Split.loader`."""
        options = make_options(batch_size, shuffle, seed, **choices)
        chosen = StoredValues(self._splits[0].schema) if pipeline is None else pipeline.copy()
        return make_loader(self._splits, chosen, options, self._shares)

    def __reduce__(self) -> NoReturn:
        raise NotPicklableError(
            "a mixture has open files, and cannot be pickled or copied",
            advice="Pickle its splits, and call ps.mix() there.",
        )

    def __repr__(self) -> str:
        parts = ", ".join(
            f"{split.name!r}: {share:g}" for split, share in zip(self._splits, self._shares, strict=True)
        )
        return f"Mixture({parts})"
