"""Equal records, and equal values of a field in several splits.

In: samples of all splits, with one key per record and field. Out: how many records occur again, by split, and
how many values of texts, images and arrays of one split are in the split that the model learns from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from penstock.report.split_sample import EMPTY_KEY, Keys, SplitSample, hash_rows
from penstock.schema.schema import Schema

_LARGE: Final = ("image", "text", "tensor", "sequence", "bytes")
_LEAST_DISTINCT: Final = 0.9  # share of distinct values: categories and short texts repeat anyway


def describe_duplicates(
    schema: Schema, samples: Sequence[SplitSample], reference: SplitSample | None
) -> dict[str, Any]:
    """Return equal records and equal values, among the records that were read.

    Records are equal if all fields are, except for ids and weights.

    `reference`: sample of the split that others are compared with, usually the train split.
    """
    compared = [name for name, field in schema.items() if field.role not in ("id", "weight")]
    rows = {each.name: hash_rows({name: each.keys[name] for name in compared}) for each in samples}
    seen = rows[reference.name] if reference is not None else np.zeros(0, np.uint64)
    splits = {}
    for each in samples:
        keys = rows[each.name]
        splits[each.name] = {"read": len(keys), "repeated": int(len(keys) - len(np.unique(keys)))}
        if reference is not None and each is not reference:
            splits[each.name]["in_reference"] = int(np.isin(keys, seen).sum())
    return {
        "records": sum(each.num_read for each in samples),
        "is_whole": all(each.is_whole for each in samples),
        "reference": None if reference is None else reference.name,
        "splits": splits,
        "fields": _find_shared_values(schema, samples, reference),
    }


def _find_shared_values(
    schema: Schema, samples: Sequence[SplitSample], reference: SplitSample | None
) -> dict[str, dict[str, int]]:
    """Return the number of records of each split whose value is also in the reference split, by field."""
    found: dict[str, dict[str, int]] = {}
    if reference is None or not reference.num_read:
        return found
    for name, field in schema.items():
        if field.role != "input" or field.type_name not in _LARGE:
            continue
        known = _list_present(reference, name)
        if len(np.unique(known)) < _LEAST_DISTINCT * max(1, len(known)):
            continue
        shared = {
            each.name: int(np.isin(_list_present(each, name), known).sum())
            for each in samples
            if each is not reference
        }
        if any(shared.values()):
            found[name] = shared
    return found


def _list_present(sample: SplitSample, name: str) -> Keys:
    """Return the keys of the values of a field, without those that are missing or empty."""
    present = sample.present.get(name)
    keys = sample.keys[name] if present is None else sample.keys[name][present]
    return np.asarray(keys[keys != EMPTY_KEY])
