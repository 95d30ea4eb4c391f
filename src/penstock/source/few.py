"""Survey columns of a few texts in plain Python.

In: one short column of texts. Out: the facts that `survey_texts` finds, where the texts are plain numbers or
plain words; None where there is more to check. Each call of Arrow or NumPy costs as much as all of this, and
a table of three rows may have a hundred thousand columns.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.plan.profile import MARKERS, ColumnFacts, TextFacts, TextKind
from penstock.source.twin import Labels
from penstock.source.values import Found

MAX_FEW: Final = 16
"""Rows up to which Python is faster."""

_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")  # no leading zeros, and 64 bits hold it
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?")
_WORDS: Final = re.compile(r"[A-Za-z][A-Za-z0-9_ ]*")  # neither a number, a date, a list nor a file name
_OTHER_WORDS: Final = MARKERS | {"inf", "infinity", "true", "false"}


def survey_few_texts(column: pa.Array[Any]) -> Found | None:
    """Return the facts of a short column of plain numbers or words; None where it holds something else.

    Args:
        column: At most `MAX_FEW` texts, null where one is missing.
    """
    cells: list[Any] = column.to_pylist()
    texts: list[str] = [cell for cell in cells if cell is not None] if column.null_count else cells
    if not texts:
        return None
    counted: dict[str, Any]
    if all(map(_WHOLE.fullmatch, texts)):
        values, counted = _count_ints(texts)
    elif all(map(_NUMBER.fullmatch, texts)) and any("." in text for text in texts):
        values, counted = _count_floats(texts)
    elif all(map(_is_words, texts)):
        values, counted = _count_words(texts)
    else:
        return None
    facts = ColumnFacts(
        kind="text",
        type_text=str(column.type),
        num_rows=len(cells),
        num_missing=len(cells) - len(texts),
        **counted,
        is_unique=counted["num_distinct"] == len(texts) > 1,
    )
    present = np.array([cell is not None for cell in cells]) if facts.num_missing else None
    is_ordered = facts.text is not None and facts.text.reads_as is not None
    return Found(facts, Labels(values, present, counted["num_distinct"], is_ordered))


def _is_words(text: str) -> bool:
    return _WORDS.fullmatch(text) is not None and text.strip().lower() not in _OTHER_WORDS


def _count_ints(texts: list[str]) -> tuple[NDArray[Any], dict[str, Any]]:
    numbers = list(map(int, texts))
    known = sorted(set(numbers))
    return np.array(numbers, np.int64), {
        "num_distinct": len(known),
        "values": tuple(known),
        "low": known[0],
        "high": known[-1],
        "is_whole": True,
        "is_counter": len(numbers) > 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers))),
        "text": _describe("int", max(map(len, texts))),
    }


def _count_floats(texts: list[str]) -> tuple[NDArray[Any], dict[str, Any]]:
    numbers = list(map(float, texts))
    known = sorted(set(numbers))
    is_whole = all(map(float.is_integer, numbers))
    return np.array(numbers, np.float64), {
        "num_distinct": len(known),
        "values": tuple(map(int, known)) if is_whole else None,
        "low": known[0],
        "high": known[-1],
        "is_whole": is_whole,
        "text": _describe("float", max(map(len, texts))),
    }


def _count_words(texts: list[str]) -> tuple[NDArray[Any], dict[str, Any]]:
    codes = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    mean_words = sum(len(text.split()) for text in texts) / len(texts)
    return np.array([codes[text] for text in texts], np.int32), {
        "num_distinct": len(codes),
        "values": tuple(sorted(codes)),
        "text": _describe(None, max(map(len, texts)), mean_words),
    }


@lru_cache(maxsize=1024)
def _describe(reads_as: TextKind | None, max_bytes: int, mean_words: float = 0.0) -> TextFacts:
    return TextFacts(reads_as=reads_as, max_bytes=max_bytes, mean_words=mean_words)
