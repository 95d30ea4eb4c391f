"""Numbers that no model can learn from or predict by: NaN and infinity in the float fields of a pipeline.

In: a split or columns, and a pipeline. Out: an error that names the field and its first records, or one per
row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.columns import CodedColumn, Dense, Mask, Ragged
from penstock.dataset import Split
from penstock.errors import FieldError
from penstock.statistics.summary import load_statistics
from penstock.transform.keep import Keep
from penstock.transform.number import Scale
from penstock.transform.pipeline import Pipeline
from penstock.transform.sequence import Pad

_BLOCK_ROWS: Final = 1 << 14
_NUM_NAMED: Final = 5


def check_finite(split: Split, pipeline: Pipeline, *, is_described: bool = True) -> None:
    """Refuse a split whose numbers reach a model as NaN or infinite ones.

    The manifest of a data set tells which fields of the train split have any: only those are read. Of another
    split, which is small, all are. What is not told of the train split, the guard of the loss finds.

    Args:
        split: The records.
        pipeline: What is made of them.
        is_described: Whether the manifest's statistics are those of this split.

    Raises:
        FieldError: A field has some; the message names the first records.
    """
    form = None if split.manifest is None else split.manifest.statistics
    told = {} if form is None else load_statistics(form)
    for name, takes in list_checked(pipeline):
        values = None if name not in told else told[name].values
        if not is_described or (values is not None and values.num_nan + values.num_inf):
            _refuse_rows(split, name, takes, pipeline.schema[name].role)


def list_checked(pipeline: Pipeline) -> Iterator[tuple[str, tuple[bool, bool]]]:
    """Yield the float fields of a pipeline that must be finite, with whether they may be NaN, or infinite."""
    for name, transform in pipeline.transforms.items():
        takes_nan = isinstance(transform, Scale) and transform.nan == "missing"
        takes_inf = isinstance(transform, Scale) and transform.method == "clip"
        stored = getattr(pipeline.schema[name], "dtype", "")
        is_fed = isinstance(transform, Scale | Keep | Pad) and str(stored).startswith("float")
        if is_fed and not (takes_nan and takes_inf):
            yield name, (takes_nan, takes_inf)


def find_faults(columns: Mapping[str, CodedColumn], pipeline: Pipeline) -> dict[int, FieldError]:
    """Return an error for each row that would reach a model with NaN or infinity."""
    faults: dict[int, FieldError] = {}
    for name, takes in list_checked(pipeline):
        for row in _find_rows(columns[name], takes):
            error = FieldError(
                f"field {name!r}",
                field=name,
                record=row,
                expected="finite numbers, as in training",
                got="NaN or infinity",
            )
            faults.setdefault(row, error)
    return faults


def _refuse_rows(split: Split, name: str, takes: tuple[bool, bool], role: str) -> None:
    rows: list[int] = []
    for start in range(0, len(split), _BLOCK_ROWS):
        column = split.columns(start, start + _BLOCK_ROWS, [name])[name]
        rows += [start + row for row in _find_rows(column, takes)]
    if not rows:
        return
    named = ", ".join(map(str, rows[:_NUM_NAMED])) + (", …" if len(rows) > _NUM_NAMED else "")
    advice = (
        "Correct these records, or store them without a value: training leaves out records without a target."
        if role == "target"
        else f"Leave the field out: --drop {name}, or {name}=None of Pipeline.fit; or take NaN as missing: "
        f"{name}=Scale(nan='missing') there, {{nan: missing}} for the field in a file for --config."
    )
    raise FieldError(
        f"field {name!r} of split {split.name!r}",
        field=name,
        expected="numbers that are finite",
        got=f"NaN or infinite ones in {len(rows)} of {len(split)} records: {named}",
        advice=advice,
    )


def _find_bad(values: NDArray[Any], takes: tuple[bool, bool]) -> Mask:
    """Return where numbers are NaN or infinite, and the transform does not take such ones."""
    takes_nan, takes_inf = takes
    is_bad: Mask = np.isnan(values) & (not takes_nan) | np.isinf(values) & (not takes_inf)
    return is_bad


def _find_rows(column: CodedColumn, takes: tuple[bool, bool]) -> list[int]:
    if not len(column):
        return []
    if isinstance(column, Dense):
        values = column.values.reshape(len(column), -1).astype(np.float64, copy=False)
        is_bad = _find_bad(values, takes)
        if column.present is not None:
            is_bad &= column.present[:, None]
        found: list[int] = np.flatnonzero(is_bad.any(axis=1)).tolist()
        return found
    if isinstance(column, Ragged) and isinstance(column.values, np.ndarray):
        is_bad = _find_bad(column.values, takes)
        places = np.flatnonzero(is_bad.any(axis=tuple(range(1, is_bad.ndim))))
        return sorted(set((np.searchsorted(column.offsets, places, side="right") - 1).tolist()))
    return []
