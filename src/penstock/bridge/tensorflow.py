"""Batches as a `tf.data.Dataset`.

In: a `Loader`. Out: a data set of its batches, in the loader's own memory where they are large.
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
from penstock.bridge.position import Course, Passage, course_of
from penstock.errors import StateError
from penstock.transform.output import STRINGS, Output

if TYPE_CHECKING:
    from penstock.batch.loader import Loader
    from penstock.batch.maker import Batch

# TensorFlow takes 25 µs to receive an array of any size, in which time some hundred kilobytes are copied: 40
# columns of 1024 numbers took 2.3 ms a batch one by one, and 0.5 ms as two matrices, taken apart over there.
_SMALL_BYTES = 64 << 10

Parts = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]


def make_dataset(loader: Loader) -> tf.data.Dataset:
    """Return a data set of the loader's batches; each iteration that is read to its end is the next epoch.

    Nothing is fetched ahead of whoever iterates: the loader itself does that, and its state stays exact.
    """
    course = course_of(loader)
    is_whole = not loader.is_endless and _begins_whole(course, course.where())

    def begin() -> Passage:
        passage = course.begin()
        if is_whole and not _begins_whole(course, passage.start):
            raise StateError(
                "state of the loader",
                expected="one that was loaded before to_tf()",
                got=f"epoch {passage.start[0]}, step {passage.start[1]}, loaded after it",
                advice="Call to_tf() again: the data set knows how many batches it has.",
            )
        return passage

    dataset = generate(loader, course, begin, lambda parts: parts if parts[2] else parts[:2])
    if loader.is_endless:
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))
    elif is_whole and loader.options.bucket_by is None:  # else iterations differ
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(len(loader)))
    return dataset


def generate(
    loader: Loader, course: Course, begin: Callable[[], Passage], arrange: Callable[[Parts], Any]
) -> tf.data.Dataset:
    """Return a data set of a loader's batches.

    Args:
        loader: The loader.
        course: Reads its iterations.
        begin: Begins one.
        arrange: Puts inputs, targets and weights together to what an element is.
    """
    layout = Layout.of(loader)
    reference = weakref.ref(loader)  # TensorFlow never lets go of the function below

    def read() -> Iterator[tuple[NDArray[Any], ...]]:
        loader = reference()
        if loader is None:
            raise RuntimeError("the data set of these batches is gone")
        iteration = _Iteration()
        try:
            _UNFINISHED.add(iteration)
            for batch in course.read(loader, begin()):
                yield layout.pack(batch)
        except Exception as error:
            loader.last_error = error  # TensorFlow keeps no more than its text
            raise
        finally:
            _UNFINISHED.discard(iteration)

    def unpack(*tensors: Any) -> Any:
        return arrange(layout.unpack(tensors))

    options = tf.data.Options()
    options.deterministic = True
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    options.experimental_optimization.inject_prefetch = False
    options.autotune.enabled = False  # there is nothing to tune, and an iterator only ends with its next tick
    dataset = tf.data.Dataset.from_generator(read, output_signature=layout.specs)
    # Synchronous, or else TensorFlow makes a parallel map of it, which reads ahead.
    dataset = dataset.map(tf.autograph.experimental.do_not_convert(unpack), synchronous=True)
    dataset = dataset.with_options(options)
    dataset.loader = loader  # whoever has a data set, or one made of it, keeps this
    return dataset


class _Iteration:
    """An iteration that has begun."""


_UNFINISHED: weakref.WeakSet[_Iteration] = weakref.WeakSet()


@atexit.register
def _end_iterators() -> None:
    """End iterators that are left when the interpreter exits, while Python can still close their generators.

    TensorFlow ends them when they are deleted. Those that a module or a traceback holds are deleted after the
    interpreter has shut down, which fails with a message on stderr.
    """
    if _UNFINISHED:
        for each in gc.get_objects():
            if issubclass(type(each), tf.data.Iterator):  # by type: `isinstance` asks proxies for their class
                vars(each).clear()


class Leaf(NamedTuple):
    """One array of a batch.

    Attributes:
        part: 0 of inputs, 1 of targets, 2 of weights.
        name: Of the output.
        spec: What TensorFlow makes of it.
    """

    part: int
    name: str
    spec: Any


@dataclass(frozen=True)
class Layout:
    """How a batch crosses to TensorFlow.

    Attributes:
        stacks: Small arrays of one type and shape, which cross as one.
        singles: Arrays that cross by themselves, without being copied.
        lists: What is ragged, as values and the offsets of their rows.
        specs: What crosses: stacks, singles, then values and offsets of each of the lists.
        names: Of inputs, targets and weights, in order.
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
        """Return what crosses of a batch."""
        crossing = []
        for leaves in self.stacks:
            arrays = [batch[leaf.part][leaf.name] for leaf in leaves]
            rows, *shape = arrays[0].shape
            stack = _native.empty((len(arrays), rows, *shape), arrays[0].dtype.name)
            np.concatenate(arrays, out=stack.reshape(len(arrays) * rows, *shape))
            crossing.append(stack)
        crossing += [_as_array(batch[leaf.part][leaf.name]) for leaf in self.singles]
        for leaf in self.lists:
            value, splits = batch[leaf.part][leaf.name].nested()
            crossing += [_as_array(value), *splits]
        return tuple(crossing)

    def unpack(self, tensors: tuple[Any, ...]) -> Parts:
        """Return the parts of a batch, of the tensors that crossed."""
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
    """Return what TensorFlow calls an output, of batches with so many rows."""
    shape = (batch_size, *output.shape)
    dtype = "string" if output.dtype in STRINGS else output.dtype
    if not output.is_ragged:
        return tf.TensorSpec(shape, dtype)
    rank = 2 if len(output.shape) > 1 and output.shape[1] is None else 1
    return tf.RaggedTensorSpec(shape, dtype, ragged_rank=rank, row_splits_dtype=tf.int64)


def _begins_whole(course: Course, position: tuple[int, int]) -> bool:
    return position == (course.whole(position[0]).start, 0)


def _is_small(output: Output, batch_size: int) -> bool:
    dims = [dim for dim in output.shape if dim is not None]
    if len(dims) < len(output.shape) or output.dtype in STRINGS:
        return False
    return int(np.prod(dims)) * np.dtype(output.dtype).itemsize * batch_size <= _SMALL_BYTES


def _as_array(value: Any) -> NDArray[Any]:
    return value if isinstance(value, np.ndarray) else np.array(value.tolist(), object)
