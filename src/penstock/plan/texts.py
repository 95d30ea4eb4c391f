"""Interpret the texts of a column as numbers, dates, JSON lists or names of image files.

In: texts as Arrow arrays. Out: a profile of the texts, and the numbers or lists that they contain.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.plan.profile import MISSING_MARKERS, DateMixture, NumberStyle, TextKind, TextProfile
from penstock.plan.styled_texts import (
    find_format,
    find_orders,
    is_same,
    may_be_date,
    may_be_numbers,
    rewrite_numbers,
)
from penstock.schema.notation import NumberFormat

Chunks: TypeAlias = "pa.ChunkedArray[Any]"
"""A column as one Arrow chunk per block."""

NUM_PROBED: Final = 256
"""Number of texts that are checked one by one. They decide which conversions of the whole column are tried:
Arrow parses 100,000 numbers in about 2 ms, but needs a hundred times as long if none of them is a number."""

_INT = re.compile(r"-?[0-9]+")
_GROUPED = re.compile(NumberFormat(",", ".").pattern)
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
_ZERO_DATE = re.compile(r"0+[-/.]0+[-/.]0+(?![0-9])")  # which MySQL stores for a missing date
_IMAGE_NAME = re.compile(r"(?is)(?!https?:).*\.(jpe?g|png|webp|gif|bmp)")
_FEW_TEXTS: Final = 16
_SAFE_DIGITS: Final = 18
"""Up to this many numbers, with so few digits that int64 holds them, are parsed faster in Python than in
Arrow."""
_DATE_BYTES: Final = len("2024-01-31")
_ZONE: Final = r":[0-9]{2}(?:\.[0-9]+)? ?(?:Z|[+-][0-9]{2}:?[0-9]{2})$"
_ZONES: Final = (None, "UTC")


class TextInterpretation(NamedTuple):
    """Interpretation of texts: numbers, dates, lists, names of image files, or plain text.

    Attributes:
        profile: Profile of the texts.
        numbers: The numbers, if all texts are numbers.
        lists: The first lists, if all texts are JSON lists.
    """

    profile: TextProfile
    numbers: NDArray[Any] | None = None
    lists: tuple[list[Any], ...] = ()


def interpret_texts(texts: Chunks, declared: NumberFormat | None = None) -> TextInterpretation:
    """Interpret texts without nulls; `declared` is the format of numbers that the user declared, or None."""
    probe = _probe(texts)
    profile: dict[str, Any] = {"max_bytes": _measure_longest(texts, probe)}
    return _interpret_numbers(texts, probe, profile, declared) or _interpret_others(texts, probe, profile)


def _interpret_numbers(
    texts: Chunks, probe: list[str], profile: dict[str, Any], declared: NumberFormat | None
) -> TextInterpretation | None:
    """Interpret texts that are all numbers; None if they are not."""
    styled = None if declared is None else _read_styled(texts, probe, profile, declared)
    if styled is None and probe and all(map(_NUMBER.fullmatch, probe)):
        styled = _read_numbers(texts, probe, profile)
    if styled is None and declared is None:
        styled = _read_styled(texts, probe, profile, None)
    return styled


def _interpret_others(texts: Chunks, probe: list[str], profile: dict[str, Any]) -> TextInterpretation:
    num_numbers = sum(_NUMBER.fullmatch(text) is not None for text in probe)
    profile["mean_words"] = sum(len(text.split()) for text in probe) / max(1, len(probe))
    # A marker such as "unknown" turns a column of numbers into texts: count the numbers for the warning.
    num_numeric = num_numbers + sum(map(_is_numeric, probe)) if num_numbers < len(probe) else num_numbers
    if num_numeric * 2 > len(probe) and (num_numeric > num_numbers or num_numbers):
        return TextInterpretation(TextProfile(**profile, **_count_numbers(texts)))
    if _all(_TIME, probe):
        if kind := _read_times(texts):
            return TextInterpretation(
                TextProfile(reads_as=kind, has_zone=_have_zones(texts, kind), **profile)
            )
        profile["date_mixture"] = _find_mixture(texts)
    if dates := find_orders(texts, probe):
        profile |= {"date_orders": dates.orders, "date_kind": dates.kind, "date_example": probe[0]}
        reads_as = dates.kind if len(dates.orders) == 1 else None
        profile["has_zone"] = _have_zones(texts, dates.kind)
        return TextInterpretation(TextProfile(reads_as=reads_as, **profile))
    if counts := _count_dates(texts, probe):
        return TextInterpretation(TextProfile(**profile, **counts))
    if 2 * sum(_IMAGE_NAME.fullmatch(text) is not None for text in probe) > len(probe):
        return TextInterpretation(TextProfile(**profile, **_count_image_names(texts)))
    lists = _read_lists(texts, probe)
    return TextInterpretation(TextProfile(reads_as="list" if lists else None, **profile), lists=lists)


def find_markers(texts: Chunks, interpretation: TextInterpretation) -> dict[str, int]:
    """Count the texts that mark a missing value, if all others may be numbers or dates."""
    if interpretation.numbers is not None:
        # `nan` is parsed as a number.
        if interpretation.numbers.dtype.kind != "f" or not np.isnan(interpretation.numbers).any():
            return {}
    elif interpretation.profile.reads_as is not None or not all(map(_may_be_number, _probe(texts))):
        return {}
    words = pc.ascii_trim_whitespace(texts.filter(_are_markers(texts)))
    found: Any = pc.value_counts(words)
    counts = {each["values"]: each["counts"] for each in found.to_pylist()}
    # Markers alone do not show that the column holds numbers.
    return dict(sorted(counts.items())) if sum(counts.values()) < len(texts) else {}


def drop_markers(column: Chunks) -> Chunks:
    """Return the texts of a column with nulls in place of markers of missing values."""
    kept: Chunks = pc.if_else(_are_markers(column), pa.scalar(None, column.type), column)
    return kept


def _are_markers(texts: Chunks) -> Any:
    words = pc.ascii_lower(pc.ascii_trim_whitespace(texts))
    return pc.is_in(words, pa.array(sorted(MISSING_MARKERS), texts.type))


def _may_be_number(text: str) -> bool:
    if _NUMBER.fullmatch(text) or _TIME.fullmatch(text) or may_be_numbers([text]) or may_be_date(text):
        return True
    return text.strip().lower() in MISSING_MARKERS


def _probe(texts: Chunks) -> list[Any]:
    probe: list[Any] = texts.slice(0, NUM_PROBED).to_pylist()
    return probe


def _measure_longest(texts: Chunks, probe: list[str]) -> int:
    # If the probe is the whole column, Python is faster, which matters for tables of 100,000 columns.
    if len(probe) == len(texts):
        return max((len(text.encode()) for text in probe), default=0)
    return int(pc.max(pc.binary_length(texts)).as_py() or 0)


def _all(pattern: re.Pattern[str], probe: list[str]) -> bool:
    return bool(probe) and all(pattern.fullmatch(text) for text in probe)


def _read_numbers(texts: Chunks, probe: list[str], profile: dict[str, Any]) -> TextInterpretation | None:
    are_ints = all(_INT.fullmatch(text) for text in probe)
    if are_ints:
        are_few = len(probe) == len(texts) <= _FEW_TEXTS and profile["max_bytes"] <= _SAFE_DIGITS
        ints = np.array([int(text) for text in probe], np.int64) if are_few else _parse(texts, pa.int64())
        if ints is not None:
            num_zeros = _count_leading_zeros(texts, probe)
            return TextInterpretation(
                TextProfile(reads_as="int", num_leading_zeros=num_zeros, **profile), ints
            )
    values = _parse(texts, pa.float64())
    if values is None:
        return None
    if are_ints and pc.all(pc.match_substring_regex(texts, r"^-?[0-9]+$")).as_py():
        num_beyond = int(np.count_nonzero(np.abs(values) >= 2.0**63))
        return TextInterpretation(TextProfile(reads_as="int", num_beyond_int64=num_beyond, **profile), values)
    is_grouped = all(map(_GROUPED.fullmatch, probe)) and any("." in text for text in probe)
    return TextInterpretation(TextProfile(reads_as="float", may_be_grouped=is_grouped, **profile), values)


def _parse(texts: Chunks, wanted: pa.DataType) -> NDArray[Any] | None:
    numbers = _try_cast(texts, wanted)
    return None if numbers is None else numbers.to_numpy()


def _read_styled(
    texts: Chunks, probe: list[str], profile: dict[str, Any], declared: NumberFormat | None
) -> TextInterpretation | None:
    """Interpret numbers with decimal commas or separators of thousands; None if they have no such format."""
    if not may_be_numbers(probe):
        return None
    numbers = find_format(texts, declared)
    if numbers is None or is_same(texts, numbers):
        return None
    plain = rewrite_numbers(texts, numbers)
    found = _read_numbers(plain, _probe(plain), profile)
    if found is None or found.profile.num_leading_zeros or found.profile.num_beyond_int64:
        return None
    example = None
    if declared is None:
        written: list[Any] = texts.to_pylist()
        example = next(text for text in written if not _NUMBER.fullmatch(text))
    return found._replace(profile=replace(found.profile, numbers=numbers, example=example))


def _is_numeric(text: str) -> bool:
    """Return whether a text is a number in another style, or a marker of a missing number."""
    if _NUMBER.fullmatch(text):
        return False
    return _STYLED.fullmatch(text) is not None or text.strip().lower() in MISSING_MARKERS


def _count_numbers(texts: Chunks) -> dict[str, Any]:
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


def _is_date(text: str) -> bool:
    is_date = _TIME.fullmatch(text) is not None or may_be_date(text)
    return is_date and _ZERO_DATE.match(text) is None


def _count_dates(texts: Chunks, probe: list[str]) -> dict[str, Any]:
    """Count the texts that are dates, if most are, and list the others."""
    unread = {"are_other_dates": True} if _all(_OTHER_DATE, probe) else {}
    # Two texts decide whether the others are checked, for tables of many columns.
    if not probe or not (_is_date(probe[0]) or _is_date(probe[-1])):
        return unread
    if 2 * sum(map(_is_date, probe)) <= len(probe):
        return unread
    found: Any = pc.value_counts(texts.filter(pc.invert(_are_markers(texts))))
    counts = {each["values"]: each["counts"] for each in found.to_pylist()}
    others = {word: number for word, number in counts.items() if not _is_date(word)}
    if not others:
        return unread
    num_tried = sum(counts.values())
    return {
        "num_dates": num_tried - sum(others.values()),
        "num_tried": num_tried,
        "misfits": tuple(sorted(others, key=lambda word: (-others[word], word))[:_NUM_MISFITS]),
        "num_misfits": len(others),
    }


def _count_image_names(texts: Chunks) -> dict[str, Any]:
    is_name = pc.match_substring_regex(texts, f"^{_IMAGE_NAME.pattern.replace('(?!https?:)', '')}$")
    misfits = texts.filter(pc.invert(is_name)).slice(0, 1).to_pylist()
    return {"num_image_names": _count_true(is_name), "misfit": misfits[0] if misfits else None}


def _read_times(texts: Chunks) -> TextKind | None:
    if _try_cast(texts, pa.date32()) is not None:
        return "date"
    # Days and microseconds cannot share a column.
    if pc.min(pc.binary_length(texts)).as_py() <= _DATE_BYTES:
        return None
    is_time = any(_try_cast(texts, pa.timestamp("us", zone)) is not None for zone in _ZONES)
    return "time" if is_time else None


def _have_zones(texts: Chunks, kind: TextKind) -> bool:
    return kind == "time" and bool(pc.any(pc.match_substring_regex(texts, _ZONE)).as_py())


def _find_mixture(texts: Chunks) -> DateMixture | None:
    """Return the mixture in dates of ISO 8601 that cannot be read together; None if some are not dates."""
    if not pc.all(pc.match_substring_regex(texts, f"^(?:{_TIME.pattern})$")).as_py():
        return None
    has_time: Any = pc.greater(pc.binary_length(texts), pa.scalar(_DATE_BYTES))
    if not pc.all(has_time).as_py():
        return "times"
    return "zones" if _have_zones(texts, "time") else None


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
