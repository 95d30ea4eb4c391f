"""Lists as arrays of one length, by TensorFlow's ragged tensors: `Pad`, and the lists of other transforms.

In: ragged tensors of numbers or codes. Out: padded tensors with their masks, or ragged ones.
"""

from __future__ import annotations

from penstock.batch.graph.cast import cast_lists
from penstock.batch.graph.parse import read_lists
from penstock.batch.graph.site import Site, tf
from penstock.foundation.program import Term
from penstock.transform.base import need_fitted
from penstock.transform.padding import Padded
from penstock.transform.sequence import Pad


def write_pad(site: Site, transform: Pad) -> dict[str, Term]:
    """Write what `Pad` does."""
    lists = read_lists(site)
    fitted = need_fitted(transform, site.name, transform.fitted)
    dtype = transform.dtype or fitted.dtype
    lists = cast_lists(site, lists, fitted.dtype, dtype)
    value = transform.value if dtype.startswith("float") else int(transform.value)
    return pad_lists(site, transform, lists, fitted.shape, value)


def pad_lists(
    site: Site, transform: Padded, lists: Term, step: tuple[int | None, ...], value: float
) -> dict[str, Term]:
    """Cut and pad lists of items of the shape `step`, None where these are lists themselves."""
    from_end = transform.keep == "tail"
    if transform.ragged:
        if transform.length is not None:
            lists = site.bind(_cut(lists, transform.length, from_end=from_end))
        return {site.name: lists}
    dims: list[Term | int] = [dim for dim in step if dim is not None]
    if len(dims) < len(step):
        lists, width = _pad_steps(site, transform, lists, value)
        dims = [width]
    if transform.length is not None and from_end:
        lists = site.bind(_cut(lists, transform.length, from_end=from_end))
    is_fixed = transform.length is not None and transform.multiple is None
    length = transform.length if is_fixed else None
    dims = [_find_width(site, transform, lists) if length is None else length, *dims]
    known = [dim if isinstance(dim, int) else None for dim in dims]
    outputs = {}
    if transform.mask:
        mask = site.fix(tf.sequence_mask(lists.row_lengths(), dims[0]), known[0])
        outputs[f"{site.name}_mask"] = site.bind_beside("mask", mask)
    if None in known:
        padded = site.bind(site.shape(lists.to_tensor(value, shape=tf.stack([-1, *dims])), *known))
    else:
        padded = site.bind(site.fix(lists.to_tensor(value, shape=[None, *dims]), *known))
    return {site.name: padded, **outputs}


def _pad_steps(site: Site, transform: Padded, lists: Term, value: float) -> tuple[Term, Term | int]:
    """Return lists of lists as lists of arrays, and the length of these."""
    inner, length = lists.values, transform.step_length
    width: Term | int
    if length is None:
        width = site.bind_beside("step", tf.maximum(inner.bounding_shape(axis=1), 1))
        steps = inner.to_tensor(value, shape=tf.stack([-1, width]))
    else:
        width = length
        if transform.keep == "tail":
            inner = _cut(inner, length, from_end=True)
        steps = inner.to_tensor(value, shape=[None, length])
    return site.bind(tf.RaggedTensor.from_row_splits(steps, lists.row_splits)), width


def _find_width(site: Site, transform: Padded, lists: Term) -> Term:
    """Return how long the rows of a batch are: as the longest, or a multiple of something."""
    width = tf.maximum(lists.bounding_shape(axis=1), 1)
    if transform.multiple is not None and transform.multiple > 1:
        width = -(-width // transform.multiple) * transform.multiple
    if transform.length is not None:
        width = tf.minimum(width, transform.length)
    return site.bind_beside("length", width)


def _cut(lists: Term, length: int, *, from_end: bool) -> Term:
    return lists[:, -length:] if from_end else lists[:, :length]
