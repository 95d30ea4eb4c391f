"""Reading of one split: its records as samples, payloads, columns and tables.

In: rows of files and a schema. Out: what `Split` gives its users, other than batches; samples and their
display come from here.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, SupportsIndex, overload

import numpy as np

from penstock.columns import Columns, Payload
from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.decode.reader import ColumnBlock, each_block, read_columns, read_payloads
from penstock.decode.sample import Sample, iterate_samples
from penstock.decode.sample_view import MAX_FIELDS, MAX_SHOWN, SampleList, choose_fields, draw_samples
from penstock.errors import OutOfMemoryError, PayloadError, PenstockError, importing
from penstock.foundation.html import Html, display_safely, make_block
from penstock.foundation.option_checks import check_count
from penstock.foundation.wording import count, show
from penstock.read.rows import Rows, naming_largest
from penstock.schema.schema import Schema
from penstock.storage.store_path import AnyPath

if TYPE_CHECKING:
    from penstock.decode.arrow import RecordBatch, Table  # pyarrow, which only the Arrow methods need

_BLOCK_ROWS: Final = 1 << 14
_BLOCK_BYTES: Final = 16 << 20
_ARROW_ROWS: Final = 1 << 16
_ARROW_BYTES: Final = 32 << 20
_SHOWN_BYTES: Final = 32 << 20  # of all records in a display


class SplitReader:
    """The records of one split, read on demand.

    Attributes:
        name: Name of the split.
        schema: Schema of the records: name and type of each field.
    """

    def __init__(
        self, name: str, rows: Rows, schema: Schema, payload: Payload, losses: Losses, *, strict: bool
    ) -> None:
        self.name = name
        self.schema = schema
        self._rows = rows
        self._payload = payload
        self._losses = losses
        self._strict = strict
        self._plans: dict[tuple[str, ...] | None, tuple[Schema, DecodePlan]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> list[Sample]: ...
    def __getitem__(self, index: int | slice) -> Sample | list[Sample]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return list(self._samples(start, max(start, stop), self._losses))
            return [
                sample
                for row in range(start, stop, step)
                for sample in self._samples(row, row + 1, self._losses)
            ]
        return self.read_sample(index)

    def read_sample(self, index: SupportsIndex, fields: Iterable[str] | None = None) -> Sample:
        """Return one record as a sample.

        Args:
            index: Number of the record; a negative number counts from the end.
            fields: Names of the fields to read. Defaults to all fields.

        Raises:
            IndexError: There is no such record.
            PenstockError: The record is bad. A record requested by its number is never skipped.
        """
        row = operator.index(index)
        if not -len(self) <= row < len(self):
            raise IndexError(f"split {self.name!r} has {len(self)} records: record {row} is out of range")
        row %= len(self)
        schema, plan = self._plan(fields)
        columns, num_rows = read_columns(self._rows, plan, Losses("raise", 0), row, row + 1)
        with naming_largest(self._rows, np.arange(row, row + 1)):
            return next(iterate_samples(columns, schema, num_rows))

    def __iter__(self) -> Iterator[Sample]:
        rows = self._rows.in_order()
        return each_block(rows, self._losses, lambda a, b, losses: self._samples(a, b, losses, rows))

    @property
    def paths(self) -> tuple[AnyPath, ...]:
        """Paths of the files, in the order of their records."""
        return tuple(self._rows.shards.paths)

    def records(self) -> Iterator[bytes]:
        """Yield the payload of each record as bytes, whether or not it is an Example."""
        rows = self._rows.in_order()
        return each_block(rows, self._losses, lambda a, b, losses: read_payloads(rows, losses, a, b))

    def columns(
        self, start: int = 0, stop: int | None = None, fields: Iterable[str] | None = None
    ) -> Columns:
        """Return the values of records `start` to `stop` as columns.

        Args:
            start: First record; a negative number counts from the end, as in a slice.
            stop: Exclusive end. Defaults to the end of the split.
            fields: Names of the fields to read. Defaults to all fields. Values of other fields are not
                checked, so a record with an error in one of those is good here.

        Returns:
            One column per field, with one row per record. Skipped records have no row.
        """
        start, stop, _ = slice(start, stop).indices(len(self))
        _, plan = self._plan(fields)
        columns, _ = read_columns(self._rows, plan, self._losses, start, max(start, stop))
        return columns

    def blocks(self) -> Iterator[ColumnBlock]:
        """Yield all records in order as blocks of columns, each of at most 16,384 rows and about 16 MiB."""
        _, plan = self._plan(None)
        rows = self._rows.in_order()
        for start, stop in rows.blocks(_BLOCK_ROWS, _BLOCK_BYTES):
            columns, num_rows = read_columns(rows, plan, self._losses, start, stop)
            yield ColumnBlock(columns, num_rows, rows.frame_bytes(start, stop))

    def iter_arrow(
        self, fields: Iterable[str] | None = None, start: int = 0, stop: int | None = None
    ) -> Iterator[RecordBatch]:
        """Yield the records in order as Arrow record batches of at most about 32 MiB each.

        Args:
            fields: Names of the fields to read. Defaults to all fields.
            start: First record; a negative number counts from the end, as in a slice.
            stop: Exclusive end. Defaults to the end of the split.

        Raises:
            FieldError: A text is not UTF-8, the only encoding that Arrow supports.
        """
        from penstock.decode.arrow import arrow_schema, make_batch  # noqa: PLC0415

        schema, plan = self._plan(fields)
        target = arrow_schema(schema)
        rows = self._rows.in_order()
        first, last, _ = slice(start, stop).indices(len(self))
        for begin, end in rows.blocks(_ARROW_ROWS, _ARROW_BYTES, first, last):
            columns, _ = read_columns(rows, plan, self._losses, begin, end)
            yield make_batch(columns, schema, target)

    def to_arrow(self, fields: Iterable[str] | None = None) -> Table:
        """Return all records as an Arrow table; see `iter_arrow`."""
        from penstock.decode.arrow import arrow_schema, make_table  # noqa: PLC0415

        return make_table(arrow_schema(self._plan(fields)[0]), self.iter_arrow(fields))

    def to_pandas(self, fields: Iterable[str] | None = None) -> Any:
        """Return all records as a pandas DataFrame, which takes the memory of all of them.

        Integers and booleans with missing values have pandas' types "Int64" and "boolean", so that no digit
        is lost; tensors are NumPy arrays.

        Args:
            fields: Names of the fields to read. Defaults to all fields.

        Raises:
            MissingPackageError: pandas or pyarrow is not installed.
            FieldError: A text is not UTF-8, the only encoding that Arrow supports.
        """
        with importing("to_pandas()"):
            from penstock.decode.arrow import make_frame  # noqa: PLC0415

            return make_frame(self.to_arrow(fields))

    def head(self, num_samples: int = 5) -> SampleList:
        """Return the first samples, as a list that is shown as a table or, in a notebook, as a grid.

        Args:
            num_samples: Number of records to read. Bad ones are treated as by a slice.

        Raises:
            OptionError: The number is negative, or not an integer.

        Example:
            >>> import penstock as ps
            >>> [sample["name"] for sample in ps.open("pets/")["train"].head(1)]
            ['Rex']
        """
        check_count("head", "num_samples", num_samples, least=0)
        return SampleList(self[:num_samples], self.schema)

    @property
    def num_skipped(self) -> int:
        """Number of bad records skipped so far."""
        return len(self._losses)

    @property
    def rejected(self) -> list[PenstockError]:
        """Errors of the bad records that were left out so far, with `on_error` "skip" or "collect"."""
        return self._losses.errors()

    def _repr_html_(self) -> str:
        title = f"{type(self).__name__} {show(self.name)}: {count(len(self), 'record')}"
        return display_safely(title, lambda: make_block(title, self._draw_samples()))

    def _draw_samples(self) -> Html:
        """Return the first records as a grid; only displayed values are read."""
        chosen = choose_fields(self.schema)[:MAX_FIELDS]
        schema, plan = self._plan(chosen if len(chosen) < len(self.schema) else None)
        rows = self._rows.in_order()  # of a compressed file, only the beginning is inflated

        def read() -> Iterator[tuple[int, Sample | Exception]]:
            left = _SHOWN_BYTES
            for row in range(len(rows)):
                try:
                    size = rows.frame_bytes(row, row + 1)
                    if size > left:
                        yield row, OutOfMemoryError(f"the record has {size:,} bytes, too many to show")
                        continue
                    left -= size
                    # With separate losses: a display does not count as a read.
                    columns, num_rows = read_columns(rows, plan, Losses("raise", 0), row, row + 1)
                    yield row, next(iterate_samples(columns, schema, num_rows))
                except (PenstockError, OSError) as error:
                    yield row, error

        return draw_samples(self.schema, read(), len(self), MAX_SHOWN)

    def _samples(self, start: int, stop: int, losses: Losses, rows: Rows | None = None) -> Iterator[Sample]:
        schema, plan = self._plan(None)
        columns, num_rows = read_columns(rows or self._rows, plan, losses, start, stop)
        with naming_largest(self._rows, np.arange(start, stop)):
            yield from iterate_samples(columns, schema, num_rows)

    def _check_payload(self) -> None:
        if self._payload == "other":
            raise PayloadError(
                f"the records of split {self.name!r} are not Examples",
                path=self._rows.shards[0].path,
                advice="Read their payloads with records().",
            )

    def _plan(self, fields: Iterable[str] | None) -> tuple[Schema, DecodePlan]:
        self._check_payload()
        key = None if fields is None else (fields,) if isinstance(fields, str) else tuple(fields)
        if key not in self._plans:
            schema = self.schema if key is None else self.schema.select(key)
            self._plans[key] = (schema, DecodePlan(schema, strict=self._strict))
        return self._plans[key]
