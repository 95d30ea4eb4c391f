"""The files of a split as a `tf.data.Dataset`: read, shuffled, batched, prefetched.

In: files and options. Out: constants at the top of the program, and the statements that bind `dataset`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Final

from penstock.batch.build import LoadedSplit
from penstock.bridge.graph.site import tf
from penstock.codegen.program import StatementBlock, Term, function
from penstock.columns import Payload
from penstock.errors import OptionError
from penstock.schema.schema import Schema
from penstock.settings.loading import MOST_SHUFFLED, SHUFFLED_BYTES, GraphOptions
from penstock.storage.store_path import make_absolute

_COMPRESSIONS: Final = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}
_READ_BYTES: Final = 8 << 20  # buffer size for each file


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
    """Return the files of a split."""
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
        tuple(make_absolute(shard.path) for shard in shards),
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
    default = max(options.batch_size, min(MOST_SHUFFLED, SHUFFLED_BYTES // max(1, source.record_bytes)))
    top.define_constant("SHUFFLE_RECORDS", options.shuffle_records or default)


def write_dataset(source: GraphSource, options: GraphOptions) -> list[ast.stmt]:
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
    rest.choose(Term.name("SHUFFLE"), mixed, stored)
    rest.bind("dataset", dataset.batch(Term.name("BATCH_SIZE"), drop_remainder=options.last == "drop"))
    prepare = Term.name("prepare")
    rest.bind("dataset", dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True))
    rest.bind("dataset", dataset.prefetch(tf.data.AUTOTUNE))
    return rest.statements
