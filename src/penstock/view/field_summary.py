"""Statistics of each field of the selected records, with a small histogram or the most frequent values.

In: selected rows. Out: `Summary`. At most 10,000 records, spread evenly over the selection, are read; the
statistics of the whole train split come from the manifest, where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.columns import CodedColumns, Dense, Ragged
from penstock.decode.plan import DecodePlan
from penstock.decode.reader import read_scattered
from penstock.decode.sample import round_measure, show_number
from penstock.read.rows import Rows
from penstock.read.scatter import Scatter
from penstock.schema.array import Sequence
from penstock.schema.date import DAY, Date, DateUnit, show_date
from penstock.schema.field import Field
from penstock.schema.scalar import Category, Number, Text
from penstock.schema.schema import Schema
from penstock.statistics.frequency import choose_edges, count_values
from penstock.statistics.statistics import Statistics, measure_block
from penstock.statistics.summary import Distribution, FieldStatistics
from penstock.view.opened_data import TRAIN, OpenedData, cut_by_bytes
from penstock.view.query import Query
from penstock.view.scan_jobs import Watch
from penstock.view.selection import BadRows, SelectedRows

MAX_SAMPLE: Final = 10_000
"""Most records that statistics are computed from."""

MAX_FIELDS: Final = 100
"""Most fields that one summary has: those from `Query.column` on."""

_SAMPLE_BYTES: Final = 64 << 20
_LEAST_SAMPLE: Final = 100
_BLOCK_ROWS: Final = 512
_BLOCK_BYTES: Final = 8 << 20
_BINS: Final = 24
_MOST_VALUES: Final = 8
_VALUE_CHARS: Final = 60


@dataclass(frozen=True)
class Bar:
    """A frequent value, or a bin of a histogram.

    Attributes:
        label: The value, or the range of the bin.
        count: Number of occurrences.
        share: Height or length of the bar, from 0 to 1.
        percent: Share of the records that have the field; None for a bin.
        condition: Filter that selects the records with the value; "" if there is none.
    """

    label: str
    count: int
    share: float
    percent: float | None = None
    condition: str = ""


@dataclass(frozen=True)
class FieldSummary:
    """Statistics of one field.

    Attributes:
        name: Name of the field.
        type_name: Type of the field.
        role: Role of the field.
        description: Short description of its values.
        count: Number of records that have it.
        missing: Number of records that lack it.
        numbers: Names and values of its statistics.
        bins: Histogram of its numbers or lengths.
        values: Its most frequent values.
        num_distinct: Number of distinct values; 0 if they are not counted.
        measured: What the numbers and the histogram are about, such as "characters"; "" for the values.
    """

    name: str
    type_name: str
    role: str
    description: str
    count: int
    missing: int
    numbers: tuple[tuple[str, str], ...] = ()
    bins: tuple[Bar, ...] = ()
    values: tuple[Bar, ...] = ()
    num_distinct: int = 0
    measured: str = ""


@dataclass(frozen=True)
class Summary:
    """Statistics of all fields of a selection.

    Attributes:
        fields: Statistics by field.
        num_records: Number of selected records.
        num_read: Number of records that were read for the histograms, and for the numbers if not `is_exact`.
        num_bad: Number of those that could not be read.
        is_exact: Whether the numbers describe all selected records.
        first: Number of the first of the fields in the schema.
    """

    fields: tuple[FieldSummary, ...]
    num_records: int
    num_read: int
    num_bad: int
    is_exact: bool
    first: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether no record could be read."""
        return self.num_read == self.num_bad

    @property
    def nbytes(self) -> int:
        """Approximate number of bytes."""
        return 8192 * len(self.fields)


