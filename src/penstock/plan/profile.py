"""Profiles of columns: counts and samples from the first rows, on which inference and warnings are based.

In: counts of `plan/survey.py`. Out: frozen profiles, independent of the library that read the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal, TypeAlias

from penstock.schema.notation import DateOrder, NumberFormat

RawKind: TypeAlias = Literal[
    "empty",
    "text",
    "int",
    "float",
    "bool",
    "date",
    "time",
    "bytes",
    "list",
    "array",
    "image",
    "mixed",
    "other",
]
"""Kind of the values of a column, independent of the library that holds them.

`time` is a point in time, a time of day or a duration. A `list` has any length, an `array` a fixed shape.
`image` is pixels, or a struct of bytes and path. `mixed` is values of several kinds. `other` cannot be held
by any field.
"""

TextKind: TypeAlias = Literal["int", "float", "bool", "date", "time", "list"]
"""Kind of value that every text of a column can be read as."""

NumberStyle: TypeAlias = Literal["currency", "percent", "grouped", "comma", "spaced"]
"""Style of a number that is not read as one: `$5.10`, `12 %`, `1,234`, `3,14`, ` 7`."""

DateMixture: TypeAlias = Literal["zones", "times"]
"""What is mixed in a column of dates that is kept as text: time zones, or dates and points in time."""

MAX_VALUES: Final = 256
"""Maximum number of distinct values that a profile lists, the same as for TFRecords."""


MISSING_MARKERS: Final = frozenset(
    {"na", "n/a", "n.a.", "#n/a", "<na>", "nan", "null", "none", "-", "--", "?"}
)
"""Texts that mark a missing value in a column whose other texts are all numbers or dates; case is ignored."""


def is_nan_text(word: str) -> bool:
    """Return whether a text is NaN, which can be a value of a float column."""
    return word.strip().lower() == "nan"


@dataclass(frozen=True, kw_only=True)
class TextProfile:
    """Profile of the texts of a column.

    Attributes:
        reads_as: Kind of value that all texts can be read as, or None.
        num_numbers: Number of texts that are numbers, if only some are.
        num_dates: Number of texts that are dates, if most are.
        num_tried: Number of texts that were checked for that.
        misfit: First text that is not a number, or not the name of an image, if most texts are.
        misfits: Most frequent texts that are neither numbers (or dates) nor markers of missing values.
        num_misfits: Number of distinct misfits.
        style: Most frequent style of numbers that are not read as numbers, or None.
        num_styled: Number of texts in that style.
        num_markers: Number of markers of missing values, if only some other texts are numbers.
        markers: Number of rows of each marker of a missing value, such as `NA`, if all other texts are
            numbers or dates. These rows count as missing.
        num_leading_zeros: Number of whole numbers with leading zeros, such as 00501.
        num_beyond_int64: Number of whole numbers outside the range of int64.
        max_bytes: Length of the longest text in bytes.
        mean_words: Average number of words per text.
        numbers: Format of the numbers, if they have a decimal comma or separators of thousands.
        example: A number in that format, if it was detected and not declared.
        may_be_grouped: Whether points in the first plain numbers may separate thousands, as in `1.234`.
        date_orders: Orders of day, month and year in which all texts are dates that are not in ISO 8601. If
            there is one, the texts are read as dates.
        date_kind: What the texts are in these orders.
        date_example: The first of these dates, if their order was not declared.
        has_zone: Whether the texts are points in time with a time zone.
        date_mixture: What is mixed in texts that are all dates in ISO 8601 but are not read: "zones", points
            in time with and without a time zone; "times", dates and points in time.
        are_other_dates: Whether the texts look like dates that are not in ISO 8601.
        num_image_names: Number of texts that end like the name of an image file.
        num_files: Number of those names whose file exists, among the names that were checked.
        num_sought: Number of names that were checked.
        num_refused: Number of checked names that cells may not name, such as URLs.
    """

    reads_as: TextKind | None = None
    num_numbers: int = 0
    num_dates: int = 0
    num_tried: int = 0
    misfit: str | None = None
    misfits: tuple[str, ...] = ()
    num_misfits: int = 0
    style: NumberStyle | None = None
    num_styled: int = 0
    num_markers: int = 0
    markers: Mapping[str, int] = field(default_factory=dict)
    num_leading_zeros: int = 0
    num_beyond_int64: int = 0
    max_bytes: int = 0
    mean_words: float = 0.0
    numbers: NumberFormat | None = None
    example: str | None = None
    may_be_grouped: bool = False
    date_orders: tuple[DateOrder, ...] = ()
    date_kind: Literal["date", "time"] | None = None
    date_example: str | None = None
    has_zone: bool = False
    date_mixture: DateMixture | None = None
    are_other_dates: bool = False
    num_image_names: int = 0
    num_files: int = 0
    num_sought: int = 0
    num_refused: int = 0


@dataclass(frozen=True, kw_only=True)
class ItemProfile:
    """Profile of the lists or arrays of a column.

    Attributes:
        dtype: NumPy name of the type of the items, or "string" or "bytes"; None for other types.
        shape: Shape of the value of every row, or None if shapes differ.
        step: Shape of every item of the outer list, or None if they differ; `()` for a flat list.
        min_len: Length of the shortest value along its first axis.
        max_len: Length of the longest value along its first axis.
        is_declared: Whether the type of the column guarantees the shape.
        are_pixels: Whether all values are uint8 arrays of height, width and 1, 3 or 4 channels.
    """

    dtype: str | None
    shape: tuple[int, ...] | None = None
    step: tuple[int, ...] | None = ()
    min_len: int = 0
    max_len: int = 0
    is_declared: bool = False
    are_pixels: bool = False


@dataclass(frozen=True, kw_only=True)
class ColumnProfile:
    """Profile of one column.

    Attributes:
        kind: Kind of the values.
        type_text: Type of the values as the source names it, such as `int32` or `list<item: float>`.
        num_rows: Number of rows that were read.
        num_missing: Number of rows without a value, including NaN.
        num_distinct: Number of distinct values; None if not counted: for texts that are nearly all distinct,
            lists, arrays and byte strings.
        values: Distinct values in ascending order, if they are few; for ints and texts only.
        is_unique: Whether all values are distinct.
        is_counter: Whether the values are whole numbers that increase by one from row to row.
        is_decoded: Whether the texts are byte strings in the source, all of them UTF-8 without control
            characters.
        is_coded: Whether the source stores the values dictionary-encoded.
        low: Smallest number, for ints, floats, and texts that are numbers.
        high: Largest number, for ints, floats, and texts that are numbers.
        num_nan: Number of present values that are NaN: 0, unless NaN counts as a value.
        num_missing_nan: Number of missing values that are NaN.
        is_whole: Whether all numbers are whole.
        text: Profile of the texts.
        items: Profile of lists and arrays, and of texts that are JSON lists.
        formats: Number of images by format, among byte strings or the files that were checked.
        determines: Names of targets whose values are determined by this column.
        unlabelled: Number of rows of each text such as `NaN` that counts as missing in a target.
    """

    kind: RawKind
    type_text: str
    num_rows: int
    num_missing: int = 0
    num_distinct: int | None = None
    values: tuple[str, ...] | tuple[int, ...] | None = None
    is_unique: bool = False
    is_counter: bool = False
    is_coded: bool = False
    is_decoded: bool = False
    low: int | float | None = None
    high: int | float | None = None
    num_nan: int = 0
    num_missing_nan: int = 0
    is_whole: bool = False
    text: TextProfile | None = None
    items: ItemProfile | None = None
    formats: Mapping[str, int] = field(default_factory=dict)
    determines: tuple[str, ...] = ()
    unlabelled: Mapping[str, int] = field(default_factory=dict)

    def with_nan(self) -> ColumnProfile:
        """Return the profile in which NaN counts as a value."""
        num_nan = self.num_missing_nan
        text = self.text
        if text is not None and num_nan:
            markers = {word: number for word, number in text.markers.items() if not is_nan_text(word)}
            text = replace(text, markers=markers, reads_as="float" if self.kind == "text" else None)
        missing = self.num_missing - num_nan
        return replace(self, num_missing=missing, num_nan=num_nan, num_missing_nan=0, text=text)

    def with_markers(self) -> ColumnProfile:
        """Return the profile in which texts such as `NA` count as values, as in a column of texts."""
        if self.text is None:
            return self
        missing = self.num_missing - sum(self.markers.values())
        text = replace(self.text, markers={})
        return replace(self, num_missing=missing, num_missing_nan=0, values=None, is_unique=False, text=text)

    def with_dates(self, order: DateOrder) -> ColumnProfile:
        """Return the profile in which dates have a declared order, except those with the year first."""
        text = self.text
        if text is None or not text.date_orders or text.date_orders == ("ymd",):
            return self
        if order not in text.date_orders:
            return replace(self, text=replace(text, reads_as=None))
        found = replace(text, reads_as=text.date_kind, date_orders=(order,), date_example=None)
        return replace(self, text=found)

    @property
    def date_order(self) -> DateOrder | None:
        """The order of dates that texts are read with, or None."""
        text = self.text
        is_date = text is not None and text.reads_as in ("date", "time") and len(text.date_orders) == 1
        return text.date_orders[0] if text is not None and is_date else None

    @property
    def markers(self) -> Mapping[str, int]:
        """Number of rows of each marker of a missing value in a column of numbers or dates."""
        return {} if self.text is None else self.text.markers

    @cached_property
    def num_present(self) -> int:
        """Number of rows with a value."""
        return self.num_rows - self.num_missing

    @cached_property
    def reads_as(self) -> RawKind:
        """Kind of the values; for texts, the kind that all of them can be read as."""
        if self.kind == "text" and self.text is not None and self.text.reads_as is not None:
            return self.text.reads_as
        return self.kind


@dataclass(frozen=True)
class SourceProfile:
    """Profile of the first rows of a source.

    Attributes:
        columns: Profiles by column, in the order of the source.
        num_rows: Number of rows that were read.
        is_whole: Whether the source has no other rows.
    """

    columns: Mapping[str, ColumnProfile]
    num_rows: int
    is_whole: bool
