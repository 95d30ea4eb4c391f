"""The stored values of a field as tensors: one value or array per record, or lists.

In: a field of the schema. Out: its feature description, and the statements that parse its values.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.bridge.graph.site import Lack, Site, Stored, tf
from penstock.codegen.program import Term
from penstock.schema.array import Sequence, Tensor
from penstock.schema.field import Field
from penstock.schema.scalar import Number
from penstock.transform.padding import count_levels

_KINDS: Final = {"int64": tf.int64, "float": tf.float32, "bytes": tf.string}
_ZEROS: Final[dict[str, Any]] = {"int64": 0, "float": 0.0, "bytes": ""}
# Types that tf.io.decode_raw does not support, with supported types of the same width.
_DECODED: Final = {"uint32": "int32", "uint64": "int64", "float16": "uint16", "bool": "uint8"}


def read_values(site: Site, lack: Lack, default: Any = None) -> Stored:
    """Return one value or array per record.

    `lack`: how to treat records without a value, if the field is optional. `default`: value for such records
    instead of the field's default, in its stored representation.
    """
    if site.page.reader is not None:
        return site.page.reader.read_values(site, lack, default)
    field, kind = site.field, _KINDS[site.field.kind]
    shape = list(field.shape) if isinstance(field, Tensor) and field.kind != "bytes" else []
    if not field.optional or lack == "refuse":
        value = site.parse(tf.io.FixedLenFeature(shape, kind))
        return Stored(_convert(site, value, is_filled=False), None)
    if default is None:
        default = find_default(field)
    if lack == "fill" and (default is not None or not shape):
        fill = _ZEROS[field.kind] if default is None else default
        value = site.parse(tf.io.FixedLenFeature(shape, kind, default_value=fill))
        return Stored(_convert(site, value, is_filled=True), None)
    rows = site.parse(tf.io.RaggedFeature(kind))
    present = site.bind_extra("present", rows.row_lengths() > 0) if lack == "mark" else None
    if not shape:
        fill = _ZEROS[field.kind] if default is None else default
        value = site.bind(rows.to_tensor(fill, shape=[None, 1])[:, 0])
        return Stored(_convert(site, value, is_filled=True), present)
    value = rows.to_tensor(shape=[None, field.num_values])
    if default is not None and present is not None:
        # Each element may have its own default, and to_tensor accepts only one value.
        value = tf.where(present[:, tf.newaxis], value, np.ravel(default).tolist())
    value = site.bind(site.reshape(value, shape))
    return Stored(_convert(site, value, is_filled=True), present)


def read_ragged(site: Site) -> Term:
    """Return a ragged tensor with one value per record, and none for a record without a value."""
    if site.page.reader is not None:
        return site.page.reader.read_ragged(site)
    return site.parse(tf.io.RaggedFeature(_KINDS[site.field.kind]))


def read_lists(site: Site) -> Term:
    """Return lists of values or steps as a ragged tensor; a record without a list gets an empty one."""
    field = site.field
    if not isinstance(field, Sequence):
        raise TypeError(f"expected a sequence field, got {field!r}")
    if field.default:
        site.refuse("no default, as TensorFlow reads a missing list as empty", f"default={field.default!r}")
    if site.page.reader is not None:
        return site.page.reader.read_lists(site)
    lists = site.parse(tf.io.RaggedFeature(_KINDS[field.kind], row_splits_dtype=tf.int64))
    if not field.is_feature_list or count_levels(field) == 2:
        return lists
    if field.shape == ():
        return site.bind(lists.merge_dims(1, 2))
    steps = tf.reshape(lists.flat_values, [-1, field.num_step_values])
    return site.bind(tf.RaggedTensor.from_row_splits(steps, lists.row_splits))


def _convert(site: Site, value: Term, *, is_filled: bool) -> Term:
    """Convert stored values to the type and shape of the field."""
    field = site.field
    if not isinstance(field, Number | Tensor):
        return value
    if field.kind == "bytes":
        return _decode(site, value, field, is_filled=is_filled)
    if field.dtype == "uint64":
        return site.bind(tf.bitcast(value, tf.uint64))
    return (
        value if field.dtype in ("int64", "float32") else site.bind(tf.cast(value, getattr(tf, field.dtype)))
    )


def _decode(site: Site, value: Term, field: Number | Tensor, *, is_filled: bool) -> Term:
    decoded = _DECODED.get(field.dtype, field.dtype)
    num_bytes = field.num_bytes if isinstance(field, Tensor) else 8
    if is_filled and field.default is None:
        # With a fixed length, an empty string decodes to zeros.
        value = tf.io.decode_raw(value, getattr(tf, decoded), fixed_length=num_bytes)
    else:
        value = tf.io.decode_raw(value, getattr(tf, decoded))
    if field.dtype == "bool":
        value = tf.cast(value, tf.bool)
    elif decoded != field.dtype:
        value = tf.bitcast(value, getattr(tf, field.dtype))
    shape = field.shape if isinstance(field, Tensor) else ()
    return site.bind(site.reshape(value, shape))


def find_default(field: Field) -> Any:
    """Return the default of the field in its stored representation, or None."""
    default = field.default
    if default is None or not isinstance(field, Tensor | Number):
        return default
    if field.kind == "bytes":
        return np.asarray(default, np.dtype(field.dtype).newbyteorder("<")).tobytes()
    kind = np.int64 if field.kind == "int64" else np.float32
    return np.asarray(default).astype(kind).tolist() if isinstance(field, Tensor) else default
