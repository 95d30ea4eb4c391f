"""Batches as a `tf.data.Dataset`, and generated programs that call TensorFlow.

In: a `Loader`. Out: a `tf.data.Dataset` of its batches. The threads of the loader make the tensors, ahead of
the consumer; large arrays share the memory of the loader. In: statements. Out: the values that they bind.
"""

from __future__ import annotations

import ast
import atexit
import gc
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import tensorflow as tf
from numpy.typing import NDArray
from tensorflow.python.data.ops.iterator_ops import OwnedIterator

from penstock.bridge.outputs import Arrangement, Structure
from penstock.bridge.position import PositionTracker, TrackedIteration, get_tracker
from penstock.bridge.tensorflow_layout import Layout, Parts
from penstock.codegen.interpreter import Interpreter, Scope
from penstock.errors import StateError
from penstock.transform.output import Output

if TYPE_CHECKING:
    from penstock.batch.loader import Loader
    from penstock.batch.maker import MadeBatch


def make_dataset(loader: Loader, structure: Structure = "auto") -> tf.data.Dataset:
    """Return a `tf.data.Dataset` of the loader's batches; each iteration read to its end is the next epoch.

    The data set does not prefetch: the loader itself does, and so its state stays exact.
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

    `arrange`: makes an element of the data set from inputs, targets and weights.
    """
    source = TensorSource(loader, get_tracker(loader), Layout.of(loader), begin, arrange)
    return LoaderDataset(source.generate(begin), source)


@dataclass(frozen=True)
class TensorSource:
    """Batches of a loader as tensors.

    `begin` starts an iteration. `arrange` makes an element of the data set from inputs, targets and weights.
    """

    loader: Loader
    tracker: PositionTracker
    layout: Layout
    begin: Callable[[], TrackedIteration]
    arrange: Callable[[Parts], Any]

    def read(self, iteration: TrackedIteration) -> Iterator[Any]:
        """Yield the remaining elements of an iteration as eager tensors."""
        with _translating_errors(self.loader):
            yield from self.tracker.read(
                self.loader, iteration, lambda made: self.arrange(self.layout.make_tensors(made.batch))
            )

    def start(self) -> TrackedIteration:
        """Start an iteration."""
        with _translating_errors(self.loader):
            return self.begin()

    def generate(self, begin: Callable[[], TrackedIteration]) -> tf.data.Dataset:
        """Return a data set that runs in TensorFlow's runtime."""
        layout, tracker, arrange = self.layout, self.tracker, self.arrange
        reference = weakref.ref(self.loader)  # TensorFlow never releases the functions below

        def pack(made: MadeBatch) -> tuple[NDArray[Any], ...]:
            return layout.pack(made.batch)

        def read() -> Iterator[tuple[NDArray[Any], ...]]:
            loader = reference()
            if loader is None:
                raise RuntimeError("the loader of this data set was deleted; keep a reference to the loader")
            try:
                yield from tracker.read(loader, begin(), pack)
            except Exception as error:
                loader.last_error = error  # TensorFlow keeps only its text
                raise

        def unpack(*tensors: Any) -> Any:
            return arrange(layout.unpack(tensors))

        options = tf.data.Options()
        options.deterministic = True
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
        options.experimental_optimization.inject_prefetch = False
        options.autotune.enabled = False  # nothing to tune, and its thread delays the end of an iterator
        dataset = tf.data.Dataset.from_generator(lambda: _Iteration(read()), output_signature=layout.specs)
        # Synchronous: TensorFlow would turn it into a parallel map, which prefetches.
        dataset = dataset.map(tf.autograph.experimental.do_not_convert(unpack), synchronous=True)
        return dataset.with_options(options)


class LoaderDataset(tf.data.Dataset):  # type: ignore[misc]
    """The data set of a loader; Python loops over it get tensors without TensorFlow's runtime.

    That runtime passes a batch from thread to thread, and each thread waits for a core and for the
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
        """Return the next element."""
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
    """Raise errors of a loader as TensorFlow's runtime raises errors of a generator."""
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
    """An iteration that has started; TensorFlow keeps it until it has finalized its iterator."""

    def __init__(self, elements: Iterator[tuple[NDArray[Any], ...]]) -> None:
        self._elements = elements
        _UNFINISHED.add(self)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> tuple[NDArray[Any], ...]:
        return next(self._elements)


_UNFINISHED: weakref.WeakSet[_Iteration] = weakref.WeakSet()
_END_SECONDS: Final = 2.0


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
        _wait_for_end(_END_SECONDS)


def _wait_for_end(seconds: float) -> None:
    """Wait until TensorFlow has finalized its iterators, at most for a time.

    The thread that ran the last step of an iterator releases it after it has returned the batch. If that is
    later than the deletion in Python, the iterator ends on that thread.
    """
    end = time.monotonic() + seconds
    while _UNFINISHED and time.monotonic() < end:
        time.sleep(0.001)


def _begins_whole(tracker: PositionTracker, position: tuple[int, int]) -> bool:
    return position == (tracker.whole_iteration(position[0]).start, 0)


def run_program(statements: Iterable[ast.stmt]) -> Scope:
    """Run a generated program by calling TensorFlow; return the values of its names."""
    scope: Scope = {"tf": tf, "len": len}
    # Functions contain no Python control flow over tensors that AutoGraph would have to rewrite.
    Interpreter(scope, tf.autograph.experimental.do_not_convert).run(statements)
    return scope


def trace_predictions(model: Any, inputs: Mapping[str, Output], given: Any) -> None:
    """Let TensorFlow trace the predictions of a model once, for batches of any size and lists of any length.

    By itself, it traces them for the sizes of the first batch, and again for others. If a model has to know
    the sizes, nothing is traced here.

    `given`: a batch as the model takes it: an array, or arrays by name.
    """
    if model.run_eagerly:
        return

    def specify(output: Output, array: Any) -> tf.TensorSpec:
        sizes = output.shape if len(output.shape) == array.ndim - 1 else array.shape[1:]
        return tf.TensorSpec((None, *sizes), array.dtype)

    if isinstance(given, Mapping):
        specs: Any = {name: specify(inputs[name], array) for name, array in given.items()}
    else:
        specs = specify(next(iter(inputs.values())), given)
    model.make_predict_function()
    trace = getattr(model.predict_function, "get_concrete_function", None)
    # A model of the user may refuse unknown sizes with any error; its real errors come with the batch.
    with suppress(Exception):
        if trace is not None:
            trace([(specs,)])