def summarize(data: OpenedData, query: Query, selected: SelectedRows, watch: Watch) -> Summary:
    """Return the statistics of a selection; of many fields, those from `query.column` on."""
    first = min(query.column, max(0, len(data.schema) - 1))
    names = tuple(data.schema)[first : first + MAX_FIELDS]
    rows, schema = data.rows(query.split), data.schema.select(names)
    sample = _choose_rows(rows, selected)
    plan, scatter, bad = DecodePlan(schema, strict=data.strict), Scatter(rows), BadRows()
    statistics, numbers = Statistics(schema), _Numbers(schema)
    for block in cut_by_bytes(rows, sample, _BLOCK_BYTES, _BLOCK_ROWS):
        watch.report(statistics.num_rows + len(bad.errors_by_row), len(sample))
        columns, kept = read_scattered(scatter, plan, bad, block)
        good = block if kept is None else block[kept]
        # The row number decides which rows are in the sample for quantiles: all of them, as they are few.
        statistics.merge(measure_block(schema, columns, None, good.astype(np.uint64)))  # type: ignore[arg-type]
        numbers.add(columns)
    is_all = len(sample) == len(selected)
    found: Mapping[str, FieldStatistics] = statistics.fields()
    is_whole_train = query.split == TRAIN and len(selected) == len(rows) and bool(data.statistics)
    if is_whole_train and set(schema) <= set(data.statistics):
        found = data.statistics
    fields = [_describe(name, schema[name], found[name], numbers.bins(name)) for name in schema]
    is_exact = is_all or found is data.statistics
    return Summary(tuple(fields), len(selected), len(sample), len(bad.errors_by_row), is_exact, first)


def _choose_rows(rows: Rows, selected: SelectedRows) -> NDArray[np.int64]:
    """Return evenly spread rows of a selection, fewer of large records."""
    num_records = len(selected)
    most = MAX_SAMPLE
    if num_records:
        tried = selected.take(np.unique(np.linspace(0, num_records - 1, 64).astype(np.int64)))
        mean_bytes = sum(rows.frame_bytes(row, row + 1) for row in tried.tolist()) / len(tried)
        most = max(_LEAST_SAMPLE, min(most, int(_SAMPLE_BYTES / max(1.0, mean_bytes))))
    if num_records <= most:
        return selected.take(np.arange(num_records, dtype=np.int64))
    return selected.take(np.linspace(0, num_records - 1, most).astype(np.int64))


class _Numbers:
    """The numbers, or lengths, of the sampled records, for histograms."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._parts: dict[str, list[NDArray[np.float64]]] = {name: [] for name in schema}

    def add(self, columns: CodedColumns) -> None:
        """Add the records of a block."""
        for name, field in self._schema.items():
            column = columns[name]
            values: NDArray[Any] | None = None
            if isinstance(column, Dense) and column.values.ndim == 1:
                values = column.values
            elif isinstance(field, Sequence):
                values = Ragged.of(column).lengths
            elif isinstance(field, Text):
                values = column.sizes  # type: ignore[union-attr]  # bytes, of texts
            if values is not None:
                present = values if column.present is None else values[column.present]
                self._parts[name].append(present.astype(np.float64))

    def bins(self, name: str) -> tuple[Bar, ...]:
        """Return the histogram of a field; empty if it has no numbers."""
        values = np.concatenate(self._parts[name]) if self._parts[name] else np.empty(0)
        return make_bins(values, getattr(self._schema[name], "unit", None))


def make_bins(values: NDArray[np.float64], unit: DateUnit | None = None) -> tuple[Bar, ...]:
    """Return a histogram of the finite numbers, with the bins of a report; outliers are in the end bins.

    `unit`: unit of dates; None for other numbers.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return ()
    edges = choose_edges(finite, _BINS)
    counts = count_values(finite, edges).tolist()
    labels = _label_bins(finite, edges, unit)
    return tuple(
        Bar(label, number, number / max(counts)) for label, number in zip(labels, counts, strict=True)
    )


