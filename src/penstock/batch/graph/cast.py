"""Numbers in another element type; those that it cannot hold are an error, as in the loader.

In: tensors of stored numbers. Out: tensors of the type asked for.
"""

from __future__ import annotations

import numpy as np

from penstock.batch.graph.site import Site, tf
from penstock.foundation.program import Term


def cast_numbers(site: Site, value: Term, stored: str, wanted: str) -> Term:
    """Return numbers in another type, or as they are if it is the same."""
    if stored == wanted:
        return value
    cast = tf.cast(value, getattr(tf, wanted))
    if not _can_overflow(stored, wanted):
        return cast
    message = f"field {site.name!r}: a number that {wanted} does not hold"
    if np.dtype(wanted).kind == "f":
        narrow = site.bind_beside(wanted, cast)
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
    """Return lists of numbers in another type."""
    if stored == wanted:
        return lists
    return site.bind(lists.with_flat_values(cast_numbers(site, lists.flat_values, stored, wanted)))


def _can_overflow(stored: str, wanted: str) -> bool:
    """Whether a type has numbers that another has not, rounding aside."""
    (old_low, old_high), (low, high) = _find_limits(stored), _find_limits(wanted)
    return low > old_low or high < old_high


def _find_limits(dtype: str) -> tuple[float, float]:
    kind = np.dtype(dtype).kind
    if kind == "b":
        return 0, 1
    limits = np.finfo(dtype) if kind == "f" else np.iinfo(dtype)
    return (float(limits.min), float(limits.max)) if kind == "f" else (int(limits.min), int(limits.max))
