"""Numbers in texts with decimal commas and separators of thousands: which format they have, and their values.

In: texts as Arrow arrays. Out: the format, if only one reading is possible, and the texts as Python writes
numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.schema.number_format import NumberFormat
from penstock.source.block import RawColumn
from penstock.source.column import drop_missing_texts

FORMATS: Final = (
    *(NumberFormat(".", ","), NumberFormat(",", ".")),
    *(NumberFormat(".", " "), NumberFormat(",", " ")),
    *(NumberFormat(".", "'"), NumberFormat(",", "'")),
)
"""Formats that are tried; plain numbers are tried before them."""

_DIGITS: Final = re.compile(r"[+-]?[.,]?[0-9][0-9.,' \u00a0\u202f\u2019]*([eE][+-]?[0-9]+)?")
_GAPS: Final = (" ", "'")


def may_be_numbers(probe: list[str]) -> bool:
    """Return whether texts consist of digits and separators."""
    return bool(probe) and all(_DIGITS.fullmatch(text) for text in probe)


def find_format(texts: Any, declared: NumberFormat | None = None) -> NumberFormat | None:
    """Return the format of numbers, at least one of them not plain; None if there is none or a doubt.

    `1,234` may be 1234 or 1.234: without a declaration, such texts have no format. Groups of digits with
    spaces, all of one length and without decimals, may be codes.

    `texts`: the texts, without nulls.
    """
    fitting = [
        each for each in FORMATS if (declared is None or _agrees(each, declared)) and fits_format(texts, each)
    ]
    if not fitting:
        return None
    read = {each: rewrite_numbers(texts, each) for each in fitting}
    chosen = next((each for each in fitting if _occurs(each, texts)), fitting[0])
    if declared is not None:
        return chosen
    if any(not read[each].equals(read[chosen]) for each in fitting):
        return None
    if chosen.thousands in _GAPS and _occurs(chosen, texts):
        lengths: Any = pc.min_max(pc.utf8_length(texts)).as_py()
        has_decimals = pc.any(pc.match_substring_regex(texts, "[.,]")).as_py()
        return chosen if has_decimals or lengths["min"] != lengths["max"] else None
    return chosen


def fits_format(texts: Any, numbers: NumberFormat) -> bool:
    """Return whether all texts are numbers of a format."""
    return bool(pc.all(_match(texts, numbers), min_count=0).as_py())


def are_numbers(raw: RawColumn, numbers: NumberFormat, words: Sequence[str]) -> bool:
    """Return whether all texts of a raw column are numbers of a format, except some words."""
    texts = _take_texts(raw, words)
    return texts is None or fits_format(texts, numbers)


def find_doubt(raw: RawColumn, numbers: NumberFormat, words: Sequence[str]) -> tuple[str, str] | None:
    """Return a text and its number in a format, if all texts are plain numbers, too, with other values.

    `raw`: column whose texts are numbers of the format, except some words.
    """
    texts = _take_texts(raw, words)
    if texts is None or not fits_format(texts, NumberFormat()):
        return None
    pairs: Any = zip(texts.to_pylist(), rewrite_numbers(texts, numbers).to_pylist(), strict=True)
    return next(((text, read) for text, read in pairs if text != read), None)


def _take_texts(raw: RawColumn, words: Sequence[str]) -> Any:
    """Return the texts of a raw column without some words; None if its values are of another type."""
    column = drop_missing_texts(raw, words) if words else raw
    if isinstance(column, np.ndarray):
        return pa.array([value for value in column.tolist() if isinstance(value, str)], pa.string())
    kind = column.type
    return column if pa.types.is_string(kind) or pa.types.is_large_string(kind) else None


def rewrite_numbers(texts: Any, numbers: NumberFormat) -> Any:
    """Return texts of a format as Python writes numbers: `1234.5`."""
    if numbers.thousands is not None:
        texts = pc.replace_substring_regex(texts, numbers.thousands_pattern, "")
    return pc.replace_substring(texts, ",", ".") if numbers.decimal == "," else texts


def find_misfits(texts: Any, numbers: NumberFormat) -> Any:
    """Return a mask of the texts that are not numbers of a format; null stays null."""
    return pc.invert(_match(texts, numbers, r"\s*", "|[+-]?(?i:nan|inf|infinity)"))


def _match(texts: Any, numbers: NumberFormat, space: str = "", other: str = "") -> Any:
    return pc.match_substring_regex(texts, f"^{space}(?:{numbers.pattern}{other}){space}$")


def _agrees(numbers: NumberFormat, declared: NumberFormat) -> bool:
    return declared.decimal in (None, numbers.decimal) and declared.thousands in (None, numbers.thousands)


def _occurs(numbers: NumberFormat, texts: Any) -> bool:
    """Return whether the separator of thousands occurs in a text."""
    return bool(pc.any(pc.match_substring_regex(texts, numbers.thousands_pattern), min_count=0).as_py())


def is_same(texts: Any, numbers: NumberFormat) -> bool:
    """Return whether texts of a format are plain numbers, too, with the same values."""
    found: pa.ChunkedArray[Any] = rewrite_numbers(texts, numbers)
    return found.equals(texts)
