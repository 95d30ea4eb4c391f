"""`Scale` and `Keep` as TensorFlow operations.

In: fields of numbers, tensors and sequences. Out: statements, and one term per output. Scaling is computed in
double precision, as in the core: results are bit-identical, for "log1p" within one unit in the last place.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penstock.bridge.graph.parse import read_lists, read_values
from penstock.bridge.graph.sequence import cast_lists, cast_numbers, pad_lists
from penstock.bridge.graph.site import Site, Stored, tf
from penstock.codegen.program import Term
from penstock.transform.base import need_fitted
from penstock.transform.keep import Keep
from penstock.transform.number import Scale, ScaleFit


def write_scale(site: Site, transform: Scale) -> dict[str, Term]:
    """Write `Scale` as operations."""
    fitted = need_fitted(transform, site.name, transform.fitted)
    if fitted.is_sequence:
        lists = read_lists(site)
        scaled = site.bind(lists.with_flat_values(_scale(site, transform, fitted, lists.flat_values)))
        return pad_lists(site, transform, scaled, fitted.shape, 0.0)
    return scale_stored(site, transform, fitted, read_marked(site, transform, fitted))


def read_marked(site: Site, transform: Scale, fitted: ScaleFit) -> Stored:
    """Return one value or array per record, with which records have one, if that matters."""
    marks = transform.indicator or not fitted.has_default
    return read_values(site, "mark" if marks else "fill")


def scale_stored(site: Site, transform: Scale, fitted: ScaleFit, stored: Stored) -> dict[str, Term]:
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
        return {site.name: cast_lists(site, read_lists(site), fitted.dtype, dtype)}
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
        values = site.bind(cast_numbers(site, values, fitted.dtype, dtype))
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
