"""`Pad` as TensorFlow operations, and casts of numbers that fail on overflow, as in the loader.

In: ragged tensors of stored numbers. Out: statements, and terms for padded tensors and masks.
"""

from __future__ import annotations

import numpy as np

from penstock.bridge.graph.parse import read_lists
from penstock.bridge.graph.site import Site, tf
from penstock.codegen.program import Term
from penstock.transform.base import need_fitted
from penstock.transform.padding import Padded
from penstock.transform.sequence import Pad


def cast_numbers(site: Site, value: Term, stored: str, wanted: str) -> Term:
    """Cast numbers from the type `stored` to `wanted`; a number out of range is an error at run time."""
    if stored == wanted:
        return value
    cast = tf.cast(value, getattr(tf, wanted))
    if not _can_overflow(stored, wanted):
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


def cast_lists(site: Site, lists: Term, stored: str, wanted: str) -> Term:
    """Cast lists of numbers from the type `stored` to `wanted`."""
    if stored == wanted:
        return lists
    return site.bind(lists.with_flat_values(cast_numbers(site, lists.flat_values, stored, wanted)))


def _can_overflow(stored: str, wanted: str) -> bool:
    """Whether the range of `stored` exceeds the range of `wanted`."""
    (old_low, old_high), (low, high) = _find_limits(stored), _find_limits(wanted)
    return low > old_low or high < old_high


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
    lists = cast_lists(site, lists, fitted.dtype, dtype)
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
