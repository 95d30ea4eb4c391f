"""Measurement of one field in one block: moments, samples, lengths, sizes, frequencies.

In: a field, its column, and the rows that count. Out: `FieldMeasure`, which merges with measures of other
blocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Bytes, Column, Dense, Mask, Ragged
from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import Date
from penstock.schema.field import Field
from penstock.schema.picture import Picture, read_picture
from penstock.schema.scalar import Bytes as BytesField
from penstock.schema.scalar import Category, Image, ImageFormat, Number, Text
from penstock.statistics.frequency import Frequency, Histogram
from penstock.statistics.moments import ElementMoments, Moments, measure_rows
from penstock.statistics.quantiles import RowSample, Selection, find_quantiles, take_evenly
from penstock.statistics.summary import Distribution
from penstock.storage.deferred import Deferred

_PIECE_BYTES = 1 << 22  # of text, measured at a time
MAX_ELEMENTS = 4096  # of an array; larger arrays, such as pixels, have only statistics of all elements


class Spread:
    """Moments of all numbers and a sample of them."""

    __slots__ = ("moments", "sample")

    def __init__(self, moments: Moments | None = None, sample: RowSample | None = None) -> None:
        self.moments = Moments() if moments is None else moments
        self.sample = RowSample() if sample is None else sample

    @classmethod
    def of(
        cls,
        numbers: NDArray[Any],
        keys: NDArray[np.uint64],
        sampled: NDArray[Any],
        keep: Mask | None = None,
    ) -> Spread:
        """Measure the numbers of a block where `keep` is True; `keys` are the ascending keys of `sampled`."""
        return cls(Moments.of(numbers, keep), RowSample(keys, sampled))

    def blank(self) -> Spread:
        """Return a spread of no numbers."""
        return Spread()

    def merge(self, other: Spread) -> None:
        """Add numbers that were measured apart."""
        self.moments.merge(other.moments)
        self.sample.merge(other.sample)

    def summarise(self) -> Distribution:
        """Return the distribution of the numbers."""
        moments = self.moments
        ordered = self.sample.values()
        has_any = moments.num_finite > 0
        return Distribution(
            num_values=moments.num_values,
            num_nan=moments.num_nan,
            num_inf=moments.num_inf,
            num_zero=moments.num_zero,
            min=moments.minimum,
            max=moments.maximum,
            mean=moments.mean if has_any else None,
            deviation=moments.deviation if has_any else None,
            quantiles=find_quantiles(ordered) if len(ordered) else None,
            num_sampled=len(ordered),
        )


Part: TypeAlias = Spread | Frequency | ElementMoments


class FieldMeasure:
    """Rows that have a field, rows that lack it, and the parts of its type, named as in `FieldStatistics`."""

    __slots__ = ("count", "missing", "parts")

    def __init__(self, count: int = 0, missing: int = 0) -> None:
        self.count = count
        self.missing = missing
        self.parts: dict[str, Part] = {}

    def merge(self, other: FieldMeasure) -> None:
        """Add the rows of another block, which stays as it is."""
        self.count += other.count
        self.missing += other.missing
        for name, part in other.parts.items():
            mine = self.parts.get(name)
            if mine is None:
                mine = self.parts[name] = part.blank()
            mine.merge(part)  # type: ignore[arg-type]  # parts of one name are of one type


def measure_field(field: Field, column: Column | Deferred, rows: Selection, max_values: int) -> FieldMeasure:
    """Measure one column of a block; at most `max_values` distinct values are counted."""
    present = rows.where(column.present)
    measure = FieldMeasure(present.num_rows, rows.num_rows - present.num_rows)
    if present.num_rows:
        MEASURES[type(field)](measure, field, column, present, max_values)
    return measure


def _spread(numbers: NDArray[Any], rows: Selection) -> Spread:
    return Spread.of(numbers, rows.keys, numbers.take(rows.sampled), rows.keep)


def _measure_category(
    measure: FieldMeasure, field: Category, column: Any, rows: Selection, max_values: int
) -> None:
    if field.kind == "int64":
        measure.parts["frequencies"] = Frequency.of_ints(rows.take(Dense.of(column).values), max_values)
        return
    strings = _as_bytes(column, rows)
    measure.parts["frequencies"] = Frequency.of_strings(
        strings.arena, strings.starts, strings.stops, rows.keep, max_values
    )


def _measure_numbers(measure: FieldMeasure, _: Field, column: Dense, rows: Selection, __: int) -> None:
    values = Dense.of(column).values
    if values.ndim == 1:
        measure.parts["values"] = _spread(values, rows)
    else:
        matrix = values.reshape(len(values), -1)
        starts = rows.sampled * matrix.shape[1]
        sampled = take_evenly(matrix.reshape(-1), starts, np.full_like(starts, matrix.shape[1]))
        _measure_vectors(measure, matrix, rows.keep, RowSample(rows.keys, sampled))


def _measure_vectors(
    measure: FieldMeasure, vectors: NDArray[Any], keep: Mask | None, sample: RowSample
) -> None:
    """Measure all elements of arrays of one size, and if the arrays are small, each element by itself."""
    if vectors.shape[1] > MAX_ELEMENTS:
        wanted = vectors if keep is None else vectors[keep]
        measure.parts["values"] = Spread(Moments.of(wanted), sample)
    else:
        moments, elements = measure_rows(vectors, keep)
        measure.parts["elements"] = elements
        measure.parts["values"] = Spread(moments, sample)


def _measure_lists(
    measure: FieldMeasure, field: Sequence, column: Ragged, rows: Selection, max_values: int
) -> None:
    measure.parts["lengths"] = _spread(Ragged.of(column).lengths, rows)
    values, offsets = column.flatten()
    lengths = np.diff(offsets)
    # Which of the values from offsets[0] on belong to the rows.
    keep = None if rows.keep is None else np.repeat(rows.keep, lengths)
    whole = slice(int(offsets[0]), int(offsets[-1]))
    if not isinstance(values, np.ndarray):
        starts, stops = values.starts[whole], values.stops[whole]
        if field.dtype == "string":
            frequency = Frequency.of_strings(values.arena, starts, stops, keep, max_values)
            measure.parts["frequencies"] = frequency
        else:
            sizes = values.sizes
            sampled = take_evenly(sizes, offsets[rows.sampled], lengths[rows.sampled])
            wanted = sizes[whole] if keep is None else sizes[whole][keep]
            measure.parts["bytes"] = Spread.of(wanted, rows.keys, sampled)
        return
    width = values.shape[1] if values.ndim > 1 else 1  # steps of one length come as the rows of a matrix
    starts, counts = offsets[rows.sampled] * width, lengths[rows.sampled] * width
    sampled = take_evenly(values.reshape(-1), starts, counts)
    sample = RowSample(rows.keys, sampled)
    if values.ndim > 1:
        _measure_vectors(measure, values[whole], keep, sample)
        return
    if values.dtype != np.int64:
        measure.parts["values"] = Spread(Moments.of(values[whole], keep), sample)
        return
    histogram = Histogram.of_lists(values, offsets, rows.keep)
    if histogram is not None:
        # Counts describe all that the numbers do, and are fewer.
        measure.parts["values"] = Spread(Moments.of_counts(*histogram.entries()), sample)
        measure.parts["frequencies"] = Frequency.of_histogram(histogram, max_values)
        return
    numbers = values[whole] if keep is None else values[whole][keep]
    measure.parts["values"] = Spread(Moments.of(numbers), sample)
    measure.parts["frequencies"] = Frequency.of_ints(numbers, max_values)


def _measure_bytes(
    measure: FieldMeasure, _: Field, column: Bytes | Deferred, rows: Selection, __: int
) -> None:
    measure.parts["bytes"] = _spread(column.sizes, rows)


def _measure_text(
    measure: FieldMeasure, _: Field, column: Bytes | Deferred, rows: Selection, __: int
) -> None:
    measure.parts["bytes"] = _spread(column.sizes, rows)
    measure.parts["characters"] = _spread(_count_characters(_as_bytes(column, rows)), rows)


def _measure_image(
    measure: FieldMeasure, field: Image, column: Bytes | Deferred, rows: Selection, _: int
) -> None:
    measure.parts["bytes"] = _spread(column.sizes, rows)
    formats: Counter[str] = Counter()
    if isinstance(column, Deferred) and column.widths is not None and column.heights is not None:
        widths, heights = column.widths, column.heights
    else:
        widths, heights = np.zeros((2, len(column)), np.int64)
        for row in rows.take(np.arange(len(column))).tolist():
            picture = _read_image(column, row)
            if picture is not None:
                formats[picture.format] += 1
                widths[row], heights[row] = picture.width, picture.height
    known = rows.where(widths > 0)  # both are known, or none is
    if known.num_rows:
        measure.parts["widths"] = _spread(widths, known)
        measure.parts["heights"] = _spread(heights, known)
    if field.format is not None:
        formats = Counter({field.format: rows.num_rows})
    if formats:
        counts = {name.encode(): count for name, count in formats.items()}
        measure.parts["formats"] = Frequency.of_counts(counts, len(get_args(ImageFormat)))


def _read_image(column: Bytes | Deferred, row: int) -> Picture | None:
    if isinstance(column, Bytes):
        data = column.arena.data[column.starts[row] : column.stops[row]]
    elif column.values is not None:
        data = memoryview(column.values[row])
    else:
        return None  # a file, which was checked when it was opened
    return read_picture(data)


def _as_bytes(column: Bytes | Deferred, rows: Selection) -> Bytes:
    """Return strings in an arena; strings in files are not read for this, and count as empty."""
    if isinstance(column, Bytes):
        return column
    values: list[bytes | memoryview] = [b""] * len(column)
    if column.values is not None:
        for row in rows.take(np.arange(len(column))).tolist():
            values[row] = column.values[row]
    return Bytes.from_values(values)


# How to measure a column, by the type of its field.
MEASURES: dict[type[Field], Callable[[FieldMeasure, Any, Any, Selection, int], None]] = {
    Number: _measure_numbers,
    Category: _measure_category,
    Date: _measure_numbers,
    Text: _measure_text,
    Image: _measure_image,
    BytesField: _measure_bytes,
    Sequence: _measure_lists,
    Tensor: _measure_numbers,
}


def _count_characters(strings: Bytes) -> NDArray[np.int64]:
    """Return the number of characters of each UTF-8 string: its bytes, except those inside a character."""
    sizes = strings.sizes
    bounds = np.array([strings.starts, strings.stops])
    num_before = np.zeros_like(bounds)  # bytes inside a character that lie before each bound
    num_all = 0
    for first in range(0, len(strings.arena), _PIECE_BYTES):
        # Bytes 0x80 to 0xbf; as signed ones, those below -64.
        piece = strings.arena[first : first + _PIECE_BYTES].view(np.int8)
        inside = np.flatnonzero(piece < -64)
        if not num_all and not len(inside):
            continue  # no character so far has several bytes
        is_here = (bounds >= first) & (bounds <= first + len(piece))
        num_before[is_here] = num_all + np.searchsorted(inside, bounds[is_here] - first)
        num_all += len(inside)
    counts: NDArray[np.int64] = sizes - (num_before[1] - num_before[0])
    return counts
