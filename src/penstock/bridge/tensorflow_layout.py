"""How the arrays of a batch become tensors.

In: the outputs of a loader, and its batches. Out: specs; arrays that TensorFlow receives in few calls; eager
tensors that share the memory of the arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from penstock import _native
from penstock.transform.output import STRINGS, Output, align, convert

if TYPE_CHECKING:
    from penstock.batch.loader import Loader
    from penstock.batch.maker import Batch

# TensorFlow takes 25 µs to receive an array of any size, in which time about a hundred kilobytes are copied:
# 40 columns of 1024 numbers took 2.3 ms per batch one by one, and 0.5 ms as two matrices, unstacked there.
_SMALL_BYTES = 64 << 10

Parts = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]


class Leaf(NamedTuple):
    """One array of a batch: part (0 for inputs, 1 for targets, 2 for weights), name and TensorFlow spec."""

    part: int
    name: str
    spec: Any


@dataclass(frozen=True)
class Layout:
    """How the arrays of a batch are passed to TensorFlow.

    Attributes:
        stacks: Small arrays of the same type and shape, which are stacked and passed as one array.
        singles: Arrays that are passed one by one, without a copy.
        lists: Ragged outputs, which are passed as values and row offsets.
        specs: Specs of the arrays that are passed: stacks, singles, then values and offsets of each list.
        outputs: Specs of inputs, targets and weights by name, in order.
    """

    stacks: tuple[tuple[Leaf, ...], ...]
    singles: tuple[Leaf, ...]
    lists: tuple[Leaf, ...]
    specs: tuple[Any, ...]
    outputs: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, loader: Loader) -> Layout:
        """Return the layout of a loader's batches."""
        groups: dict[tuple[Any, ...], list[Leaf]] = {}
        singles, lists = [], []
        outputs: tuple[dict[str, Any], ...] = ({}, {}, {})
        for part, declared in enumerate(loader.signature()):
            for name, output in declared.items():
                leaf = Leaf(part, name, make_spec(output, loader.static_batch_size))
                outputs[part][name] = leaf.spec
                if output.is_ragged:
                    lists.append(leaf)
                elif _is_small(output, loader.options.batch_size):
                    groups.setdefault((output.dtype, output.shape), []).append(leaf)
                else:
                    singles.append(leaf)
        singles += [leaves[0] for leaves in groups.values() if len(leaves) == 1]
        stacks = [tuple(leaves) for leaves in groups.values() if len(leaves) > 1]
        specs = [tf.TensorSpec((len(each), *each[0].spec.shape), each[0].spec.dtype) for each in stacks]
        specs += [leaf.spec for leaf in singles]
        for leaf in lists:
            rank = leaf.spec.ragged_rank
            specs.append(tf.TensorSpec((None, *leaf.spec.shape[rank + 1 :]), leaf.spec.dtype))
            specs += [tf.TensorSpec((None,), tf.int64)] * rank
        return cls(tuple(stacks), tuple(singles), tuple(lists), tuple(specs), outputs)

    def pack(self, batch: Batch) -> tuple[NDArray[Any], ...]:
        """Return the arrays of a batch that are passed to TensorFlow."""
        packed = []
        for leaves in self.stacks:
            arrays = [batch[leaf.part][leaf.name] for leaf in leaves]
            rows, *shape = arrays[0].shape
            stack = _native.empty((len(arrays), rows, *shape), arrays[0].dtype.name)
            np.concatenate(arrays, out=stack.reshape(len(arrays) * rows, *shape))
            packed.append(stack)
        packed += [_as_array(batch[leaf.part][leaf.name]) for leaf in self.singles]
        for leaf in self.lists:
            value, splits = batch[leaf.part][leaf.name].nested()
            packed += [_as_array(value), *splits]
        return tuple(packed)

    def unpack(self, tensors: tuple[Any, ...]) -> Parts:
        """Return inputs, targets and weights from the tensors that `pack` passed."""
        inputs, targets, weights = (dict.fromkeys(specs) for specs in self.outputs)
        parts: Parts = (inputs, targets, weights)
        rest = iter(tensors)
        for leaves in self.stacks:
            for leaf, tensor in zip(leaves, tf.unstack(next(rest), num=len(leaves)), strict=True):
                parts[leaf.part][leaf.name] = tensor
        for leaf in self.singles:
            parts[leaf.part][leaf.name] = next(rest)
        for leaf in self.lists:
            values = next(rest)
            splits = [next(rest) for _ in range(leaf.spec.ragged_rank)]
            parts[leaf.part][leaf.name] = tf.RaggedTensor.from_nested_row_splits(
                values, splits, validate=False
            )
        return parts

    def make_tensors(self, batch: Batch) -> Parts:
        """Return inputs, targets and weights as eager tensors, which share the memory of aligned arrays."""
        inputs, targets, weights = (
            {name: _make_tensor(spec, part[name]) for name, spec in specs.items()}
            for specs, part in zip(self.outputs, (*batch, {})[:3], strict=True)
        )
        return inputs, targets, weights


def make_spec(output: Output, batch_size: int | None) -> Any:
    """Return the TensorFlow spec of an output in batches of `batch_size` rows."""
    shape = (batch_size, *output.shape)
    dtype = "string" if output.dtype in STRINGS else output.dtype
    if not output.is_ragged:
        return tf.TensorSpec(shape, dtype)
    rank = 2 if len(output.shape) > 1 and output.shape[1] is None else 1
    return tf.RaggedTensorSpec(shape, dtype, ragged_rank=rank, row_splits_dtype=tf.int64)


def _is_small(output: Output, batch_size: int) -> bool:
    dims = [dim for dim in output.shape if dim is not None]
    if len(dims) < len(output.shape) or output.dtype in STRINGS:
        return False
    return int(np.prod(dims)) * np.dtype(output.dtype).itemsize * batch_size <= _SMALL_BYTES


def _as_array(value: Any) -> NDArray[Any]:
    return value if isinstance(value, np.ndarray) else np.array(value.tolist(), object)


def _make_tensor(spec: Any, value: Any) -> Any:
    if isinstance(spec, tf.RaggedTensorSpec):
        values, splits = value.nested()
        tensors = [_share(spec.dtype, values), *(_share(tf.int64, each) for each in splits)]
        return tf.RaggedTensor.from_nested_row_splits(tensors[0], tensors[1:], validate=False)
    return _share(spec.dtype, value)


def _share(dtype: tf.DType, value: Any) -> tf.Tensor:
    """Return a tensor that shares the memory of an array: by DLPack, which takes 1 µs and copies nothing."""
    if dtype == tf.string:
        return tf.constant(_as_array(value), dtype)
    # DLPack does not check the alignment that TensorFlow's operations rely on, and has no read-only arrays.
    if value.dtype != dtype.as_numpy_dtype or not value.flags.writeable:
        array = convert(value, dtype.name)
    else:
        array = align(value)
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
