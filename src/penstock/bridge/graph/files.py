"""The files of a split as a `tf.data.Dataset`: read, shuffled, batched, prefetched.

In: files and options. Out: constants at the top of the program, and the statements that bind `dataset`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from penstock.batch.build import LoadedSplit
from penstock.batch.options import LoadOptions, check_whole
from penstock.bridge.graph.site import tf
from penstock.columns import Payload
from penstock.errors import OptionError
from penstock.foundation.program import If, Statement, StatementBlock, Term, function
from penstock.foundation.wording import show
from penstock.schema.schema import Schema

_COMPRESSIONS: Final = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}
_READ_BYTES: Final = 8 << 20  # buffer size for each file
_MOST_SHUFFLED: Final = 10_000
_SHUFFLED_BYTES: Final = 256 << 20
_MOST_SEED: Final = 2**63 - 1

Last = Literal["short", "drop"]


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """Options of a pipeline of TensorFlow operations.

    Attributes:
        batch_size: Number of records per batch.
        shuffle: Whether to shuffle files, and records within a buffer, anew in each epoch.
        seed: Random seed of the order.
        last: What to do with the last records if they do not fill a batch: make a "short" batch, or "drop"
            them, so that all batches have one shape.
        shuffle_records: Number of records in the shuffle buffer. By default 10,000, or fewer if records are
            large.

    Example:
        >>> GraphOptions(batch_size=64, last="drop").last
        'drop'
    """

    batch_size: int = 32
    shuffle: bool = False
    seed: int = 0
    last: Last = "short"
    shuffle_records: int | None = None

    def __post_init__(self) -> None:
        LoadOptions(batch_size=self.batch_size, seed=self.seed)
        if not isinstance(self.shuffle, bool):
            raise OptionError("shuffle", expected="True or False", got=show(self.shuffle))
        if self.seed > _MOST_SEED:
            raise OptionError(
                "seed", expected=f"at most {_MOST_SEED}, the maximum of TensorFlow", got=self.seed
            )
        if self.last not in ("short", "drop"):
            advice = "For batches padded with records of weight 0, use loader(…, last='pad').to_tf()."
            raise OptionError("last", expected="'short' or 'drop'", got=show(self.last), advice=advice)
        if self.shuffle_records is not None and check_whole("shuffle_records", self.shuffle_records) < 1:
            expected = "a whole number of at least 1"
            raise OptionError("shuffle_records", expected=expected, got=self.shuffle_records)


@dataclass(frozen=True)
class GraphSource:
    """The files that a generated pipeline reads.

    Attributes:
        paths: Paths of the files, in the order of their records.
        compressions: Compression of each file: "none", "gzip" or "zlib".
        payload: Whether records are Examples or SequenceExamples.
        schema: Schema of the records.
        record_bytes: Average size of a record.
    """

    paths: tuple[str, ...]
    compressions: tuple[str, ...]
    payload: Payload
    schema: Schema
    record_bytes: int


def find_source(split: LoadedSplit, payload: Payload) -> GraphSource:
    """Return the files of a split.

    Raises:
        OptionError: The split has no records, or has records that are known to be damaged.
    """
    shards = split.rows.shards
    if not len(split.rows):
        raise OptionError(f"split {split.name!r}", expected="at least one record", got="an empty split")
    for shard in shards:
        if shard.index.damages:
            raise OptionError(
                f"split {split.name!r} as TensorFlow operations",
                expected="intact files, as TensorFlow stops at the first damaged record",
                got=f"{len(shard.index.damages)} damaged ranges in {shard.path}",
                advice="Run 'penstock repair', or use loader(…).to_tf().",
            )
    num_bytes = sum(shard.index.identity.size for shard in shards)
    return GraphSource(
        tuple(str(shard.path.absolute() if isinstance(shard.path, Path) else shard.path) for shard in shards),
        tuple(shard.index.compression for shard in shards),
        payload,
        split.schema,
        num_bytes // len(split.rows),
    )


def define_options(top: StatementBlock, source: GraphSource, options: GraphOptions) -> None:
    """Write the constants for the files and the options."""
    top.define_constant("FILES", list(source.paths))
    if len(set(source.compressions)) > 1:
        top.define_constant("COMPRESSIONS", [_COMPRESSIONS[each] for each in source.compressions])
    top.define_constant("BATCH_SIZE", options.batch_size)
    top.define_constant("SHUFFLE", options.shuffle)
    top.define_constant("SEED", options.seed)
    default = max(options.batch_size, min(_MOST_SHUFFLED, _SHUFFLED_BYTES // max(1, source.record_bytes)))
    top.define_constant("SHUFFLE_RECORDS", options.shuffle_records or default)


def write_dataset(source: GraphSource, options: GraphOptions) -> Sequence[Statement]:
    """Write the statements that bind `dataset`: files, records, batches."""
    is_mixed = len(set(source.compressions)) > 1
    files = Term.name("FILES")
    elements: Any = (files, Term.name("COMPRESSIONS")) if is_mixed else files
    parameters = ("file", "compression") if is_mixed else ("file",)

    def read(file: Term, compression: Term | None = None) -> Term:
        kind: Any = _COMPRESSIONS[source.compressions[0]] if compression is None else compression
        return tf.data.TFRecordDataset(file, compression_type=kind, buffer_size=_READ_BYTES)

    mixed, stored, rest = StatementBlock(), StatementBlock(), StatementBlock()
    dataset = mixed.bind("dataset", tf.data.Dataset.from_tensor_slices(elements))
    dataset = mixed.bind("dataset", dataset.shuffle(Term.name("len")(files), seed=Term.name("SEED")))
    reads = dataset.interleave(
        function(*parameters, body=read),
        cycle_length=16,
        block_length=16,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )
    mixed.bind("dataset", reads)
    mixed.bind("dataset", dataset.shuffle(Term.name("SHUFFLE_RECORDS"), seed=Term.name("SEED")))
    if is_mixed:
        each = tf.data.Dataset.from_tensor_slices(elements)
        stored.bind("dataset", each.interleave(function(*parameters, body=read), cycle_length=1))
    else:
        stored.bind("dataset", read(files))
    rest.bind("dataset", dataset.batch(Term.name("BATCH_SIZE"), drop_remainder=options.last == "drop"))
    prepare = Term.name("prepare")
    rest.bind("dataset", dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True))
    rest.bind("dataset", dataset.prefetch(tf.data.AUTOTUNE))
    choice = If(Term.name("SHUFFLE").node, tuple(mixed.statements), tuple(stored.statements))
    return (choice, *rest.statements)
