"""Batches as a `tf.data.Dataset`.

In: a `Loader`. Out: a `tf.data.Dataset` of its batches. The threads of the loader make the tensors, ahead of
the consumer; large arrays share the memory of the loader.
"""

from __future__ import annotations

import atexit
import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from numpy.typing import NDArray
from tensorflow.python.data.ops.iterator_ops import OwnedIterator

from penstock.bridge.position import PositionTracker, TrackedIteration, get_tracker
from penstock.bridge.structure import Arrangement, Structure
from penstock.bridge.tensorflow_layout import Layout, Parts
from penstock.errors import StateError

if TYPE_CHECKING:
    from penstock.batch.loader import Loader
    from penstock.batch.maker import MadeBatch


def make_dataset(loader: Loader, structure: Structure = "auto") -> tf.data.Dataset:
    """Return a `tf.data.Dataset` of the loader's batches; each iteration read to its end is the next epoch.

    The data set does not prefetch: the loader itself does, and so its state stays exact.

    Raises:
        OptionError: There is no such structure.
    """
    arrangement = Arrangement.of(loader, structure)
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

    source = TensorSource(loader, tracker, Layout.of(loader), begin, arrangement)
    dataset = source.generate(begin)
    if loader.is_endless:
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))
    elif is_whole and loader.options.bucket_by is None:  # iterations over buckets differ in length
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(len(loader)))
    return LoaderDataset(dataset, source)


def make_keras_dataset(
    loader: Loader, begin: Callable[[], TrackedIteration], arrange: Callable[[Parts], Any]
) -> tf.data.Dataset:
    """Return a `tf.data.Dataset` of the loader's batches for Keras, which has no cardinality.

    Args:
        loader: The loader.
        begin: Starts an iteration.
        arrange: Makes an element of the data set from inputs, targets and weights.
    """
    source = TensorSource(loader, get_tracker(loader), Layout.of(loader), begin, arrange)
    return LoaderDataset(source.generate(begin), source)


@dataclass(frozen=True)
class TensorSource:
    """Batches of a loader as tensors.

    Attributes:
        loader: The loader.
        tracker: Reads the iterations.
        layout: How the arrays of a batch become tensors.
        begin: Starts an iteration.
        arrange: Makes an element of the data set from inputs, targets and weights.
    """

    loader: Loader
    tracker: PositionTracker
    layout: Layout
    begin: Callable[[], TrackedIteration]
    arrange: Callable[[Parts], Any]

    def read(self, iteration: TrackedIteration) -> Iterator[Any]:
        """Yield the remaining elements of an iteration as eager tensors.

        Raises:
            tf.errors.OpError: The loader raised an error, which is the cause.
        """
        with _translating_errors(self.loader):
            yield from self.tracker.read(self.loader, iteration, self._convert)

    def start(self) -> TrackedIteration:
        """Start an iteration.

        Raises:
            tf.errors.OpError: It cannot be started; the reason is the cause.
        """
        with _translating_errors(self.loader):
            return self.begin()

    def _convert(self, made: MadeBatch) -> Any:
        return self.arrange(self.layout.make_tensors(made.batch))

    def generate(self, begin: Callable[[], TrackedIteration]) -> tf.data.Dataset:
        """Return a data set that runs in TensorFlow's runtime.

        Args:
            begin: Starts or continues an iteration.
        """
        layout, tracker, arrange = self.layout, self.tracker, self.arrange
        reference = weakref.ref(self.loader)  # TensorFlow never releases the functions below

        def pack(made: MadeBatch) -> tuple[NDArray[Any], ...]:
            return layout.pack(made.batch)

        def read() -> Iterator[tuple[NDArray[Any], ...]]:
            loader = reference()
            if loader is None:
                raise RuntimeError("the loader of this data set was deleted; keep a reference to the loader")
            iteration = _Iteration()
            try:
                _UNFINISHED.add(iteration)
                yield from tracker.read(loader, begin(), pack)
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
        return dataset.with_options(options)


