"""`Scale`, `Keep`, `Pad` and `ExpandDate` as TensorFlow operations.

In: fields of numbers, tensors, sequences and dates. Out: statements, and one term per output. Scaling is
computed in double precision, as in the core, and months with whole numbers, in the calendar of NumPy: results
are bit-identical, for "log1p" within one unit in the last place.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penstock.bridge.graph.site import Site, Stored, read_lists, read_values, tf
from penstock.codegen.program import Term
from penstock.schema.date import DAY
from penstock.transform.base import need_fitted
from penstock.transform.date import (
    CYCLE_DAYS,
    FIRST_DAY,
    HOUR,
    SIZES,
    THURSDAY,
    ExpandDate,
    make_circle,
    name_circle,
)
from penstock.transform.keep import Keep
from penstock.transform.number import Scale, ScaleFit
from penstock.transform.padding import Pad, Padded


def _cast_numbers(site: Site, value: Term, stored: str, wanted: str) -> Term:
    """Cast numbers from the type `stored` to `wanted`; a number out of range is an error at run time."""
    if stored == wanted:
        return value
    cast = tf.cast(value, getattr(tf, wanted))
    (old_low, old_high), (low, high) = _find_limits(stored), _find_limits(wanted)
    if low <= old_low and old_high <= high:
        return cast
    message = f"field {site.name!r}: a number out of the range of {wanted}"
    if np.dtype(wanted).kind == "f":
        narrow = site.bind_extra(wanted, cast)
        was_finite = tf.math.is_finite(tf.cast(value, tf.float64))
        site.check(tf.debugging.Assert(tf.reduce_all(tf.math.is_finite(narrow) | ~was_finite), [message]))
        return narrow
    limits = np.iinfo(wanted)
    own = np.iinfo(stored)
    if limits.min > own.min:
        site.check(
            tf.debugging.assert_greater_equal(
                value, tf.constant(int(limits.min), getattr(tf, stored)), message
            )
        )
    if limits.max < own.max:
        site.check(
            tf.debugging.assert_less_equal(value, tf.constant(int(limits.max), getattr(tf, stored)), message)
        )
    return cast


def _cast_lists(site: Site, lists: Term, stored: str, wanted: str) -> Term:
    """Cast lists of numbers from the type `stored` to `wanted`."""
    if stored == wanted:
        return lists
    return site.bind(lists.with_flat_values(_cast_numbers(site, lists.flat_values, stored, wanted)))


def _find_limits(dtype: str) -> tuple[float, float]:
    kind = np.dtype(dtype).kind
    if kind == "b":
        return 0, 1
    limits = np.finfo(dtype) if kind == "f" else np.iinfo(dtype)
    return (float(limits.min), float(limits.max)) if kind == "f" else (int(limits.min), int(limits.max))


def write_pad(site: Site, transform: Pad) -> dict[str, Term]:
    """Write `Pad` as operations."""
    lists = read_lists(site)
    fitted = need_fitted(transform, site.name, transform.fitted)
    dtype = transform.dtype or fitted.dtype
    lists = _cast_lists(site, lists, fitted.dtype, dtype)
    value = transform.value if dtype.startswith("float") else int(transform.value)
    return pad_lists(site, transform, lists, fitted.shape, value)


def pad_lists(
    site: Site, transform: Padded, lists: Term, step: tuple[int | None, ...], value: float
) -> dict[str, Term]:
    """Truncate and pad lists of items of the shape `step`; a None in it is a varying length."""
    from_end = transform.keep == "tail"
    if transform.ragged:
        if transform.length is not None:
            lists = site.bind(_truncate(lists, transform.length, from_end=from_end))
        return {site.name: lists}
    dims: list[Term | int] = [dim for dim in step if dim is not None]
    if len(dims) < len(step):
        lists, width = _pad_steps(site, transform, lists, value)
        dims = [width]
    if transform.length is not None and from_end:
        lists = site.bind(_truncate(lists, transform.length, from_end=from_end))
    is_fixed = transform.length is not None and transform.multiple is None
    length = transform.length if is_fixed else None
    dims = [_find_width(site, transform, lists) if length is None else length, *dims]
    known = [dim if isinstance(dim, int) else None for dim in dims]
    outputs = {}
    if transform.mask:
        mask = site.fix(tf.sequence_mask(lists.row_lengths(), dims[0]), known[0])
        outputs[f"{site.name}_mask"] = site.bind_extra("mask", mask)
    if None in known:
        padded = site.bind(site.shape(lists.to_tensor(value, shape=tf.stack([-1, *dims])), *known))
    else:
        padded = site.bind(site.fix(lists.to_tensor(value, shape=[None, *dims]), *known))
    return {site.name: padded, **outputs}


def _pad_steps(site: Site, transform: Padded, lists: Term, value: float) -> tuple[Term, Term | int]:
    """Pad the inner lists of lists of lists; return lists of arrays, and the length of the arrays."""
    inner, length = lists.values, transform.step_length
    width: Term | int
    if length is None:
        width = site.bind_extra("step", tf.maximum(inner.bounding_shape(axis=1), 1))
        steps = inner.to_tensor(value, shape=tf.stack([-1, width]))
    else:
        width = length
        if transform.keep == "tail":
            inner = _truncate(inner, length, from_end=True)
        steps = inner.to_tensor(value, shape=[None, length])
    return site.bind(tf.RaggedTensor.from_row_splits(steps, lists.row_splits)), width


def _find_width(site: Site, transform: Padded, lists: Term) -> Term:
    """Return the length of the rows of a batch: the longest length, or rounded up to a multiple."""
    width = tf.maximum(lists.bounding_shape(axis=1), 1)
    if transform.multiple is not None and transform.multiple > 1:
        width = -(-width // transform.multiple) * transform.multiple
    if transform.length is not None:
        width = tf.minimum(width, transform.length)
    return site.bind_extra("length", width)


def _truncate(lists: Term, length: int, *, from_end: bool) -> Term:
    return lists[:, -length:] if from_end else lists[:, :length]


def write_expand_date(site: Site, transform: ExpandDate) -> dict[str, Term]:
    """Write `ExpandDate` as operations."""
    fitted = need_fitted(transform, site.name, transform.fitted)
    stored = _read_marked(site, transform.time, fitted.time)
    present = None if fitted.has_default else stored.present
    circles: dict[str, Term] = {}
    if fitted.circles:
        numbers = stored.values
        if present is not None and fitted.fill is not None:
            numbers = site.bind_extra(
                "filled", tf.where(present, numbers, tf.constant(fitted.fill, tf.int64))
            )
        is_days = fitted.unit == "days" or not {"month", "weekday"} & set(fitted.circles)
        days = numbers if is_days else site.bind_extra("days", numbers // DAY)
        for part in fitted.circles:
            position = _find_position(site, part, numbers, days)
            points = tf.constant(site.define_constant(part.upper(), _list_points(part)))
            point = site.bind_extra(part, tf.gather(points, position))
            for column, output in enumerate(name_circle(site.name, part)):
                values = point[:, column]
                if present is not None and fitted.fill is None:
                    values = tf.where(present, values, 0.0)
                circles[output] = site.bind_extra(output.removeprefix(f"{site.name}_"), values)
    made = {**_scale_stored(site, transform.time, fitted.time, stored), **circles}
    return {output.name: made[output.name] for output in transform.outputs(site.name)}


def _list_points(part: str) -> list[list[float]]:
    """Return sine and cosine of each position, with the fewest digits that give the same float32."""
    return [[float(str(each)) for each in point] for point in make_circle(SIZES[part])]


def _find_position(site: Site, part: str, numbers: Term, days: Term) -> Term:
    """Return where dates are on the circle of a part."""
    if part == "hour":
        return tf.math.floormod(numbers, DAY) // HOUR
    if part == "weekday":
        return tf.math.floormod(tf.math.floormod(days, SIZES[part]) + THURSDAY, SIZES[part])
    day = tf.math.floormod(tf.math.floormod(days, CYCLE_DAYS) + FIRST_DAY, CYCLE_DAYS)
    day = site.bind_extra("day_of_cycle", day)
    year = site.bind_extra("year", (day - day // 1460 + day // 36524 - day // 146096) // 365)
    day = site.bind_extra("day_of_year", day - (year * 365 + year // 4 - year // 100))
    return tf.math.floormod((day * 5 + 2) // 153 + 2, SIZES[part])  # March, the first month, is 2


def write_scale(site: Site, transform: Scale) -> dict[str, Term]:
    """Write `Scale` as operations."""
    fitted = need_fitted(transform, site.name, transform.fitted)
    if fitted.is_sequence:
        lists = read_lists(site)
        scaled = site.bind(lists.with_flat_values(_scale(site, transform, fitted, lists.flat_values)))
        return pad_lists(site, transform, scaled, fitted.shape, 0.0)
    return _scale_stored(site, transform, fitted, _read_marked(site, transform, fitted))


def _read_marked(site: Site, transform: Scale, fitted: ScaleFit) -> Stored:
    """Return one value or array per record, with which records have one, if that matters."""
    marks = transform.indicator or not fitted.has_default
    return read_values(site, "mark" if marks else "fill")


def _scale_stored(site: Site, transform: Scale, fitted: ScaleFit, stored: Stored) -> dict[str, Term]:
    """Write `Scale` of stored values as operations."""
    outputs = {}
    if transform.indicator:
        outputs[f"{site.name}_missing"] = site.bind_extra("missing", _indicate(transform, fitted, stored))
    scaled = site.bind(_scale(site, transform, fitted, stored.values))
    if stored.present is not None and not fitted.has_default:
        present = site.reshape(stored.present, [1] * len(fitted.shape)) if fitted.shape else stored.present
        scaled = site.bind(tf.where(present, scaled, _arrange(site, "FILL", fitted.fill, fitted)))
    return {site.name: scaled, **outputs}


def write_keep(site: Site, transform: Keep) -> dict[str, Term]:
    """Write `Keep` as operations."""
    fitted = need_fitted(transform, site.name, transform.fitted)
    dtype = transform.dtype or fitted.dtype
    if fitted.is_sequence:
        return {site.name: _cast_lists(site, read_lists(site), fitted.dtype, dtype)}
    if not fitted.can_lack or transform.missing == 0:
        values, present = read_values(site, "fill")
    elif transform.missing == "error":
        values, present = read_values(site, "refuse")
    else:
        values, present = read_values(site, "mark")
    if present is not None:
        # Converted as an array of the stored type would convert it.
        fill = np.array([transform.missing], np.float64).astype(fitted.dtype).item()
        is_there = site.reshape(present, [1] * len(fitted.shape)) if fitted.shape else present
        values = site.bind(tf.where(is_there, values, tf.constant(fill, getattr(tf, fitted.dtype))))
    if dtype != fitted.dtype:
        values = site.bind(_cast_numbers(site, values, fitted.dtype, dtype))
    return {site.name: values}


def _scale(site: Site, transform: Scale, fitted: ScaleFit, values: Term) -> Term:
    """Scale numbers; where NaN counts as missing, replace it by the fill value."""
    is_float = fitted.dtype.startswith("float")
    exact = values if fitted.dtype == "float64" else tf.cast(values, tf.float64)
    if not (math.isinf(fitted.low) and math.isinf(fitted.high)):
        exact = tf.clip_by_value(exact, fitted.low, fitted.high)
    if transform.method == "log1p":
        exact = site.bind_extra("exact", exact)
        exact = tf.sign(exact) * tf.math.log1p(tf.abs(exact))
    if any(fitted.shift):
        shift = _arrange(site, "SHIFT", fitted.shift, fitted)
        exact = exact + -shift if isinstance(shift, float) and shift < 0 else exact - shift
    if set(fitted.factor) != {1.0}:
        exact = exact * _arrange(site, "FACTOR", fitted.factor, fitted)
    scaled = tf.cast(exact, tf.float32)
    if transform.nan == "missing" and is_float:
        scaled = tf.where(tf.math.is_nan(values), _arrange(site, "FILL", fitted.fill, fitted), scaled)
    return scaled


def _indicate(transform: Scale, fitted: ScaleFit, stored: Stored) -> Term:
    """Return 1 where a record has no number, or a NaN that counts as missing; else 0."""
    lacks = None if stored.present is None else ~stored.present
    if transform.nan == "missing" and fitted.dtype.startswith("float"):
        has_nan = tf.math.is_nan(stored.values)
        if fitted.shape:
            has_nan = tf.reduce_any(has_nan, axis=list(range(1, len(fitted.shape) + 1)))
        lacks = has_nan if lacks is None else lacks | has_nan
    if lacks is None:
        return tf.zeros(tf.shape(stored.values)[:1])
    return tf.cast(lacks, tf.float32)


def _arrange(site: Site, word: str, numbers: tuple[float, ...], fitted: ScaleFit) -> Any:
    """Return a single number, or a constant with one number per element in the shape of a record."""
    if len(numbers) == 1:
        return float(numbers[0])
    shape = [dim for dim in fitted.shape if dim is not None]
    return site.define_constant(word, np.array(numbers, np.float64).reshape(shape).tolist())
