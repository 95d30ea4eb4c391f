"""Questions about the opened data: pages of records, one record, statistics, pictures.

In: queries. Out: plain objects for templates, or `Progress` while a scan is running. No web code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from penstock.decode.pixels import PixelError
from penstock.errors import OptionError, PenstockError
from penstock.foundation.wording import show, unknown_name
from penstock.schema.array import Tensor
from penstock.schema.date import Date
from penstock.schema.scalar import Category, Image, Number
from penstock.view.cell import MISSING, SIZES, Cell, draw_picture, is_picture, make_cell
from penstock.view.field_summary import Summary, summarize
from penstock.view.opened_data import OpenedData
from penstock.view.predictions import Outcome, RunPredictions
from penstock.view.query import Query
from penstock.view.records import DumpLine, Frame, Record, RecordReader, dump_payload, iterate_payload
from penstock.view.scan_jobs import Progress, ScanJobs, SerialWork
from penstock.view.selection import Selector

TABLE_FIELDS: Final = 20
"""Most fields that a table shows at a time."""

CARD_FIELDS: Final = 8
"""Most fields that a card shows, beside its picture."""

_CARD_ORDER: Final = ("id", "target", "input", "weight", "unused")  # of roles: what identifies a record first


@dataclass(frozen=True)
class ShownRecord:
    """A record on a page.

    Attributes:
        record: The record, with its location and its error; without its values, which may be large.
        at: Its number among the selected records.
        cells: Cells by field; of the fields that the page shows.
        has_values: Whether at least one field could be read.
        predictions: Predictions by target; empty without a run.
    """

    record: Record
    at: int
    cells: Mapping[str, Cell]
    has_values: bool = False
    predictions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def is_wrong(self) -> bool:
        """Whether a target is predicted wrongly."""
        return any(each["is_wrong"] for each in self.predictions.values())


@dataclass(frozen=True)
class Page:
    """A page of records.

    Attributes:
        query: The query, with the number of a page that exists.
        records: The records.
        num_selected: Number of records that the query selects.
        num_pages: Number of pages.
        num_bad: Number of records that a filter could not read.
        fields: Fields that the page shows; of a table of a run, those beside its targets.
        targets: Targets of a run, whose predictions a table shows beside them.
        picture: Field that cards show as their picture; None if there is none.
        sorted_by: Number of bytes of each text that sorting compared; 0 if all were compared.
    """

    query: Query
    records: tuple[ShownRecord, ...]
    num_selected: int
    num_pages: int
    num_bad: int
    fields: tuple[str, ...]
    picture: str | None
    sorted_by: int = 0
    targets: tuple[str, ...] = ()


@dataclass(frozen=True)
class RecordPage:
    """One record with everything that is known about it.

    Attributes:
        shown: The record and all its cells.
        frame: Its header and checksums; None if they cannot be read.
        frame_error: Why the header cannot be read.
        dump: A part of its payload as a hex dump.
        dump_start: Offset of that part in the payload.
        pictures: Why pictures cannot be drawn, by field.
    """

    shown: ShownRecord
    frame: Frame | None
    frame_error: PenstockError | None
    dump: tuple[DumpLine, ...]
    dump_start: int
    pictures: Mapping[str, str]


class Browser:
    """Answers questions about opened data, and about the predictions of its run, if it has one."""

    def __init__(self, data: OpenedData) -> None:
        self.data = data
        self.predictions = None if data.run is None else RunPredictions(data)
        self._jobs = ScanJobs()
        self._work = SerialWork()
        self._reader = RecordReader(data)
        self._selector = Selector(data, self._jobs, self.predictions)

    @property
    def first_split(self) -> str:
        """Name of the split that is shown first."""
        if self.predictions is not None:
            return self.predictions.usual_split
        return next(iter(self.data.splits))

    @property
    def example_filter(self) -> str:
        """A filter that the fields of the data allow, as a hint; "" if there is none."""
        parts = []
        schema = self.data.schema
        number = next((name for name, each in schema.items() if isinstance(each, Number)), None)
        category = next((name for name, each in schema.items() if isinstance(each, Category)), None)
        if number is not None and number.isidentifier():
            parts.append(f"{number} > 3")
        if category is not None and category.isidentifier():
            values = getattr(schema[category], "values", None)
            parts.append(f"{category} == {show(values[0])}" if values else f"{category} is not None")
        date = next((name for name, each in schema.items() if isinstance(each, Date)), None)
        if date is not None and date.isidentifier():
            parts.append(f'{date} > "2024-01-31"')
        return " and ".join(parts)

    def list_sorts(self) -> list[tuple[str, str]]:
        """Return what records can be sorted by: values of `Query.sort`, and their descriptions."""
        return self._selector.list_sorts()

    def read_page(self, query: Query) -> Page | Progress:
        """Return a page of records; the last page, if there are fewer."""
        selected = self._selector.select(query)
        if isinstance(selected, Progress):
            return selected
        num_pages = max(1, -(-len(selected) // query.size))
        page = min(query.page, num_pages - 1)
        start = page * query.size
        rows = selected.rows(start, start + query.size)
        fields, picture = self._choose_fields(query)
        outcome = self._find_outcome(query.split)
        targets = self.data.targets if query.layout == "table" else ()
        names = (*targets, *fields, *([picture] if picture else []))

        def read() -> list[ShownRecord]:
            records = enumerate(self._reader.read(query.split, rows), start)
            return [self._show(record, at, names, outcome) for at, record in records]

        return Page(
            query.change(page=page),
            tuple(self._work.run(read)),
            len(selected),
            num_pages,
            selected.num_bad,
            fields,
            picture,
            0 if selected.sorted is None else selected.sorted.prefix,
            targets,
        )

    def find_row(self, query: Query, at: int) -> tuple[int, int] | Progress:
        """Return the row number of a selected record, and the number of selected records."""
        selected = self._selector.select(query)
        if isinstance(selected, Progress):
            return selected
        if not 0 <= at < len(selected):
            expected = f"a number from 0 to {len(selected) - 1}" if len(selected) else "none: nothing matches"
            raise OptionError("number of the selected record", field="at", expected=expected, got=at)
        return int(selected.rows(at, at + 1)[0]), len(selected)

    def read_record(self, split: str, row: int, at: int = 0, dump_start: int = 0) -> RecordPage:
        """Return one record with its bytes."""
        return self._work.run(partial(self._read_record, split, row, at, dump_start))

    def _read_record(self, split: str, row: int, at: int, dump_start: int) -> RecordPage:
        record = self._reader.read_one(split, row)
        schema = self.data.schema
        frame, frame_error, dump = None, None, []
        try:
            shard, frame = self._reader.read_frame(split, row)
            dump = dump_payload(shard, frame, dump_start)
        except PenstockError as error:
            frame_error = error
        pictures = {}
        for name in record.values:
            if is_picture(schema[name]):
                try:
                    draw_picture(schema[name], record.values[name], "small")
                except (PixelError, PenstockError) as error:
                    pictures[name] = str(error)
        shown = self._show(record, at, tuple(schema), self._find_outcome(split), is_long=True)
        start = dump[0].offset if dump else 0
        return RecordPage(shown, frame, frame_error, tuple(dump), start, pictures)

    def read_payload(self, split: str, row: int) -> tuple[int, Iterator[bytes]]:
        """Return the number of bytes of a record, and the bytes in parts."""
        shard, frame = self._work.run(partial(self._reader.read_frame, split, row))
        return frame.payload_bytes, iterate_payload(shard, frame)

    def draw_picture(self, split: str, row: int, name: str, size: str) -> bytes:
        """Return the picture of a field as a PNG file."""
        if name not in self.data.schema:
            raise unknown_name(name, self.data.schema)
        if size not in SIZES:
            raise OptionError("size", field="size", expected=" or ".join(SIZES), got=size)
        return self._work.run(partial(self._draw_picture, split, row, name, size))

    def _draw_picture(self, split: str, row: int, name: str, size: str) -> bytes:
        record = self._reader.read_one(split, row)
        if name not in record.values:
            fault = record.field_errors.get(name) if record.field_errors else record.error
            if fault is not None:
                raise fault
            raise PixelError("an image", "none: the record lacks the field")
        return draw_picture(self.data.schema[name], record.values[name], size)

    def summarize(self, query: Query) -> Summary | Progress:
        """Return the statistics of the selected records."""
        plain = query.change(sort="", size=Query().size, layout="grid")
        selected = self._selector.select(plain)
        if isinstance(selected, Progress):
            return selected
        if not self.data.is_example:
            return Summary((), len(selected), 0, 0, True)
        key = ("summary", *plain.selection_key(), plain.shard, plain.column)
        return self._jobs.ask(key, partial(summarize, self.data, plain, selected))

    def find_outcome(self, split: str) -> Outcome | Progress | PenstockError | None:
        """Return the predictions of a split, their progress or error; None if they were not asked for."""
        if self.predictions is None or not self.predictions.starts_at_once(split):
            return None
        try:
            return self.predictions.find(split, 0.0)
        except PenstockError as error:
            return error

    def close(self) -> None:
        """Stop all work, and delete temporary files."""
        self._jobs.close()
        self._work.close()
        if self.predictions is not None:
            self.predictions.close()

    def _find_outcome(self, split: str) -> Outcome | None:
        found = self.find_outcome(split)
        return found if isinstance(found, Outcome) else None

    def _choose_fields(self, query: Query) -> tuple[tuple[str, ...], str | None]:
        """Return the fields that a page shows, and the one whose picture a card shows."""
        schema = self.data.schema
        if query.layout == "table":
            others = [name for name in schema if name not in self.data.targets]
            return tuple(others[query.column : query.column + TABLE_FIELDS]), None
        picture = next((name for name, each in schema.items() if isinstance(each, Image)), None)
        if picture is None:
            pictures = (
                name for name, each in schema.items() if isinstance(each, Tensor) and is_picture(each)
            )
            picture = next(pictures, None)
        by_role = sorted(schema, key=lambda name: _CARD_ORDER.index(schema[name].role))
        return tuple(name for name in by_role if name != picture)[:CARD_FIELDS], picture

    def _show(
        self,
        record: Record,
        at: int,
        fields: tuple[str, ...],
        outcome: Outcome | None,
        *,
        is_long: bool = False,
    ) -> ShownRecord:
        values = record.values
        cells = {
            name: make_cell(self.data.schema[name], values[name], is_long=is_long)
            if name in values
            else MISSING
            for name in fields
        }
        predictions = {} if outcome is None else outcome.describe(record.row)
        return ShownRecord(replace(record, values={}), at, cells, bool(values), predictions)
