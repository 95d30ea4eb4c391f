"""What was found in the first rows of a source, column by column: all that inference knows.

In: counts that `plan/survey.py` makes. Out: frozen facts, with no trace of the library that read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

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
"""What the values of a column are, whatever library holds them.

`time` is a point in time, with a clock; `list` has any length, `array` one shape; `image` is pixels, or a
struct of bytes and path; `mixed` is values of several kinds; `other` is what no field can hold.
"""

TextKind: TypeAlias = Literal["int", "float", "bool", "date", "time", "list"]
"""What every text of a column can be read as."""

NumberStyle: TypeAlias = Literal["currency", "percent", "grouped", "comma", "spaced"]
"""How a text writes a number that is not read as one: `$5.10`, `12 %`, `1,234`, `3,14`, ` 7`."""

MAX_VALUES: Final = 256
"""A domain is listed up to here, as the survey of TFRecords does it."""


MARKERS: Final = frozenset({"na", "n/a", "n.a.", "#n/a", "<na>", "nan", "null", "none", "-", "--", "?"})
"""Texts that mean a missing value in a column whose other texts are all numbers or dates; in any case."""


def is_nan(word: str) -> bool:
    """Return whether a text is NaN, which float columns can hold as a value."""
    return word.strip().lower() == "nan"


@dataclass(frozen=True, kw_only=True)
class TextFacts:
    """What the texts of a column look like.

    Attributes:
        reads_as: What all of them can be read as, or None.
        num_numbers: How many can be read as numbers, where only some can; of the texts that were looked at.
        num_tried: How many texts were looked at for that.
        misfit: The first text that is no number, or no name of an image, where most are.
        misfits: The most frequent texts that are neither numbers nor known to mean a missing value.
        num_misfits: How many different ones there are.
        style: How most of them write a number that is not read as one, or None.
        num_styled: How many texts are written so.
        num_markers: How many texts are known to mean a missing value, where only some others are numbers.
        markers: How often each text occurs that is known to mean a missing value, such as `NA`, where all
            others are numbers or dates. Those rows count as missing.
        num_leading_zeros: How many are whole numbers that begin with a 0, such as 00501.
        num_beyond_int64: How many are whole numbers that 64 bits do not hold.
        max_bytes: Length of the longest.
        mean_words: Words a text, on average.
        are_other_dates: Whether they look like dates, but not like ISO ones.
        num_image_names: How many end like the name of an image file.
        num_files: How many of those that were looked for are files.
        num_sought: How many were looked for.
    """

    reads_as: TextKind | None = None
    num_numbers: int = 0
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
    are_other_dates: bool = False
    num_image_names: int = 0
    num_files: int = 0
    num_sought: int = 0


@dataclass(frozen=True, kw_only=True)
class ItemFacts:
    """What the lists or arrays of a column hold.

    Attributes:
        dtype: Of the items as NumPy calls it, or "string" or "bytes"; None where they are nothing of these.
        shape: Of every row's value, or None where they differ.
        step: Of every item of the outer list, or None where they differ: `()` for a flat list.
        min_len: Length of the shortest value, along its first axis.
        max_len: Of the longest.
        is_declared: Whether the source itself says that all have this shape.
        are_pixels: Whether all are uint8 of a height, a width and 1, 3 or 4 channels.
    """

    dtype: str | None
    shape: tuple[int, ...] | None = None
    step: tuple[int, ...] | None = ()
    min_len: int = 0
    max_len: int = 0
    is_declared: bool = False
    are_pixels: bool = False


@dataclass(frozen=True, kw_only=True)
class ColumnFacts:
    """What was found in one column.

    Attributes:
        kind: What the values are.
        type_text: Their type in the words of the source, such as `int32` or `list<item: float>`.
        num_rows: How many rows were looked at.
        num_missing: How many of them have no value, those with NaN among them.
        num_distinct: How many different values there are; None if that was not counted: of texts that
            nearly all differ, of lists, arrays and byte strings.
        values: The different values in order, where they are few; ints and texts alone.
        is_unique: Whether no value comes twice.
        is_counter: Whether the values are whole numbers that go up by one from row to row.
        is_decoded: Whether the texts are byte strings in the source, all of them UTF-8 without control
            characters.
        is_coded: Whether the source itself holds the values as codes of a dictionary.
        low: The least number; of ints and floats, and of texts that are such.
        high: The greatest.
        num_nan: How many of the values that are present are NaN: none, unless NaN is to be a value.
        num_missing_nan: How many of the missing values are NaN.
        is_whole: Whether all floats are whole numbers.
        text: More about texts.
        items: More about lists and arrays, also about texts that hold lists.
        formats: How many values begin as an image of each format; of bytes, or of files that were looked for.
        determines: Targets that are the same wherever this column is the same.
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
    text: TextFacts | None = None
    items: ItemFacts | None = None
    formats: Mapping[str, int] = field(default_factory=dict)
    determines: tuple[str, ...] = ()

    def with_nan(self) -> ColumnFacts:
        """Return the facts where NaN is a value like any other."""
        num_nan = self.num_missing_nan
        text = self.text
        if text is not None and num_nan:
            markers = {word: number for word, number in text.markers.items() if not is_nan(word)}
            text = replace(text, markers=markers, reads_as="float" if self.kind == "text" else None)
        missing = self.num_missing - num_nan
        return replace(self, num_missing=missing, num_nan=num_nan, num_missing_nan=0, text=text)

    def with_markers(self) -> ColumnFacts:
        """Return the facts where texts such as `NA` are values, as they are in a column of texts."""
        if self.text is None:
            return self
        missing = self.num_missing - sum(self.markers.values())
        text = replace(self.text, markers={})
        return replace(self, num_missing=missing, num_missing_nan=0, values=None, is_unique=False, text=text)

    @property
    def markers(self) -> Mapping[str, int]:
        """How often each text that means a missing value occurs in a column of numbers or dates."""
        return {} if self.text is None else self.text.markers

    @property
    def num_present(self) -> int:
        """How many rows have a value."""
        return self.num_rows - self.num_missing

    @property
    def reads_as(self) -> RawKind:
        """What the values are, where texts count as what all of them can be read as."""
        if self.kind == "text" and self.text is not None and self.text.reads_as is not None:
            return self.text.reads_as
        return self.kind


@dataclass(frozen=True)
class SourceFacts:
    """What was found in the first rows of a source.

    Attributes:
        columns: By name, in the order of the source.
        num_rows: How many rows were looked at.
        is_whole: Whether these are all there are.
    """

    columns: Mapping[str, ColumnFacts]
    num_rows: int
    is_whole: bool
