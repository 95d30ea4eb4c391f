"""Sequences: a list of numbers, text or bytes a row, or a list of steps that are such lists.

In: raw columns of lists. Out: `Ragged`, of the form in which decoding gives them back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.encode.bytes import convert_bytes
from penstock.encode.fault import Report, report_items
from penstock.encode.lists import Lists, flatten_lists
from penstock.encode.number import convert_numbers
from penstock.encode.text import convert_text
from penstock.foundation.wording import count
from penstock.schema.array import Sequence
from penstock.source.block import RawColumn
from penstock.types import Bytes, Mask, Ragged


def encode_sequence(field: Sequence, raw: RawColumn, report: Report) -> Ragged:
    """Return lists, or lists of steps."""
    lists = flatten_lists(raw, report)
    values: NDArray[Any] | Bytes | Ragged
    if field.shape == ():
        values = _convert_items(field, lists.items, report_items(report, lists.offsets))
    else:
        values = _convert_steps(field, lists.items, report_items(report, lists.offsets, "in step"))
    return Ragged(values, lists.offsets, lists.present)


def _convert_items(field: Sequence, items: RawColumn, report: Report) -> NDArray[Any] | Bytes:
    """Return the values of lists one behind the other; none may be missing."""
    if field.kind == "bytes":
        convert = convert_text if field.dtype == "string" else convert_bytes
        strings = convert(items, report)
        _report_nulls(strings.present, report)
        return Bytes(strings.arena, strings.starts, strings.stops)
    numbers = convert_numbers(items, field.dtype, report)
    _report_nulls(numbers.present, report)
    return numbers.values


def _convert_steps(field: Sequence, items: RawColumn, report: Report) -> NDArray[Any] | Ragged:
    steps = flatten_lists(items, report)
    _report_nulls(steps.present, report)
    values = _convert_items(field, steps.items, report_items(report, steps.offsets))
    per_step = field.num_step_values
    if per_step is None:
        return Ragged(values, steps.offsets)
    wrong = steps.lengths != per_step
    for step in np.flatnonzero(wrong).tolist():
        report(step, count(per_step, "value"), count(int(steps.lengths[step]), "value"))
    if isinstance(values, Bytes):
        return Ragged(values, steps.offsets)
    return _stack(values, steps, per_step, wrong)


def _stack(values: NDArray[Any], steps: Lists, per_step: int, wrong: Mask) -> NDArray[Any]:
    """Return steps of one length as a matrix; those of another are zeros."""
    if not wrong.any():
        return values.reshape(-1, per_step)
    matrix = np.zeros((len(wrong), per_step), values.dtype)
    matrix[~wrong] = values[np.repeat(~wrong, steps.lengths)].reshape(-1, per_step)
    return matrix


def _report_nulls(present: Mask | None, report: Report) -> None:
    if present is not None:
        for position in np.flatnonzero(~present).tolist():
            report(position, "a value", "nothing", "A list has no missing values; leave them out.")
