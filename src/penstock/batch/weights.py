"""Weights by which records are drawn.

In: rows and a field that determines the weights. Out: one number per row, from one pass that reads only that
field. A skipped record has the weight 0: it is never drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Bytes, Columns, Dense
from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.errors import FieldError, MissingFieldError, OptionError, PenstockError
from penstock.filter.operand import find_known
from penstock.filter.scan import scan
from penstock.foundation.wording import find_nearest, show
from penstock.read.rows import Rows
from penstock.schema.field import Field
from penstock.schema.scalar import Category, Number, Text
from penstock.schema.schema import Schema


def class_weights(
    rows: Rows,
    schema: Schema,
    field: str,
    weights: Mapping[str | int | None, float],
    losses: Losses,
    strict: bool = False,
    num_threads: int = 1,
) -> NDArray[np.float64]:
    """Return the weight of each row by its value of a field.

    `field`: the name of a category, a text or an integer. `weights`: the weight of each value, at least 0;
    the weight of None is for rows without a value. Values without a weight get 1. `strict`: whether to refuse
    what protobuf accepts but no correct writer makes. `num_threads`: number of threads that read; the result
    does not depend on it.
    """
    declared = schema[field]
    find = _make_finder(field, declared, weights)
    # After the named values: the weight of other values, and the weight of rows without a value.
    named = _named(weights)
    table = np.array([*(weights[value] for value in named), 1.0, weights.get(None, 1.0)], np.float64)
    seen = np.zeros(len(table), np.bool_)

    def measure(columns: Columns, _: int) -> NDArray[Any]:
        codes = find(columns) + 1  # 0 is for skipped rows
        known = find_known(declared, columns[field])
        return codes if known is None else np.where(known, codes, len(table))

    plan = DecodePlan(schema.select(field), strict=strict)
    result = np.zeros(len(rows))
    with closing(scan(rows, plan, losses, measure, num_threads)) as blocks:
        for start, codes in blocks:
            seen[codes[codes > 0] - 1] = True
            result[start : start + len(codes)] = np.append(0.0, table)[codes]
    _check_seen(field, declared, named, seen)
    return _check_total(result, field)


def example_weights(
    rows: Rows, schema: Schema, field: str, losses: Losses, strict: bool = False, num_threads: int = 1
) -> NDArray[np.float64]:
    """Return the weight of each row, as given by a field.

    `field`: the name of a number; a record in which it is missing, below 0, infinite or NaN is bad. `strict`:
    whether to refuse what protobuf accepts but no correct writer makes. `num_threads`: number of threads that
    read; the result does not depend on it.
    """
    declared = schema[field]
    if not isinstance(declared, Number):
        raise _refuse_field(field, declared, "a number")

    def measure(columns: Columns, num_rows: int) -> NDArray[Any]:
        column = cast("Dense", columns[field])
        known = find_known(declared, column)
        pairs = np.ones((num_rows, 2))
        pairs[:, 0] = column.values
        if known is not None:
            pairs[:, 1] = known
        return pairs

    plan = DecodePlan(schema.select(field), strict=strict)
    result = np.zeros(len(rows))
    with closing(scan(rows, plan, losses, measure, num_threads)) as blocks:
        for start, pairs in blocks:
            values = pairs[:, 0]
            bad = ~(pairs[:, 1].astype(np.bool_) & (values >= 0) & (values < math.inf))
            for index in np.flatnonzero(bad).tolist():
                # A record that could not be read is in `losses` already, and is counted once.
                losses.add(start + index, _make_error(rows, start + index, field, *pairs[index].tolist()))
            result[start : start + len(values)] = np.where(bad, 0, values)
    return _check_total(result, field)


def _named(weights: Mapping[str | int | None, float]) -> list[str | int]:
    return [value for value in weights if value is not None]


def _make_finder(
    field: str, declared: Field, weights: Mapping[str | int | None, float]
) -> Callable[[Columns], NDArray[np.int64]]:
    """Return a function that finds the index of each row's value in `weights`; their number for others."""
    is_number = isinstance(declared, Number | Category) and declared.kind == "int64"
    if not is_number and not isinstance(declared, Category | Text):
        raise _refuse_field(field, declared, "a category, a text or an integer")
    _check_weights(field, weights, int if is_number else str)
    named = _named(weights)
    if not is_number:
        vocabulary = _native.Vocabulary([str(value).encode() for value in named])

        def find_strings(columns: Columns) -> NDArray[np.int64]:
            column = cast("Bytes", columns[field])
            codes = vocabulary.find(column.arena, column.starts, column.stops).astype(np.int64)
            return np.where(codes < 0, len(named), codes)

        return find_strings
    order = np.argsort(np.array(named, np.int64))
    ranked = np.array(named, np.int64)[order]

    def find_numbers(columns: Columns) -> NDArray[np.int64]:
        values = cast("Dense", columns[field]).values
        if not named:
            return np.zeros(len(values), np.int64)
        indexes = np.minimum(np.searchsorted(ranked, values), len(named) - 1)
        return np.where(ranked[indexes] == values, order[indexes], len(named))

    return find_numbers


def _check_weights(field: str, weights: Mapping[str | int | None, float], kind: type) -> None:
    if not isinstance(weights, Mapping) or not weights:
        expected = f"a weight for each of some values of field {show(field)}"
        raise OptionError("weights", expected=expected, got=show(weights))
    for value, weight in weights.items():
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            expected = "a str" if kind is str else "an int"
            raise OptionError(f"weights of field {show(field)}", expected=expected, got=show(value))
        is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not is_number or not 0 <= weight < math.inf:
            where = f"weight of {show(value)} in field {show(field)}"
            raise OptionError(where, expected="a number of at least 0", got=show(weight))


def _check_seen(field: str, declared: Field, named: list[str | int], seen: NDArray[np.bool_]) -> None:
    """Refuse the weight of a value that neither a record nor the schema has: probably a misspelling."""
    known = declared.values if isinstance(declared, Category) and declared.values else ()
    for value, is_seen in zip(named, seen.tolist(), strict=False):
        if is_seen or value in known:
            continue
        nearest = find_nearest(str(value), [str(other) for other in known])
        raise OptionError(
            f"weight of {show(value)}",
            expected=f"a value of field {show(field)}",
            got="one that no record has",
            advice="" if nearest is None else f"Did you mean {show(nearest)}?",
        )


def _check_total(weights: NDArray[np.float64], field: str) -> NDArray[np.float64]:
    if len(weights) and not weights.any():
        what = f"weights by field {show(field)}"
        raise OptionError(what, expected="at least one above 0", got="only zeros")
    return weights


def _refuse_field(field: str, declared: Field, expected: str) -> OptionError:
    got = f"a {declared.type_name}"
    if isinstance(declared, Number):
        got = f"{got} of type {declared.dtype}"
    return OptionError(f"weights by field {show(field)}", expected=expected, got=got)


def _make_error(rows: Rows, row: int, field: str, value: float, is_present: float) -> PenstockError:
    shard, record = rows.locate(row)
    kind = FieldError if is_present else MissingFieldError
    return kind(
        f"field {show(field)} as a weight",
        path=shard.path,
        record=record,
        offset=int(shard.index.offsets[record]),
        field=field,
        expected="a number of at least 0",
        got=show(value) if is_present else "none",
        advice="Skip such records, `on_error='skip'`, or use another field for the weights.",
    )
