"""Batches as a `tf.data.Dataset`.

In: a `Loader`. Out: a `tf.data.Dataset` of its batches; large arrays share the memory of the loader.
"""

from __future__ import annotations

import atexit
import gc
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from penstock import _native
from penstock.bridge.position import PositionTracker, TrackedIteration, get_tracker
from penstock.errors import StateError
from penstock.transform.output import STRINGS, Output

if TYPE_CHECKING:
    from penstock.batch.loader import Loader
    from penstock.batch.maker import Batch

# TensorFlow takes 25 µs to receive an array of any size, in which time about a hundred kilobytes are copied:
# 40 columns of 1024 numbers took 2.3 ms per batch one by one, and 0.5 ms as two matrices, unstacked there.
_SMALL_BYTES = 64 << 10

Parts = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]


def make_dataset(loader: Loader) -> tf.data.Dataset:
    """Return a `tf.data.Dataset` of the loader's batches; each iteration read to its end is the next epoch.

    The data set does not prefetch: the loader itself does, and so its state stays exact.
    """
    tracker = get_tracker(loader)
    is_whole = not loader.is_endless and _begins_whole(tracker, tracker.next_position())

    def begin() -> TrackedIteration:
        iteration = tracker.begin()
        if is_whole and not _begins_whole(tracker, iteration.start):
            raise StateError(
                "state of the loader",
                expected="a state loaded before the call of to_tf()",
                got=f"epoch {iteration.start[0]}, step {iteration.start[1]}, loaded after it",
                advice="Call to_tf() again after load_state_dict(): its number of batches is fixed.",
            )
        return iteration

    dataset = generate(loader, tracker, begin, lambda parts: parts if parts[2] else parts[:2])
    if loader.is_endless:
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))
    elif is_whole and loader.options.bucket_by is None:  # iterations over buckets differ in length
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(len(loader)))
    return dataset


def generate(
    loader: Loader,
    tracker: PositionTracker,
    begin: Callable[[], TrackedIteration],
    arrange: Callable[[Parts], Any],
) -> tf.data.Dataset:
    """Return a `tf.data.Dataset` of a loader's batches.

    Args:
        loader: The loader.
        tracker: Reads the iterations.
        begin: Starts an iteration.
        arrange: Makes an element of the data set from inputs, targets and weights.
    """
    layout = Layout.of(loader)
    reference = weakref.ref(loader)  # TensorFlow never releases the function below

    def read() -> Iterator[tuple[NDArray[Any], ...]]:
        loader = reference()
        if loader is None:
            raise RuntimeError("the loader of this data set was deleted; keep a reference to the loader")
        iteration = _Iteration()
        try:
            _UNFINISHED.add(iteration)
            for batch in tracker.read(loader, begin()):
                yield layout.pack(batch)
        except Exception as error:
            loader.last_error = error  # TensorFlow keeps only its text
            raise
        finally:
            _UNFINISHED.discard(iteration)

    def unpack(*tensors: Any) -> Any:
        return arrange(layout.unpack(tensors))

    options = tf.data.Options()
    options.deterministic = True
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    options.experimental_optimization.inject_prefetch = False
    options.autotune.enabled = False  # nothing to tune, and its thread delays the end of an iterator
    dataset = tf.data.Dataset.from_generator(read, output_signature=layout.specs)
    # Synchronous: TensorFlow would turn it into a parallel map, which prefetches.
    dataset = dataset.map(tf.autograph.experimental.do_not_convert(unpack), synchronous=True)
    dataset = dataset.with_options(options)
    dataset.loader = loader  # a data set, or one derived from it, keeps the loader alive
    return dataset


class _Iteration:
    """An iteration that has started."""


_UNFINISHED: weakref.WeakSet[_Iteration] = weakref.WeakSet()


@atexit.register
def _end_iterators() -> None:
    """Close iterators that are still open when the interpreter exits, while Python can close generators.

    TensorFlow closes an iterator when it is deleted. An iterator that a module or a traceback holds would be
    deleted after the interpreter has shut down, which fails with a message on stderr.
    """
    if _UNFINISHED:
        for each in gc.get_objects():
            if issubclass(type(each), tf.data.Iterator):  # `isinstance` would call into proxy objects
                vars(each).clear()


class Leaf(NamedTuple):
    """One array of a batch.

    Attributes:
        part: 0 for inputs, 1 for targets, 2 for weights.
        name: Name of the output.
        spec: Its `tf.TensorSpec` or `tf.RaggedTensorSpec`.
    """

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
        names: Names of inputs, targets and weights, in order.
    """

    stacks: tuple[tuple[Leaf, ...], ...]
    singles: tuple[Leaf, ...]
    lists: tuple[Leaf, ...]
    specs: tuple[Any, ...]
    names: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, loader: Loader) -> Layout:
        """Return the layout of a loader's batches."""
        groups: dict[tuple[Any, ...], list[Leaf]] = {}
        singles, lists = [], []
        for part, outputs in enumerate(loader.signature()):
            for name, output in outputs.items():
                leaf = Leaf(part, name, make_spec(output, loader.static_batch_size))
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
        names = tuple(tuple(outputs) for outputs in loader.signature())
        return cls(tuple(stacks), tuple(singles), tuple(lists), tuple(specs), names)

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
        inputs, targets, weights = (dict.fromkeys(names) for names in self.names)
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


def make_spec(output: Output, batch_size: int | None) -> Any:
    """Return the TensorFlow spec of an output in batches of `batch_size` rows."""
    shape = (batch_size, *output.shape)
    dtype = "string" if output.dtype in STRINGS else output.dtype
    if not output.is_ragged:
        return tf.TensorSpec(shape, dtype)
    rank = 2 if len(output.shape) > 1 and output.shape[1] is None else 1
    return tf.RaggedTensorSpec(shape, dtype, ragged_rank=rank, row_splits_dtype=tf.int64)


def _begins_whole(tracker: PositionTracker, position: tuple[int, int]) -> bool:
    return position == (tracker.whole_iteration(position[0]).start, 0)


def _is_small(output: Output, batch_size: int) -> bool:
    dims = [dim for dim in output.shape if dim is not None]
    if len(dims) < len(output.shape) or output.dtype in STRINGS:
        return False
    return int(np.prod(dims)) * np.dtype(output.dtype).itemsize * batch_size <= _SMALL_BYTES


def _as_array(value: Any) -> NDArray[Any]:
    return value if isinstance(value, np.ndarray) else np.array(value.tolist(), object)
