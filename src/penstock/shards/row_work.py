"""The work on each block of rows, on any thread: encodes, hashes and measures its rows.

In: blocks of a source, raw or stored. Out: `WorkedRows`, which a conversion takes in the order of the source.
The result does not depend on other blocks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Column, Dense, Mask
from penstock.encode.deferred import make_references, materialize
from penstock.encode.file_check import FileThreads
from penstock.encode.plain import CellFault
from penstock.encode.raw_rows import RowBlock
from penstock.encode.records import EncodableColumns, EncodableRows, RecordEncoder
from penstock.errors import OutOfMemoryError
from penstock.foundation.wording import show
from penstock.schema.field import Field
from penstock.schema.schema import Schema
from penstock.settings.groups import Splits
from penstock.shards.sort.chunk import ByteColumn
from penstock.shards.splits.assignment import RANK_BELOW
from penstock.shards.splits.ledger import order_times
from penstock.shards.splits.row_keys import IdentifiedRows, KeyWork
from penstock.shards.splits.split import split_hashes
from penstock.statistics.statistics import BlockStatistics, measure_block
from penstock.storage.deferred import Deferred

Stream: TypeAlias = "bytes | NDArray[Any]"


@dataclass(frozen=True)
class WorkedRows:
    """The encoded rows of a block.

    Attributes:
        block: Block that the rows come from.
        rows: Indices of the valid rows in the source.
        columns: Body of each valid row, and one reference per deferred field.
        resident: Values of deferred fields that are in memory, one per row of the block.
        identity: Hashes and codes of each row: content, keys, classes.
        extra: Other values that decide the split: a time, or the digest of a stratum as two columns.
        splits: Split of each row or of all rows, if the source declares it.
        tentative: Split that the key of a row alone determines.
        statistics: Statistics of the rows that are tentatively in the train split; None if not yet measured.
        missing: Number of valid rows in which each field is missing.
        num_bytes: Approximate size of the records.
        faults: Cells that do not fit.
        streams: Everything about the valid rows that affects the output, as bytes by name. The bytes of
            consecutive blocks are concatenated, so that they do not depend on block boundaries.
        measurable: Columns for statistics, in case the final splits differ from the tentative ones.
    """

    block: RowBlock
    rows: NDArray[np.uint64]
    columns: list[ByteColumn]
    resident: dict[str, list[bytes | memoryview]]
    identity: IdentifiedRows
    extra: NDArray[Any] | None
    splits: list[bytes] | str | None
    tentative: NDArray[np.uint8]
    statistics: BlockStatistics | None
    missing: dict[str, int]
    num_bytes: int
    faults: list[CellFault]
    streams: Mapping[str, Stream]
    measurable: MeasurableRows

    def measure(self, schema: Schema, measured: int) -> BlockStatistics:
        """Return the statistics of the rows that are tentatively in the split with index `measured`."""
        if self.statistics is not None:
            return self.statistics
        return self.measurable.measure(schema, self.tentative == measured)


@dataclass(frozen=True)
class MeasurableRows:
    """The columns of a block, a mask of its valid rows, and the keys by which rows are sampled."""

    columns: EncodableColumns
    valid: Mask | None
    keys: NDArray[np.uint64]

    def measure(self, schema: Schema, is_wanted: Mask) -> BlockStatistics:
        """Return the statistics of a selection of the valid rows."""
        keep = is_wanted
        if self.valid is not None:
            keep = np.zeros(len(self.valid), np.bool_)
            keep[self.valid] = is_wanted
        return measure_block(schema, self.columns, keep, self.keys)


class RowWork:
    """Encodes blocks of one schema; any number of threads can call it.

    Attributes:
        schema: Schema of the records.
        encoder: Encoder of the records.
        deferred_names: Fields whose values can be read when their record is written, in the order of their
            references.
        keys: Identifies rows.
        measured: Index of the split that statistics are computed for: the train split, if there is one.
    """

    def __init__(
        self,
        schema: Schema,
        split: Splits,
        seed: int,
        deferred_names: Sequence[str],
        split_columns: Mapping[str, Field],
    ) -> None:
        self.schema = schema
        self.encoder = RecordEncoder(schema)
        self.deferred_names = () if self.encoder.is_sequence else tuple(deferred_names)
        names = list(split.shares)
        self.measured = names.index("train") if "train" in names else 0
        self._split, self._seed = split, seed
        self._split_columns = dict(split_columns)
        self._split_encoder = RecordEncoder(Schema(split_columns))
        self.keys = KeyWork(schema, split)

    def __reduce__(self) -> tuple[Any, ...]:
        # Made again where it is unpickled: encoders of the core stay in their process.
        return RowWork, (self.schema, self._split, self._seed, self.deferred_names, self._split_columns)

    def __call__(self, block: RowBlock, threads: FileThreads | None = None) -> WorkedRows:
        """Encode, hash and measure a block.

        `threads`: threads that help to read the files that rows name.
        """
        with naming_rows(block):
            return self._work(block, threads)

    def _work(self, block: RowBlock, threads: FileThreads | None) -> WorkedRows:
        num_rows = block.num_rows
        encoded = block.encode(threads)
        columns = self._load_deferred(encoded.columns)
        if self._split.time is not None:
            encoded.faults += _find_timeless(self._split.time, columns, encoded.split_columns)
        prepared = self.encoder.prepare(columns, num_rows)
        prepared_split_columns = self._split_encoder.prepare(encoded.split_columns, num_rows)
        bodies = prepared.encode()
        identity = self.keys(prepared, prepared_split_columns)
        codes = split_hashes(identity.deciding.hashes, self._split, self._seed)
        valid = _find_valid(encoded.faults, num_rows)
        measured = codes == self.measured if valid is None else (codes == self.measured) & valid
        order = _native.mix_rows(self._seed, block.first_row, num_rows)
        # A small source is split by rank: its first rows are measured when the splits are known.
        is_early = block.first_row < RANK_BELOW
        statistics = None if is_early else measure_block(self.schema, columns, measured, order)
        deferred = {name: column for name, column in columns.items() if isinstance(column, Deferred)}
        kept: list[ByteColumn] = [
            bodies,
            *(make_references(deferred.get(name), num_rows) for name in self.deferred_names),
        ]
        extra = self._take_extra(prepared, prepared_split_columns)
        splits = encoded.splits if isinstance(encoded.splits, str | None) else encoded.splits.tolist()
        rows = np.arange(block.first_row, block.first_row + num_rows, dtype=np.uint64)
        split_columns: list[ByteColumn] = [prepared_split_columns.encode()] if encoded.split_columns else []
        if valid is not None:
            split_columns = [_keep_strings(column, valid) for column in split_columns]
            kept = [_keep_strings(column, valid) for column in kept]
            rows, identity, codes = rows[valid], identity.keep(valid), codes[valid]
            extra = None if extra is None else extra[valid]
            if isinstance(splits, list):
                splits = [split for split, is_valid in zip(splits, valid.tolist(), strict=True) if is_valid]
        deferred_bytes = sum(
            int(column.sizes[valid if valid is not None else slice(None)].sum())
            for column in deferred.values()
        )
        return WorkedRows(
            block=block,
            rows=rows,
            columns=kept,
            resident={name: column.values for name, column in deferred.items() if column.values is not None},
            identity=identity,
            extra=extra,
            splits=splits,
            tentative=codes,
            statistics=statistics,
            missing={name: _count_missing(column, valid) for name, column in columns.items()},
            num_bytes=len(bodies.arena) + deferred_bytes + 18 * num_rows,
            faults=encoded.faults,
            streams={
                "rows": rows,
                **_list_strings("body", kept[0]),
                **{key: each for side in split_columns for key, each in _list_strings("side", side).items()},
                **_list_deferred(deferred, self.deferred_names, num_rows, valid),
                **_list_names(splits, len(rows)),
            },
            measurable=MeasurableRows(columns, valid, order),
        )

    def _load_deferred(self, columns: EncodableColumns) -> dict[str, Column | Deferred]:
        """Load the values of deferred columns into memory where they cannot stay deferred."""
        return {
            name: column if name in self.deferred_names else materialize(column)
            for name, column in columns.items()
        }

    def _take_extra(self, rows: EncodableRows, split_columns: EncodableRows) -> NDArray[Any] | None:
        if self._split.strata is not None:
            name = self._split.strata
            where = rows if name in rows.columns else split_columns
            return where.digest_rows([name], is_named=False)
        if self._split.time is None:
            return None
        column = rows.columns.get(self._split.time, split_columns.columns.get(self._split.time))
        return order_times(Dense.of(column).values)


@contextlib.contextmanager
def naming_rows(block: RowBlock) -> Iterator[None]:
    """Name the rows of a block in an error for lack of memory."""
    try:
        yield
    except MemoryError as error:
        if isinstance(error, OutOfMemoryError):
            raise
        raise lack_memory(block.first_row, block.num_rows, block.path) from None


def lack_memory(first_row: int, num_rows: int, path: str | None = None) -> OutOfMemoryError:
    """Return the error for rows that do not fit into memory."""
    return OutOfMemoryError(
        f"rows {first_row + 1} to {first_row + num_rows} of the source do not fit into memory",
        path=path,
        advice="Use fewer threads: `num_threads=1`, or a machine with more memory.",
    )


def _find_timeless(name: str, columns: EncodableColumns, split_columns: EncodableColumns) -> list[CellFault]:
    """Return a fault for each row without a time to split by."""
    column = columns.get(name, split_columns.get(name))
    if not isinstance(column, Dense):
        return []  # refused earlier
    lacks = np.isnan(column.values)
    if column.present is not None:
        lacks |= ~column.present
    need = f"Splits by time need a value of {show(name)} in every row"
    advice = f"{need}; `on_error='skip'` leaves out rows without one."
    return [CellFault(row, name, "a time", "nothing", advice) for row in np.flatnonzero(lacks).tolist()]


def _find_valid(faults: list[CellFault], num_rows: int) -> Mask | None:
    """Return a mask of the rows without faults; None if no row has a fault."""
    if not faults:
        return None
    valid = np.ones(num_rows, np.bool_)
    valid[[fault.row for fault in faults]] = False
    return valid


def _keep_strings(column: ByteColumn, keep: Mask) -> ByteColumn:
    arena, offsets = column
    pieces = [arena[offsets[row] : offsets[row + 1]] for row in np.flatnonzero(keep).tolist()]
    kept = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum([len(piece) for piece in pieces], out=kept[1:])
    return (np.concatenate(pieces) if pieces else np.empty(0, np.uint8)), kept


def _list_strings(name: str, column: ByteColumn) -> dict[str, Stream]:
    arena, offsets = column
    return {f"{name} sizes": np.diff(offsets), name: arena[offsets[0] : offsets[-1]]}


def _list_deferred(
    deferred: Mapping[str, Deferred], names: Sequence[str], num_rows: int, valid: Mask | None
) -> dict[str, Stream]:
    """Return size, digest and presence of deferred values; their location is not part of the content."""
    streams: dict[str, Stream] = {}
    for name in names:
        column = deferred.get(name)
        if column is None:  # in this block the values are part of the bodies
            sizes, digests = np.zeros(num_rows, np.int64), np.zeros((num_rows, 2), np.uint64)
            present = np.zeros(num_rows, np.bool_)
        else:
            sizes, digests = column.sizes, column.digests
            present = np.ones(num_rows, np.bool_) if column.present is None else column.present
        for part, array in (("sizes", sizes), ("digests", digests), ("present", present)):
            streams[f"late {name} {part}"] = array if valid is None else array[valid]
    return streams


def _list_names(splits: list[bytes] | str | None, num_rows: int) -> dict[str, Stream]:
    if splits is None:
        return {}
    names = [splits.encode()] * num_rows if isinstance(splits, str) else splits
    return {"split sizes": np.array([len(name) for name in names], np.int64), "split": b"".join(names)}


def _count_missing(column: Column | Deferred, valid: Mask | None) -> int:
    if column.present is None:
        return 0
    lacking = ~column.present
    return int((lacking if valid is None else lacking & valid).sum())
