"""What is told of the fields of a data set: numbers in a few words.

In: statistics that were gathered, or loaded. Out: `FieldStatistics`, plain frozen objects.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Distribution:
    """What is told of many numbers; all but the counts is of the finite ones, and None where there is none.

    Attributes:
        num_values: How many there are, finite or not.
        num_nan: How many are not a number.
        num_inf: How many are infinite.
        num_zero: How many are zero.
        min: The least.
        max: The greatest.
        mean: Their mean.
        deviation: Their standard deviation, as a whole.
        quantiles: At the `QUANTILES`, from a sample.
        num_sampled: How many numbers the sample holds; the quantiles are exact if these are all finite ones.
    """

    num_values: int
    num_nan: int
    num_inf: int
    num_zero: int
    min: float | None
    max: float | None
    mean: float | None
    deviation: float | None
    quantiles: tuple[float, ...] | None
    num_sampled: int


@dataclass(frozen=True)
class Frequencies:
    """How often values occur.

    Attributes:
        values: Strings (bytes where they are no UTF-8) or ints, frequent ones first.
        counts: How often each occurs; at least so often, where `is_complete` is False.
        num_distinct: How many values there are; at least so many, where `is_complete` is False.
        is_complete: Whether `values` are all there are.
    """

    values: tuple[str | bytes | int, ...]
    counts: tuple[int, ...]
    num_distinct: int
    is_complete: bool


@dataclass(frozen=True, eq=False)
class Elements:
    """Mean and deviation of each element of arrays of one shape, in C order."""

    means: NDArray[np.float64]
    deviations: NDArray[np.float64]


@dataclass(frozen=True)
class FieldStatistics:
    """What is told of one field; a part that its type does not have is None.

    Attributes:
        count: Rows that have the field.
        missing: Rows that lack it.
        values: Its numbers, those of lists and arrays all together.
        elements: Each element of arrays and of steps of one length.
        lengths: How many values its lists hold, or steps.
        bytes: The sizes of its byte strings.
        characters: The lengths of its texts in characters.
        widths: Of its images, in pixels.
        heights: Of its images, in pixels.
        frequencies: Its values, those of lists all together.
        formats: The formats of its images.
    """

    count: int
    missing: int
    values: Distribution | None = None
    elements: Elements | None = None
    lengths: Distribution | None = None
    bytes: Distribution | None = None
    characters: Distribution | None = None
    widths: Distribution | None = None
    heights: Distribution | None = None
    frequencies: Frequencies | None = None
    formats: Frequencies | None = None
