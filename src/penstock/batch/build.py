"""Assembly of a loader from its parts, and mixtures of splits.

In: one split or several, a pipeline, and options. Out: a `Loader`.
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
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from penstock.batch.batch_plan import BatchPlan, BucketPlan, FixedPlan
from penstock.batch.cache import CachedStore, check_folder, usual_cache_bytes
from penstock.batch.image_cache import GrowingStore
from penstock.batch.loader import Loader, LoaderParts
from penstock.batch.maker import Transforming
from penstock.batch.state import Identity
from penstock.batch.stored import StoredValues
from penstock.batch.supply import ColumnStore, DiskStore, SplitSource, Supply
from penstock.batch.weights import class_weights, example_weights
from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.errors import NotPicklableError, OptionError
from penstock.filter.expression import parse_expression
from penstock.filter.scan import filter_rows, row_lengths
from penstock.foundation.process import usable_memory
from penstock.foundation.wording import show, unknown_name
from penstock.read.bitmap import Bitmap, both, choose_part
from penstock.read.order import MixedOrder, Order, Shuffle, SplitOrder
from penstock.read.rows import Rows
from penstock.read.scatter import Scatter
from penstock.schema.schema import Schema
from penstock.settings.keywords import takes
from penstock.settings.loading import LoadOptions
from penstock.storage.store_path import take_local_path
from penstock.transform.pipeline import Pipeline, check_inputs

_log = logging.getLogger("penstock")

_BLOCK_BYTES = 1 << 20
_STRETCH_BYTES = 64 << 20  # read ahead of an object store in stored order
_MUCH_LARGER = 8  # times the memory: then a random read rarely finds its page in memory
_MOST_SPLITS = 256  # the number of a split takes eight bits in the key of a record for random draws
_TRAINING, _WHOLE = "train", "all"  # the split to train on, and the split of files without one
_SEED_STEP = 0x9E3779B97F4A7C15  # odd, so that the seeds of all splits differ
_LONGEST_DESCRIPTION = 400  # characters of JSON; a state holds only the digest of a longer one


@dataclass(frozen=True)
class LoadedSplit:
    """A split as an argument of a loader.

    Attributes:
        name: Name of the split, for messages.
        rows: Rows of the split.
        schema: Schema of the records.
        losses: Policy for bad records.
        strict: Whether to reject records that no correct writer produces.
        fingerprint: Fingerprint of the records.
        selected: Rows to load; all by default.
    """

    name: str
    rows: Rows
    schema: Schema
    losses: Losses
    strict: bool
    fingerprint: str
    selected: Bitmap | None = None


def choose_steps(pipeline: Pipeline | None, schema: Schema) -> Transforming:
    """Return the steps of a pipeline, or stored values without one."""
    if pipeline is None:
        stored = StoredValues(schema)
        stored.check_inputs()
        return stored
    check_inputs(pipeline)
    return pipeline.assembly


def make_loader(
    splits: Sequence[LoadedSplit],
    pipeline: Transforming,
    options: LoadOptions,
    shares: Sequence[float] | None = None,
) -> Loader:
    """Return a loader over one split, or over several mixed by shares."""
    if len(splits) > _MOST_SPLITS:
        raise OptionError("splits", expected=f"at most {_MOST_SPLITS} in a mixture", got=len(splits))
    if options.cache is not None:
        take_local_path(options.cache, "cache")
    if options.augment and not pipeline.augments:
        raise OptionError(
            "augment",
            expected="None or False, because the pipeline has no augmentation",
            got="True",
            advice="Add an Image(augment=…) to the pipeline, or a map that takes draws.",
        )
    if options.augment is None:
        options = options.replace(augment=all(_is_for_training(split, options) for split in splits))
    orders = [_make_order(split, options, number) for number, split in enumerate(splits)]
    for split, each in zip(splits, orders, strict=True):
        if len(each) == 0:
            raise _refuse_empty(split, options)
    order: Order = orders[0] if shares is None else MixedOrder(orders, shares, options.seed)
    sources = [_make_source(split, pipeline, options.count_threads()) for split in splits]
    stores = [
        _make_store(source, each, pipeline, options) for source, each in zip(sources, orders, strict=True)
    ]
    supply = Supply(sources, stores)
    plan = _make_plan(order, splits, pipeline, options)
    if plan.num_steps(0) == 0:
        raise OptionError(
            "batch_size",
            expected=f"at most {len(order)}, the number of records per epoch, with last='drop'",
            got=options.batch_size,
            advice="Lower it, or keep the short batch with last='short'.",
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
    plan = DecodePlan(schema, strict=split.strict, dictionaries=pipeline.dictionaries)
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
    bitmap = split.selected
    if options.filter is not None:
        expression = parse_expression(options.filter, split.schema)
        found = filter_rows(
            split.rows,
            split.schema,
            expression,
            split.losses,
            strict=split.strict,
            num_threads=options.count_threads(),
        )
        bitmap = found if bitmap is None else both(bitmap, found)
    if options.part is not None:
        part = choose_part(len(split.rows), options.part)
        bitmap = part if bitmap is None else both(bitmap, part)
    mean_bytes = _num_bytes(split.rows) // max(1, len(split.rows))
    return SplitOrder(
        len(split.rows),
        shuffle=_choose_shuffle(split, options),
        # Each split of a mixture has its own order, even if two have the same size.
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
    if split.rows.is_remote:
        return "block"  # a global shuffle would send a request per record
    if options.world == 1 and _num_bytes(split.rows) > _MUCH_LARGER * usable_memory():
        _log.warning(
            "split %r is more than %d times as large as the memory, so it is shuffled in blocks; pass "
            "shuffle='global' to shuffle all records, or shuffle='block' to always shuffle in blocks",
            split.name,
            _MUCH_LARGER,
        )
        return "block"
    return "global"


def _num_bytes(rows: Rows) -> int:
    return rows.shards.num_bytes


def _make_weights(split: LoadedSplit, options: LoadOptions) -> NDArray[np.float64] | None:
    weights = options.weights
    if weights is None:
        return None
    records = (split.rows, split.schema)
    if isinstance(weights, str):
        return example_weights(
            *records, weights, split.losses, strict=split.strict, num_threads=options.count_threads()
        )
    ((field, by_value),) = weights.items()
    return class_weights(
        *records, field, by_value, split.losses, strict=split.strict, num_threads=options.count_threads()
    )


def _make_plan(
    order: Order, splits: Sequence[LoadedSplit], pipeline: Transforming, options: LoadOptions
) -> BatchPlan:
    if options.bucket_by is None:
        rows = [split.rows for split in splits]
        stretch = None
        if len(rows) == 1 and rows[0].is_remote and options.shuffle is False and options.weights is None:
            stretch = max(options.batch_size, _STRETCH_BYTES * len(rows[0]) // max(1, _num_bytes(rows[0])))
        return FixedPlan(order, options.batch_size, options.last, options.shard, stretch)
    measure = pipeline.measure(options.bucket_by)
    lengths = [
        row_lengths(
            split.rows,
            split.schema,
            options.bucket_by,
            split.losses,
            strict=split.strict,
            num_threads=options.count_threads(),
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
    described: dict[str, Any] = {"batch_size": options.batch_size, "last": options.last}
    if pipeline.augments:
        described["augment"] = options.augment
    if options.bucket_by is not None:
        described |= {
            "bucket_by": options.bucket_by,
            "max_tokens": options.max_tokens,
            "bucket_records": options.bucket_records,
        }
    return described


def _shorten(described: Mapping[str, Any]) -> dict[str, Any]:
    # In the given order: an error names the first difference.
    given = {name: value for name, value in described.items() if value is not None}
    text = json.dumps(given, sort_keys=True)
    if len(text) <= _LONGEST_DESCRIPTION:
        return json.loads(json.dumps(given))  # type: ignore[no-any-return]
    return {"digest": hashlib.sha256(text.encode()).hexdigest()[:32]}


def _join(fingerprints: Sequence[str]) -> str:
    if len(fingerprints) == 1:
        return fingerprints[0]
    return hashlib.sha256(" ".join(fingerprints).encode()).hexdigest()[:32]


def _refuse_empty(split: LoadedSplit, options: LoadOptions) -> OptionError:
    if len(split.rows) == 0:
        return OptionError(f"split {split.name!r}", expected="at least one record", got="none")
    asked = [
        f"{name}={show(getattr(options, name))}"
        for name in ("filter", "skip", "take", "part")
        if getattr(options, name) not in (None, 0) or (name == "take" and options.take == 0)
    ]
    return OptionError(
        f"selected records of split {split.name!r}",
        expected="at least one record",
        got=f"none of {len(split.rows)} with {', '.join(asked)}",
    )


class Mixture:
    """Several splits mixed by shares; `ps.mix` returns it.

    Each window of 1024 records has the given shares, exact to one record, in random order. A split that is
    exhausted starts again in another order. An epoch has as many records as all splits together.
    """

    def __init__(self, splits: Sequence[LoadedSplit], shares: Sequence[float] | None = None) -> None:
        """Mix splits by shares, which default to their record counts.

        Raises:
            OptionError: The number of shares differs from the number of splits, or a share is not positive.
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

    @takes(LoadOptions)
    def loader(self, pipeline: Pipeline | None = None, *, options: LoadOptions) -> Loader:
        """Return a loader over the mixture, as `Split.loader` does over a split.

        Args:
            pipeline: Pipeline that turns stored values into arrays. Without one, a batch holds the stored
                values.
            options: What to load, and how.
        """
        chosen = choose_steps(pipeline, self._splits[0].schema)
        return make_loader(self._splits, chosen, options, self._shares)

    def __reduce__(self) -> NoReturn:
        raise NotPicklableError(
            "a mixture has open files, and cannot be pickled or copied",
            advice="Pickle its splits, and call ps.mix() on them after loading.",
        )

    def __repr__(self) -> str:
        parts = ", ".join(
            f"{split.name!r}: {share:g}" for split, share in zip(self._splits, self._shares, strict=True)
        )
        return f"Mixture({parts})"
