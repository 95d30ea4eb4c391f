"""Texts such as `NaN` in a column of labels: they mark rows without a label, not a class.

In: the first blocks of a target whose type is not declared, and its profile. Out: the profile without these
texts, and how often each occurs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.plan.profile import ColumnProfile
from penstock.plan.values import SurveyedColumn
from penstock.schema.scalar import MISSING_LABELS
from penstock.source.block import RawColumn
from penstock.source.column import drop_missing_texts

_NO_WORDS = (None, "bool")  # of a column that is read in another way, markers are recognized among its values


def drop_labels(
    parts: SequenceOf[RawColumn],
    found: SurveyedColumn,
    survey: Callable[[SequenceOf[RawColumn]], SurveyedColumn],
) -> SurveyedColumn:
    """Return a target surveyed without texts that mark a missing label."""
    if not may_hold_words(found.profile):
        return found
    texts = [_to_texts(part) for part in parts]
    counts: Counter[str] = Counter()
    for part in texts:
        counts.update(_count_words(part))
    if not counts:
        return found
    kept = survey([drop_missing_texts(part, MISSING_LABELS) for part in texts])
    profile = replace(
        kept.profile,
        type_text=found.profile.type_text,
        is_coded=found.profile.is_coded,
        unlabelled=dict(sorted(counts.items())),
    )
    return replace(kept, profile=profile)


def may_hold_words(profile: ColumnProfile) -> bool:
    """Return whether a column holds texts that are not numbers, dates or lists."""
    if profile.kind != "text" or profile.text is None or profile.markers:
        return False
    return profile.text.reads_as in _NO_WORDS


def _to_texts(part: RawColumn) -> RawColumn:
    if isinstance(part, np.ndarray):
        return part if part.dtype == object else pa.array(part)
    if isinstance(part, pa.ExtensionArray):
        return _to_texts(part.storage)
    if isinstance(part, pa.DictionaryArray):
        return _to_texts(part.dictionary_decode())
    return pc.cast(part, pa.large_string()) if pa.types.is_string_view(part.type) else part


def _count_words(part: RawColumn) -> dict[str, int]:
    if isinstance(part, np.ndarray):
        words = [each.decode("utf-8", "replace") if isinstance(each, bytes) else each for each in part]
        stripped = [each.strip() for each in words if isinstance(each, str)]
        return Counter(each for each in stripped if each in MISSING_LABELS)
    if not pa.types.is_string(part.type) and not pa.types.is_large_string(part.type):
        return {}
    trimmed: Any = pc.ascii_trim_whitespace(part)
    chosen = trimmed.filter(pc.is_in(trimmed, pa.array(MISSING_LABELS, part.type)))
    return {each["values"]: each["counts"] for each in pc.value_counts(chosen).to_pylist()}
