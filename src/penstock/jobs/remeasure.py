"""Statistics of a split that is written: its shards are read once.

In: the shards of a split. Out: the statistics, for the manifest. Blocks are of a fixed number of records, and
merged in order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from penstock import _native
from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.decode.reader import read_columns
from penstock.read.opening import open_files
from penstock.read.options import ReadOptions
from penstock.schema.schema import Schema
from penstock.shards.entry import SplitEntry
from penstock.statistics.statistics import Statistics, measure_block

_BLOCK_ROWS: Final = 4096
_BLOCK_BYTES: Final = 16 << 20


def measure_shards(folder: Path, split: SplitEntry, schema: Schema, seed: int) -> dict[str, Any]:
    """Return the statistics of a split."""
    plan = DecodePlan(schema)
    statistics = Statistics(schema)
    row = 0
    for shard in split.shards:  # one by one: an index takes 8 bytes per record of memory
        (rows,) = open_files([folder / shard.name], ReadOptions()).splits.values()
        in_order = rows.in_order()
        for start, stop in in_order.blocks(_BLOCK_ROWS, _BLOCK_BYTES):
            columns, num_rows = read_columns(in_order, plan, Losses("raise", 0), start, stop)
            keys = _native.mix_rows(seed, row, num_rows)
            statistics.merge(measure_block(schema, columns, None, keys))
            row += num_rows
    return statistics.to_json()
