"""What the texts of a column can be read as: numbers, dates, lists, names of image files.

In: texts as Arrow arrays. Out: what all of them are, and the numbers that they hold.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.plan.profile import MARKERS, NumberStyle, TextFacts, TextKind

Chunks: TypeAlias = "pa.ChunkedArray[Any]"
"""A column, block by block."""

NUM_PROBED: Final = 256
"""Texts that are looked at one by one. They say what the others are worth trying as: Arrow reads a hundred
thousand numbers in a millisecond or two, but takes a hundred times that to find that none of them is one."""

_INT = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE
)
_STYLES: Final[dict[NumberStyle, re.Pattern[str]]] = {
    "grouped": re.compile(r"[+-]?[0-9]{1,3}([,' ][0-9]{3})+(\.[0-9]+)?"),
    "comma": re.compile(r"[+-]?([0-9]+|[0-9]{1,3}(\.[0-9]{3})+),[0-9]+"),
    "currency": re.compile(r"[+-]?[$€£¥₹] ?[+-]?[0-9][0-9.,]*|[+-]?[0-9][0-9.,]* ?[$€£¥₹]"),
    "percent": re.compile(r"[+-]?[0-9]+([.,][0-9]+)? ?%"),
    "spaced": re.compile(r"\s+[+-]?[0-9.]+([eE][+-]?[0-9]+)?\s*|[+-]?[0-9.]+([eE][+-]?[0-9]+)?\s+"),
}
_STYLED = re.compile("|".join(f"(?:{style.pattern})" for style in _STYLES.values()))
_NUM_MISFITS: Final = 3
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(
    _DATE.pattern + r"([T ][0-9]{2}(:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_OTHER_DATE = re.compile(r"[0-9]{1,4}([/.])[0-9]{1,2}\1[0-9]{1,4}.*")
_IMAGE_NAME = re.compile(r"(?is)(?!https?:).*\.(jpe?g|png|webp|gif|bmp)")
_FEW_TEXTS: Final = 16
_SAFE_DIGITS: Final = 18
"""So few numbers, of so few digits that 64 bits hold them, Python reads before Arrow has begun."""
_DATE_BYTES: Final = len("2024-01-31")
_ZONES: Final = (None, "UTC")


class Reading(NamedTuple):
    """What texts were read as: facts, the numbers if they are numbers, the first lists if they are lists."""

    facts: TextFacts
    numbers: NDArray[Any] | None = None
    lists: tuple[list[Any], ...] = ()


def read_texts(texts: Chunks) -> Reading:
    """Find what texts can be read as; all of them are present."""
    probe = _probe(texts)
    facts: dict[str, Any] = {"max_bytes": _measure_longest(texts, probe)}
    num_numbers = sum(_NUMBER.fullmatch(text) is not None for text in probe)
    if probe and num_numbers == len(probe):
        reading = _read_numbers(texts, probe, facts)
        if reading is not None:
            return reading
    facts["mean_words"] = sum(len(text.split()) for text in probe) / max(1, len(probe))
    # A word for a missing number makes texts of all the others: count the numbers, so that a warning says it.
    num_numeric = num_numbers + sum(map(_is_numeric, probe)) if num_numbers < len(probe) else num_numbers
    if num_numeric * 2 > len(probe) and (num_numeric > num_numbers or num_numbers):
        return Reading(TextFacts(**facts, **_count_numbers(texts)))
    if _all(_TIME, probe):
        return Reading(TextFacts(reads_as=_read_times(texts), **facts))
    if _all(_OTHER_DATE, probe):
        return Reading(TextFacts(are_other_dates=True, **facts))
    if 2 * sum(_IMAGE_NAME.fullmatch(text) is not None for text in probe) > len(probe):
        return Reading(TextFacts(**facts, **_count_image_names(texts)))
    lists = _read_lists(texts, probe)
    return Reading(TextFacts(reads_as="list" if lists else None, **facts), lists=lists)


def find_markers(texts: Chunks, reading: Reading) -> dict[str, int]:
    """Count the texts that mean a missing value, where all others may be numbers or dates.

    Args:
        texts: All that are present.
        reading: What they were read as with those texts among them.
    """
    if reading.numbers is not None:
        # `nan` is read as a number, too.
        if reading.numbers.dtype.kind != "f" or not np.isnan(reading.numbers).any():
            return {}
    elif reading.facts.reads_as is not None or not all(map(_may_be_number, _probe(texts))):
        return {}
    words = pc.ascii_trim_whitespace(texts.filter(_are_markers(texts)))
    found: Any = pc.value_counts(words)
    counts = {each["values"]: each["counts"] for each in found.to_pylist()}
    # Where nothing else is there, nothing says that it is a column of numbers.
    return dict(sorted(counts.items())) if sum(counts.values()) < len(texts) else {}


def drop_markers(column: Chunks) -> Chunks:
    """Return the texts of a column with nulls for those that mean a missing value."""
    kept: Chunks = pc.if_else(_are_markers(column), pa.scalar(None, column.type), column)
    return kept


def _are_markers(texts: Chunks) -> Any:
    words = pc.ascii_lower(pc.ascii_trim_whitespace(texts))
    return pc.is_in(words, pa.array(sorted(MARKERS), texts.type))


def _may_be_number(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text) or _TIME.fullmatch(text)) or text.strip().lower() in MARKERS


def _probe(texts: Chunks) -> list[Any]:
    probe: list[Any] = texts.slice(0, NUM_PROBED).to_pylist()
    return probe


def _measure_longest(texts: Chunks, probe: list[str]) -> int:
    # Where the probe is all there is, Python is faster, and tables of a hundred thousand columns need it.
    if len(probe) == len(texts):
        return max((len(text.encode()) for text in probe), default=0)
    return int(pc.max(pc.binary_length(texts)).as_py() or 0)


def _all(pattern: re.Pattern[str], probe: list[str]) -> bool:
    return bool(probe) and all(pattern.fullmatch(text) for text in probe)


def _read_numbers(texts: Chunks, probe: list[str], facts: dict[str, Any]) -> Reading | None:
    are_ints = all(_INT.fullmatch(text) for text in probe)
    if len(probe) == len(texts) <= _FEW_TEXTS and are_ints and facts["max_bytes"] <= _SAFE_DIGITS:
        num_zeros = _count_leading_zeros(texts, probe)
        few = np.array([int(text) for text in probe], np.int64)
        return Reading(TextFacts(reads_as="int", num_leading_zeros=num_zeros, **facts), few)
    if are_ints:
        ints = _try_cast(texts, pa.int64())
        if ints is not None:
            num_zeros = _count_leading_zeros(texts, probe)
            return Reading(TextFacts(reads_as="int", num_leading_zeros=num_zeros, **facts), ints.to_numpy())
    numbers = _try_cast(texts, pa.float64())
    if numbers is None:
        return None
    values = numbers.to_numpy()
    if are_ints and pc.all(pc.match_substring_regex(texts, r"^-?[0-9]+$")).as_py():
        num_beyond = int(np.count_nonzero(np.abs(values) >= 2.0**63))
        return Reading(TextFacts(reads_as="int", num_beyond_int64=num_beyond, **facts), values)
    return Reading(TextFacts(reads_as="float", **facts), values)


def _is_numeric(text: str) -> bool:
    """Whether a text that is no number means one, or a missing one."""
    if _NUMBER.fullmatch(text):
        return False
    return _STYLED.fullmatch(text) is not None or text.strip().lower() in MARKERS


def _count_numbers(texts: Chunks) -> dict[str, Any]:
    """Count the texts that are numbers, and describe the others."""
    is_number = pc.match_substring_regex(texts, f"^(?:{_NUMBER.pattern})$", ignore_case=True)
    others = texts.filter(pc.invert(is_number))
    words = others.filter(pc.invert(_are_markers(others)))
    found: Any = pc.value_counts(words)
    counts = {each["values"]: each["counts"] for each in found.to_pylist()}
    misfits = sorted(counts, key=lambda word: (-counts[word], word))[:_NUM_MISFITS]
    styled = {
        style: sum(number for word, number in counts.items() if pattern.fullmatch(word))
        for style, pattern in _STYLES.items()
    }
    style = max(styled, key=lambda each: styled[each])
    first = (words if len(words) else others).slice(0, 1).to_pylist()
    return {
        "num_numbers": len(texts) - len(others),
        "num_tried": len(texts),
        "misfit": first[0] if first else None,
        "misfits": tuple(misfits),
        "num_misfits": len(counts),
        "style": style if styled[style] else None,
        "num_styled": styled[style],
        "num_markers": len(others) - len(words),
    }


def _count_image_names(texts: Chunks) -> dict[str, Any]:
    is_name = pc.match_substring_regex(texts, f"^{_IMAGE_NAME.pattern.replace('(?!https?:)', '')}$")
    misfits = texts.filter(pc.invert(is_name)).slice(0, 1).to_pylist()
    return {"num_image_names": _count_true(is_name), "misfit": misfits[0] if misfits else None}


def _read_times(texts: Chunks) -> TextKind | None:
    if _try_cast(texts, pa.date32()) is not None:
        return "date"
    # Days and microseconds do not go into one column.
    if pc.min(pc.binary_length(texts)).as_py() <= _DATE_BYTES:
        return None
    is_time = any(_try_cast(texts, pa.timestamp("us", zone)) is not None for zone in _ZONES)
    return "time" if is_time else None


def _read_lists(texts: Chunks, probe: list[str]) -> tuple[list[Any], ...]:
    if not probe or not all(text.startswith("[") and text.endswith("]") for text in probe):
        return ()
    if not pc.all(pc.and_(pc.starts_with(texts, "["), pc.ends_with(texts, "]"))).as_py():
        return ()
    try:
        return tuple(json.loads(text) for text in probe)
    except ValueError:
        return ()


def _count_leading_zeros(ints: Chunks, probe: list[str]) -> int:
    if len(probe) == len(ints):
        return sum(text[0] == "0" and len(text) > 1 for text in probe)
    lengths: Any = pc.binary_length(ints)
    return _count_true(pc.and_(pc.starts_with(ints, "0"), pc.greater(lengths, pa.scalar(1))))


def _count_true(mask: Any) -> int:
    return int(pc.sum(mask).as_py() or 0)


def _try_cast(texts: Chunks, wanted: pa.DataType) -> Chunks | None:
    try:
        return texts.cast(wanted)
    except pa.ArrowInvalid:
        return None