class LoaderDataset(tf.data.Dataset):  # type: ignore[misc]
    """The data set of a loader; Python loops over it get tensors without TensorFlow's runtime.

    That runtime passes a batch from thread to thread, each of which waits for a core and for the
    interpreter. With two busy cores, `next` took milliseconds for this.

    Attributes:
        loader: The loader; a data set, or one derived from it, keeps it alive.
    """

    def __init__(self, dataset: tf.data.Dataset, source: TensorSource) -> None:
        self.loader = source.loader
        self._source = source
        self._runtime_dataset = dataset
        super().__init__(dataset._variant_tensor)

    def __iter__(self) -> Iterator[Any]:
        if not tf.executing_eagerly():
            iterator: Iterator[Any] = super().__iter__()
            return iterator
        return BatchIterator(self._runtime_dataset, self._source)

    @property
    def element_spec(self) -> Any:
        """Specs of the tensors of an element."""
        return self._runtime_dataset.element_spec

    def _inputs(self) -> list[tf.data.Dataset]:
        return [self._runtime_dataset]


class BatchIterator(OwnedIterator):  # type: ignore[misc]
    """One iteration over a `LoaderDataset`.

    `next` returns tensors that the threads of the loader made. Once TensorFlow uses the iterator, for example
    as an argument of a `tf.function`, its runtime reads the remaining batches.
    """

    _uses_runtime = False
    _tensors: Any = None

    def __init__(self, dataset: tf.data.Dataset, source: TensorSource) -> None:
        # The constructor of TensorFlow's iterator is called when its runtime is used.
        self._runtime_dataset = dataset
        self._source = source
        self._iteration: TrackedIteration | None = None

    def __next__(self) -> Any:
        if self._uses_runtime or not tf.executing_eagerly():
            return super().__next__()
        if self._tensors is None:
            self._iteration = self._source.start()
            self._tensors = self._source.read(self._iteration)
        return next(self._tensors)

    def get_next(self) -> Any:
        """Return the next element.

        Raises:
            tf.errors.OutOfRangeError: There is none.
        """
        if self._uses_runtime or not tf.executing_eagerly():
            return super().get_next()
        try:
            return next(self)
        except StopIteration:
            raise tf.errors.OutOfRangeError(None, None, "End of sequence") from None

    @property
    def element_spec(self) -> Any:
        """Specs of the tensors of an element."""
        return self._runtime_dataset.element_spec

    def __getattr__(self, name: str) -> Any:
        if self._uses_runtime or not name.startswith("_") or name.startswith("__"):
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}", obj=self, name=name
            )
        self._use_runtime()
        return getattr(self, name)

    def _use_runtime(self) -> None:
        """Make the iterator of TensorFlow's runtime, for the remaining batches."""
        dataset, iteration = self._runtime_dataset, self._iteration
        self._uses_runtime = True
        with tf.init_scope():  # a function that is being traced may be the one that uses it
            if iteration is not None:
                self._tensors.close()
                dataset = self._source.generate(lambda: iteration)
            super().__init__(dataset)


@contextmanager
def _translating_errors(loader: Loader) -> Iterator[None]:
    """Raise errors of a loader as TensorFlow's runtime raises those of a generator."""
    try:
        yield
    except Exception as error:
        loader.last_error = error
        kinds = (
            ((ValueError, TypeError), tf.errors.InvalidArgumentError),
            (MemoryError, tf.errors.ResourceExhaustedError),
            (NotImplementedError, tf.errors.UnimplementedError),
        )
        kind = next((kind for base, kind in kinds if isinstance(error, base)), tf.errors.UnknownError)
        raise kind(None, None, f"{type(error).__name__}: {error}") from error


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


def _begins_whole(tracker: PositionTracker, position: tuple[int, int]) -> bool:
    return position == (tracker.whole_iteration(position[0]).start, 0)