def _label_bins(finite: NDArray[np.float64], edges: NDArray[np.float64], unit: DateUnit | None) -> list[str]:
    """Return the value or the range of each bin."""
    show: Callable[[Any], str] = show_number if unit is None else partial(show_date, unit=unit)
    show_end: Callable[[float], str] = "{:.4g}".format if unit is None else show
    if edges[0] == edges[-1]:
        return [show(edges[0])]
    is_whole = bool((edges[:-1] + 1 == edges[1:]).all() and (finite == np.rint(finite)).all())
    if is_whole:
        labels = [show(low + 0.5) for low in edges[:-1].tolist()]
    else:
        labels = [f"{show_end(low)} to {show_end(high)}" for low, high in pairwise(edges.tolist())]
    if finite.min() < edges[0]:
        labels[0] = f"up to {labels[0] if is_whole else show_end(edges[1])}"
    if finite.max() > edges[-1]:
        labels[-1] = f"from {labels[-1] if is_whole else show_end(edges[-2])}"
    return labels


def _describe(name: str, field: Field, statistics: FieldStatistics, bins: tuple[Bar, ...]) -> FieldSummary:
    measured, distribution = _find_distribution(field, statistics)
    frequencies = statistics.frequencies or statistics.formats
    values: tuple[Bar, ...] = ()
    if frequencies is not None and frequencies.counts:
        total, most = max(1, statistics.count), frequencies.counts[0]
        pairs = zip(frequencies.values[:_MOST_VALUES], frequencies.counts, strict=False)
        values = tuple(
            Bar(
                _show_value(value), number, number / most, number / total, _make_condition(name, field, value)
            )
            for value, number in pairs
        )
    return FieldSummary(
        name,
        field.type_name,
        field.role,
        field.describe(),
        statistics.count,
        statistics.missing,
        () if distribution is None else tuple(_list_numbers(distribution, getattr(field, "unit", None))),
        () if isinstance(field, Category) else bins,
        values,
        0 if frequencies is None else frequencies.num_distinct,
        measured,
    )


def _find_distribution(field: Field, statistics: FieldStatistics) -> tuple[str, Distribution | None]:
    if isinstance(field, Number | Date):
        return "", statistics.values
    if isinstance(field, Category):
        return "", None
    for measured, part in (
        ("characters", statistics.characters),
        ("values per record", statistics.lengths),
        ("width in pixels", statistics.widths),
        ("", statistics.values),
        ("bytes", statistics.bytes),
    ):
        if part is not None and part.num_values:
            return measured, part
    return "", None


def _list_numbers(part: Distribution, unit: DateUnit | None) -> list[tuple[str, str]]:
    if unit is not None:
        return _list_dates(part, unit)
    median = None if part.quantiles is None else part.quantiles[len(part.quantiles) // 2]
    measures = (
        ("min", part.min),
        ("mean", _round(part.mean)),
        ("median", _round(median)),
        ("max", part.max),
        ("deviation", _round(part.deviation)),
    )
    listed = [(name, show_number(value)) for name, value in measures if value is not None]
    return listed + [
        (name, str(number)) for name, number in (("NaN", part.num_nan), ("infinite", part.num_inf)) if number
    ]


def _list_dates(part: Distribution, unit: DateUnit) -> list[tuple[str, str]]:
    median = None if part.quantiles is None else part.quantiles[len(part.quantiles) // 2]
    dates = (("first", part.min), ("mean", part.mean), ("median", median), ("last", part.max))
    listed = [(name, show_date(float(value), unit)) for name, value in dates if value is not None]
    if part.deviation is None:
        return listed
    days = _round(part.deviation / (DAY if unit == "microseconds" else 1))
    return [*listed, ("deviation", f"{show_number(days)} days")]


def _round(value: float | None) -> float | None:
    return None if value is None else round_measure(float(value))


def _make_condition(name: str, field: Field, value: str | bytes | int) -> str:
    """Return the filter that selects the records in which a category has a value."""
    if not isinstance(field, Category) or isinstance(value, bytes) or "`" in name:
        return ""
    if isinstance(value, int):
        return f"`{name}` == {value}"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'`{name}` == "{escaped}"'


def _show_value(value: str | bytes | int) -> str:
    text = value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= _VALUE_CHARS else f"{text[:_VALUE_CHARS]}…"
