"""Which records a query selects, and in which order.

In: a query. Out: `SelectedRows`, from which any page is read, or the progress of the scan that finds them. A
filter reads the fields that it names once, in bounded memory; the result is one bit per record, and is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Bytes, Column, Columns, Mask, Ragged
from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.decode.reader import BLOCK_BYTES, BLOCK_ROWS, read_payloads
from penstock.decode.sample import IS_TEXT
from penstock.errors import OptionError, PenstockError
from penstock.filter.expression import Expression, parse_expression
from penstock.filter.scan import scan
from penstock.foundation.wording import show, unknown_name
from penstock.read.bitmap import Bitmap
from penstock.read.rows import Rows
from penstock.schema.field import Field
from penstock.schema.scalar import Category
from penstock.schema.schema import Schema
from penstock.view.opened_data import SCAN_BYTES, BoundedRows, OpenedData
from penstock.view.predictions import Outcome
from penstock.view.query import Query
from penstock.view.scan_jobs import Progress, ScanJobs, Watch
from penstock.view.sorting import (
    CountedLosses,
    SortedRows,
    check_count,
    describe_key,
    sort_by_field,
    sort_by_keys,
    sort_by_size,
)

_CHUNK_ROWS: Final = 1 << 20
_MOST_LISTED: Final = 200  # fields to sort by, in a list; a table has a link for each of its fields


class Matches(NamedTuple):
    """Records that a scan found.

    Attributes:
        bitmap: The records, relative to the rows that were scanned.
        num_bad: Number of records that could not be read, and so are not among them.
    """

    bitmap: Bitmap
    num_bad: int

    @property
    def nbytes(self) -> int:
        """Number of bytes."""
        return self.bitmap.num_rows // 8


@dataclass(frozen=True)
class SelectedRows:
    """Records that a query selects, in its order.

    Attributes:
        offset: Number of the first row of the file or split that was searched.
        num_rows: Number of rows of that file or split.
        bitmap: The selected rows, from `offset` on; None for all.
        sorted: The selected rows in a sorted order, from `offset` on; None for the stored order.
        num_bad: Number of records that could not be read, and so are not selected.
    """

    offset: int
    num_rows: int
    bitmap: Bitmap | None = None
    sorted: SortedRows | None = None
    num_bad: int = 0

    def __len__(self) -> int:
        return self.num_rows if self.bitmap is None else len(self.bitmap)

    def rows(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the row numbers in the split of the records from `start` to `stop`, at most."""
        start, stop = min(start, len(self)), min(stop, len(self))
        if self.sorted is not None:
            return self.sorted.rows[start:stop].astype(np.int64) + self.offset
        return self.take(np.arange(start, stop, dtype=np.int64))

    def take(self, indexes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row numbers at some indexes of the stored order."""
        return (indexes if self.bitmap is None else self.bitmap.select(indexes)) + self.offset


class PredictionSource(Protocol):
    """Where the predictions of a run come from."""

    def find(self, split: str) -> Outcome | Progress:
        """Return the predictions of a split, or how many of them are made."""


class Selector:
    """Answers queries; results of scans are shared by all of them."""

    def __init__(self, data: OpenedData, jobs: ScanJobs, predictions: PredictionSource | None = None) -> None:
        self._data = data
        self._jobs = jobs
        self._predictions = predictions

    def select(self, query: Query) -> SelectedRows | Progress:
        """Return the records that a query selects, or the progress of the work that finds them."""
        rows, offset = self._find_base(query)
        if not self._data.is_example and (query.filter or query.search or query.sort.startswith("field:")):
            raise OptionError(
                "filter, search and sort",
                field="filter",
                expected="records with fields",
                got="records that are not Examples",
                advice="They can be sorted by size, and shown by number.",
            )
        found = self._match(query, rows)
        if isinstance(found, Progress):
            return found
        bitmap, num_bad = (None, 0) if found is None else found
        if query.show in ("mistakes", "correct"):
            outcome = self._outcome(query, "show", "'all' or 'damaged'")
            if isinstance(outcome, Progress):
                return outcome
            judged = _mark_outcome(outcome, query.show, offset, len(rows))
            bitmap = judged if bitmap is None else _both(judged, bitmap)
        ordered = self._sort(query, rows, offset, bitmap)
        if isinstance(ordered, Progress):
            return ordered
        return SelectedRows(offset, len(rows), bitmap, ordered, num_bad)

    def list_sorts(self) -> list[tuple[str, str]]:
        """Return the available orders: values of `Query.sort`, and their descriptions."""
        sorts = []
        for name, field in islice(self._data.schema.items(), _MOST_LISTED):
            meaning = describe_key(field)
            if meaning is not None:
                sorts.append((f"field:{name}", name if meaning == "value" else f"{name} ({meaning})"))
        return [*sorts, ("bytes:", "size of the record")]

    def _find_base(self, query: Query) -> tuple[BoundedRows, int]:
        """Return the searched rows (of a split or of one file), and the number of the first row."""
        rows = self._data.rows(query.split)
        if query.shard is None:
            return rows, 0
        if query.shard >= len(rows.shards):
            expected = f"a number below {len(rows.shards)}"
            raise OptionError("shard", field="shard", expected=expected, got=query.shard)
        return rows.of_file(query.shard), rows.starts[query.shard]

    def _match(self, query: Query, rows: BoundedRows) -> Matches | Progress | None:
        is_damaged = query.show == "damaged"
        text = query.filter.strip()
        if not (text or query.search or is_damaged):
            return None
        expression = parse_expression(text, self._data.schema) if text else None
        found: Matches | None = None
        if is_damaged:
            key = ("damaged", query.split, query.shard)
            damaged = self._jobs.ask(key, partial(self._find_damaged, rows))
            if isinstance(damaged, Progress):
                return damaged
            found = damaged
        if expression is not None or query.search:
            key = ("match", *query.selection_key()[:3], query.shard)
            matches = self._jobs.ask(key, partial(self._find_matches, rows, expression, query.search))
            if isinstance(matches, Progress):
                return matches
            found = (
                matches if found is None else Matches(_both(found.bitmap, matches.bitmap), matches.num_bad)
            )
        return found

    def _find_matches(
        self, rows: BoundedRows, expression: Expression | None, search: str, watch: Watch
    ) -> Matches:
        schema = self._data.schema
        searched = list_searchable(schema) if search else ()
        needed = dict.fromkeys((*(expression.names if expression else ()), *searched))
        if not needed:
            raise OptionError(
                "search", field="search", expected="a field with texts", got="none in these records"
            )

        def measure(columns: Columns, num_rows: int) -> Mask:
            mask = np.ones(num_rows, np.bool_) if expression is None else expression.evaluate(columns)
            return mask & find_text(columns, searched, search, num_rows) if searched else mask

        plan = DecodePlan(schema.select(tuple(needed)), strict=self._data.strict)
        losses = CountedLosses()
        with closing(scan(rows, plan, losses, measure, rows.num_threads, SCAN_BYTES)) as blocks:
            masks = _report(((start, values) for start, values in blocks), len(rows), watch)
            bitmap = Bitmap.from_masks(masks, len(rows))
        return Matches(bitmap, losses.count)

    def _find_damaged(self, rows: BoundedRows, watch: Watch) -> Matches:
        """Find the records whose bytes are damaged, or that do not fit the schema."""
        if not self._data.is_example:
            return Matches(Bitmap.from_masks(_check_payloads(rows, watch), len(rows)), 0)
        plan = DecodePlan(self._data.schema, strict=self._data.strict)

        def measure(_: Columns, num_rows: int) -> Mask:
            return np.ones(num_rows, np.bool_)  # bad records get False

        losses = CountedLosses()
        with closing(scan(rows, plan, losses, measure, rows.num_threads, SCAN_BYTES)) as blocks:
            masks = _report(((start, ~values) for start, values in blocks), len(rows), watch)
            return Matches(Bitmap.from_masks(masks, len(rows)), 0)

    def _outcome(self, query: Query, parameter: str, without_run: str) -> Outcome | Progress:
        """Return the predictions that a parameter of the query needs."""
        if self._predictions is None:
            raise OptionError(
                f"parameter {parameter!r}",
                field=parameter,
                expected=f"{without_run} without a run",
                got=show(getattr(query, parameter)),
            )
        return self._predictions.find(query.split)

    def _sort(
        self, query: Query, rows: BoundedRows, offset: int, bitmap: Bitmap | None
    ) -> SortedRows | Progress | None:
        if not query.sort:
            return None
        kind, _, name = query.sort.partition(":")
        descending = query.order == "descending"
        check_count(len(rows) if bitmap is None else len(bitmap))
        if kind == "loss":
            outcome = self._outcome(query, "sort", "'field:NAME' or 'bytes:'")
            if isinstance(outcome, Progress):
                return outcome
            if name not in outcome.targets:
                raise unknown_name(name, outcome.targets, what="target")
            work: Callable[[Watch], SortedRows] = partial(
                _sort_by_loss, outcome, name, offset, len(rows), bitmap, descending
            )
        elif kind == "bytes":
            work = partial(sort_by_size, rows, bitmap, descending=descending)
        elif kind == "field" and name in self._data.schema:
            work = partial(
                sort_by_field,
                rows,
                self._data.schema,
                name,
                bitmap,
                descending=descending,
                strict=self._data.strict,
            )
        else:
            if kind == "field":
                raise unknown_name(name, self._data.schema)
            raise OptionError("sort", field="sort", expected="'field:NAME' or 'bytes:'", got=show(query.sort))
        return self._jobs.ask((*query.selection_key(), query.shard, query.sort, descending), work)


def _report(blocks: Iterator[tuple[int, Mask]], total: int, watch: Watch) -> Iterator[Mask]:
    for start, mask in blocks:
        watch.report(start, total)
        yield mask


def _check_payloads(rows: Rows, watch: Watch) -> Iterator[Mask]:
    """Yield which records of a block have damaged bytes, block by block."""
    forward = rows.in_order()
    for start, stop in forward.blocks(BLOCK_ROWS, BLOCK_BYTES):
        watch.report(start, len(rows))
        found = BadRows()
        for _ in read_payloads(forward, found, start, stop):
            pass
        mask = np.zeros(stop - start, np.bool_)
        mask[[row - start for row in found.errors_by_row]] = True
        yield mask


class BadRows(Losses):
    """Keeps the error of each bad record; for a few records at a time."""

    def __init__(self) -> None:
        super().__init__("collect", 0)
        self.errors_by_row: dict[int, PenstockError] = {}

    def add(self, row: int, error: PenstockError) -> None:
        """Keep the error of a record."""
        self.errors_by_row.setdefault(row, error.with_traceback(None))


def _both(bitmap: Bitmap, other: Bitmap) -> Bitmap:
    """Return the rows that are selected in both bitmaps; only some of them are unpacked at a time."""
    spans = ((start, start + _CHUNK_ROWS) for start in range(0, bitmap.num_rows, _CHUNK_ROWS))
    return Bitmap.from_masks(
        (bitmap.to_mask(*span) & other.to_mask(*span) for span in spans), bitmap.num_rows
    )


def _mark_outcome(outcome: Outcome, wanted: str, offset: int, num_rows: int) -> Bitmap:
    mask = np.zeros(num_rows, np.bool_)
    is_wrong = np.asarray(outcome.is_wrong)
    chosen = np.asarray(outcome.rows)[is_wrong if wanted == "mistakes" else ~is_wrong] - offset
    mask[chosen[(chosen >= 0) & (chosen < num_rows)]] = True
    return Bitmap.from_mask(mask)


def _sort_by_loss(
    outcome: Outcome, name: str, offset: int, num_rows: int, bitmap: Bitmap | None, descending: bool, _: Watch
) -> SortedRows:
    check_count(num_rows)
    losses: NDArray[Any] = np.full(num_rows, np.nan)
    at = np.asarray(outcome.rows) - offset
    inside = (at >= 0) & (at < num_rows)
    losses[at[inside]] = np.asarray(outcome.targets[name].losses)[inside]
    mask = np.ones(num_rows, np.bool_) if bitmap is None else bitmap.to_mask()
    rows = np.flatnonzero(mask).astype(np.uint32)
    keys = losses[mask]
    return SortedRows(sort_by_keys(keys, rows, ~np.isnan(keys), descending=descending))


def list_searchable(schema: Schema) -> tuple[str, ...]:
    """Return the fields that a search looks at: those with texts."""
    return tuple(name for name, field in schema.items() if _has_texts(field))


def _has_texts(field: Field) -> bool:
    if isinstance(field, Category):
        return field.dtype == "string"
    return IS_TEXT[type(field)](field)


def find_text(columns: Columns, names: Iterable[str], text: str, num_rows: int) -> Mask:
    """Return the rows in which a field contains a text; upper and lower case do not differ."""
    found = np.zeros(num_rows, np.bool_)
    for name in names:
        found |= _find_in_column(columns[name], text)
    return found


def _find_in_column(column: Column, text: str) -> Mask:
    if isinstance(column, Bytes):
        found = _find_in_strings(column, text)
    else:
        values, offsets = Ragged.of(column).flatten()
        items = _find_in_strings(Bytes.of(values), text)
        sums = np.concatenate([[0], np.cumsum(items)])
        found = sums[offsets[1:]] > sums[offsets[:-1]]
    return found if column.present is None else found & column.present


def _find_in_strings(column: Bytes, text: str) -> Mask:
    if not text.isascii():  # letters whose lower case has other bytes, one text at a time
        wanted = text.casefold()
        folded = (value.decode(errors="replace").casefold() for value in column)
        return np.fromiter((wanted in value for value in folded), np.bool_, len(column))
    packed = column.pack()
    ends: NDArray[np.int64] = packed.stops
    hay, needle = packed.arena[: int(ends[-1]) if len(ends) else 0].tobytes().lower(), text.lower().encode()
    found = np.zeros(len(column), np.bool_)
    at = hay.find(needle)
    while at >= 0:
        row = int(np.searchsorted(ends, at, side="right"))
        end = int(ends[row])
        is_inside = at + len(needle) <= end
        found[row] |= is_inside
        at = hay.find(needle, end if is_inside else at + 1)
    return found
