"""Find NaN and infinity in the float fields of a pipeline, before they reach a model.

In: a split or columns, and a pipeline. Out: an error that names the field and its first records, or one error
per row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.columns import CodedColumn, Mask, Ragged
from penstock.dataset import Split
from penstock.errors import FieldError
from penstock.foundation.wording import override
from penstock.statistics.summary import load_statistics
from penstock.transform.keep import Keep
from penstock.transform.number import Scale
from penstock.transform.pipeline import Pipeline
from penstock.transform.sequence import Pad

_BLOCK_ROWS: Final = 1 << 14
_NUM_NAMED: Final = 5


def check_finite(split: Split, pipeline: Pipeline, *, is_described: bool = True) -> None:
    """Raise an error for a split with numbers that would reach a model as NaN or infinity.

    For the train split, only fields are read that have NaN or infinity by the statistics of the manifest; for
    other splits, which are small, all fields are. Without statistics, the check of the loss finds NaN.
    """
    stored = None if split.manifest is None else split.manifest.statistics
    statistics = {} if stored is None else load_statistics(stored)
    for name, allowed in list_checked(pipeline):
        values = None if name not in statistics else statistics[name].values
        if not is_described or (values is not None and values.num_nan + values.num_inf):
            _check_field(split, name, allowed, pipeline.schema[name].role)


def list_checked(pipeline: Pipeline) -> Iterator[tuple[str, tuple[bool, bool]]]:
    """Yield the float fields that must be finite, with whether NaN, and whether infinity, is allowed."""
    for name, transform in pipeline.transforms.items():
        allows_nan = isinstance(transform, Scale) and transform.nan == "missing"
        allows_inf = isinstance(transform, Scale) and transform.method == "clip"
        stored = getattr(pipeline.schema[name], "dtype", "")
        is_fed = isinstance(transform, Scale | Keep | Pad) and str(stored).startswith("float")
        if is_fed and not (allows_nan and allows_inf):
            yield name, (allows_nan, allows_inf)


def find_faults(columns: Mapping[str, CodedColumn], pipeline: Pipeline) -> dict[int, FieldError]:
    """Return an error for each row that would reach a model with NaN or infinity."""
    faults: dict[int, FieldError] = {}
    for name, allowed in list_checked(pipeline):
        for row in _find_rows(columns[name], allowed):
            error = FieldError(
                f"field {name!r}",
                field=name,
                record=row,
                expected="finite numbers, as in training",
                got="NaN or infinity",
            )
            faults.setdefault(row, error)
    return faults


def _check_field(split: Split, name: str, allowed: tuple[bool, bool], role: str) -> None:
    rows: list[int] = []
    for start in range(0, len(split), _BLOCK_ROWS):
        column = split.columns(start, start + _BLOCK_ROWS, [name])[name]
        rows += [start + row for row in _find_rows(column, allowed)]
    if not rows:
        return
    named = ", ".join(map(str, rows[:_NUM_NAMED])) + (", …" if len(rows) > _NUM_NAMED else "")
    scaled = override(name, "Scale(nan='missing')")
    advice = (
        "Fix these records, or store them without a value: training skips records without a target."
        if role == "target"
        else f"Drop the field: {override(name, 'None')}; or treat NaN as missing: {scaled}."
    )
    raise FieldError(
        f"field {name!r} of split {split.name!r}",
        field=name,
        expected="finite numbers",
        got=f"NaN or infinity in {len(rows)} of {len(split)} records: {named}",
        advice=advice,
    )


def _find_bad(values: NDArray[Any], allowed: tuple[bool, bool]) -> Mask:
    """Return where numbers are NaN or infinite, and the transform does not handle them."""
    allows_nan, allows_inf = allowed
    is_bad: Mask = np.isnan(values) & (not allows_nan) | np.isinf(values) & (not allows_inf)
    return is_bad


def _find_rows(column: CodedColumn, allowed: tuple[bool, bool]) -> list[int]:
    if not len(column):
        return []
    dense = column.unwrap()
    if isinstance(dense, np.ndarray):
        values = dense.reshape(len(column), -1).astype(np.float64, copy=False)
        is_bad = _find_bad(values, allowed)
        if column.present is not None:
            is_bad &= column.present[:, None]
        found: list[int] = np.flatnonzero(is_bad.any(axis=1)).tolist()
        return found
    if isinstance(column, Ragged) and isinstance(column.values, np.ndarray):
        is_bad = _find_bad(column.values, allowed)
        indices = np.flatnonzero(is_bad.any(axis=tuple(range(1, is_bad.ndim))))
        return sorted(set((np.searchsorted(column.offsets, indices, side="right") - 1).tolist()))
    return []
