"""Batches for Keras's `fit`, `evaluate` and `predict`, on any backend.

In: a `Loader`. Out: a `KerasFeed`, which Keras takes in the place of arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import keras
from keras.src.trainers.data_adapters import data_adapter_utils
from keras.src.trainers.data_adapters.data_adapter import DataAdapter
from keras.src.trainers.epoch_iterator import EpochIterator

from penstock.bridge.outputs import Padding, Sizes, find_paddings, pad_array
from penstock.bridge.position import course_of
from penstock.errors import OptionError
from penstock.foundation.wording import show
from penstock.transform.output import STRINGS

if TYPE_CHECKING:
    from penstock.batch.loader import Loader
    from penstock.batch.maker import Batch

# What `stop_training` is while an epoch that was begun in its middle ends: true, and nobody else's True.
_EPOCH_ENDS = "the epoch ends here"
_METHODS: Final = ("fit", "evaluate", "predict")
_ADVICE: Final = {
    "y": "The feed has the targets of the data set already.",
    "sample_weight": "Weigh records by a field: --weight NAME of 'penstock convert', weight='NAME' of "
    "ps.convert or ps.open.",
    "class_weight": "ps.train(data, model=model, class_weights=…) weighs the classes in the loss; "
    "loader(…, weights={'adopted': {'yes': 3.0}}) draws records of a class more often.",
    "batch_size": "Set it where the loader is made: loader(…, batch_size=…).",
    "validation_batch_size": "Set it where that loader is made: loader(…, batch_size=…).",
    "shuffle": "Set it where the loader is made: loader(…, shuffle=…).",
}


def make_feed(loader: Loader) -> KerasFeed:
    """Return what Keras takes in the place of arrays."""
    return KerasFeed(loader)


class KerasFeed(DataAdapter):  # type: ignore[misc]
    """A loader as Keras takes it: `model.fit(feed, epochs=3, callbacks=[feed.callback])`.

    Every epoch of Keras is the next epoch of the loader. A batch is `(inputs, target)`, with a weight behind
    it if records have weights, or dicts of targets and weights if there are several targets. Inputs are a
    dict always, as what a model makes of it is not known here; Keras matches it by name, so that a model has
    `keras.Input(shape, name="photo")` for the output `photo`, and one for each of `pipeline.inputs`.
    Keras passes no other argument to a feed, so those that would have no effect are refused: `y`,
    `sample_weight`, `class_weight`, `batch_size`, and a `shuffle` that is not what the loader does. The
    default `shuffle=True` of `fit` cannot be distinguished from one that was given, and is ignored.

    The loader's state is that of the last batch that the model took. Where Keras fetches ahead (JAX, several
    devices), `callback` sees to that. It also ends an epoch that was begun in its middle where it ends, about
    which Keras would warn, and lets a further `fit` go on where the last one was stopped.

    Attributes:
        loader: The loader.
        callback: For the `callbacks` of `fit`.
    """

    def __init__(self, loader: Loader) -> None:
        self.loader = loader
        self.callback = FeedCallback(self)
        self.course = course_of(loader)
        self._dataset: Any = None
        self._is_new = self._is_building = False
        targets = tuple(loader.signature()[1])
        self._target = targets[0] if len(targets) == 1 else None
        # The epochs of buckets differ in length, and those of Keras do not: they are cut from the stream.
        self._flows = loader.options.bucket_by is not None

    @property
    def num_batches(self) -> int | None:
        """How many batches an epoch of Keras has; None if it never ends.

        Raises:
            OptionError: Keras asks for it to begin a run that was given an argument without effect.
        """
        # Of all that a feed is asked for, this alone comes while Keras still holds the arguments of a run.
        self._refuse_arguments(sys._getframe(1))
        if self.loader.is_endless:
            return None
        return sum(map(self.loader.num_steps, self.course.whole(self.course.where()[0])))

    @property
    def batch_size(self) -> int | None:
        """How many records a batch has; None if that varies."""
        return self.loader.static_batch_size

    @property
    def has_partial_batch(self) -> bool | None:
        """Whether the last batch is smaller: not known."""
        return None

    @property
    def partial_batch_size(self) -> int | None:
        """How many records the last batch has: not known."""
        return None

    def _refuse_arguments(self, frame: FrameType | None) -> None:
        """Refuse arguments of `fit`, `evaluate` and `predict` that Keras drops when it is given a feed."""
        if frame is None or frame.f_code is not EpochIterator.__init__.__code__:
            return
        given = frame.f_locals
        for name in ("y", "sample_weight", "class_weight"):
            if given.get(name) is not None:
                raise _refuse_argument(name, given[name])
        while frame is not None and frame.f_code.co_name not in _METHODS:
            frame = frame.f_back
        if frame is None:
            return
        called = frame.f_locals
        is_trained = called.get("x") is self
        name = "batch_size" if is_trained else "validation_batch_size"
        if called.get(name) is not None:
            raise _refuse_argument(name, called[name])
        shuffle = called.get("shuffle", True) if is_trained and frame.f_code.co_name == "fit" else True
        if shuffle is not True and (shuffle or self.loader.options.shuffle):
            raise _refuse_argument("shuffle", shuffle)

    def arrange(self, batch: Batch) -> tuple[Any, ...]:
        """Return a batch of the loader as Keras gets it."""
        return _arrange(self._target, (*batch, {})[:3])

    def get_tf_dataset(self) -> Any:
        """Return the batches for TensorFlow's backend."""
        from penstock.bridge.tensorflow import generate  # noqa: PLC0415 - other backends do without TensorFlow

        self.course.settle()  # Keras asks once in every run
        self._is_new = True
        if self._dataset is None:
            begin = partial(self.course.begin, flows=self._flows)
            self._dataset = generate(self.loader, self.course, begin, partial(_arrange, self._target))
        return self._dataset

    def get_numpy_iterator(self) -> Iterator[Any]:
        """Return the batches as NumPy arrays."""
        for part in self.loader.signature():
            for name, output in part.items():
                if output.is_ragged or output.dtype in STRINGS:
                    advice = "Give the pipeline a transform for it that pads, or encodes."
                    raise OptionError(
                        f"output {name!r} on this backend of Keras",
                        expected="an array of numbers",
                        got=output.describe(),
                        advice=advice,
                    )
        passage = self.course.begin(flows=self._flows)
        return map(self.arrange, self.course.read(self.loader, passage))

    def get_jax_iterator(self) -> Iterator[Any]:
        """Return the batches for JAX's backend: NumPy arrays, which are aligned and cross without a copy.

        JAX compiles a model anew for every shape: lengths that vary are padded to powers of two.
        """
        outputs = self.loader.signature()[0]
        varying = {name: output for name, output in outputs.items() if None in output.shape}
        if not varying:
            return self.get_numpy_iterator()
        paddings, sizes = find_paddings(self.loader.pipeline), Sizes()

        def pad(batch: tuple[Any, ...]) -> tuple[Any, ...]:
            inputs = dict(batch[0])
            for name, output in varying.items():
                inputs[name] = pad_array(inputs[name], output, paddings.get(name, Padding()), sizes)
            return (inputs, *batch[1:])

        return map(pad, self.get_numpy_iterator())

    def get_torch_dataloader(self) -> Any:
        """Return the batches for torch's backend."""
        return data_adapter_utils.get_torch_dataloader(self.get_numpy_iterator())

    def on_epoch_begin(self) -> None:
        """Hear from Keras that an epoch begins.

        A run begins by saying that an epoch is over; if it does not, the first one is read to build a model.
        """
        self._is_new, self._is_building = False, self._is_new

    def on_epoch_end(self) -> None:
        """Hear from Keras that an epoch is over, or that a run begins."""
        if self._dataset is None:
            self.course.doubt()
        elif self._is_building:
            self.course.forget()
        self._is_new = self._is_building = False


def _refuse_argument(name: str, given: Any) -> OptionError:
    return OptionError(
        name,
        field=name,
        expected="nothing, as it has no effect on the batches of a loader",
        got=show(given),
        advice=_ADVICE[name],
    )


def _arrange(
    target: str | None, parts: tuple[dict[str, Any], dict[str, Any], dict[str, Any]]
) -> tuple[Any, ...]:
    """Return a batch as Keras wants it: a model of one output takes no dict of targets."""
    inputs, targets, weights = parts
    if target is not None:
        return (inputs, targets[target], weights[target]) if weights else (inputs, targets[target])
    return parts if weights and targets else (inputs, targets) if targets else (inputs,)


class FeedCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Keeps a loader's state at the last batch that the model took."""

    def __init__(self, feed: KerasFeed) -> None:
        super().__init__()
        self._feed = feed
        self._num_seen = 0
        self._is_short = False

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        """Begin where the loader is; what was read before built the model."""
        feed = self._feed
        is_cut = self.params.get("steps") != feed.num_batches  # steps_per_epoch was given
        epoch, step = feed.course.follow(flows=is_cut)
        self._is_short = not is_cut and (epoch, step) != (feed.course.whole(epoch).start, 0)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Count anew."""
        self._num_seen = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Note what the model took."""
        is_over = self._feed.course.advance(batch + 1 - self._num_seen)
        self._num_seen = batch + 1
        if self._is_short and is_over:
            self._is_short = False
            if not self.model.stop_training:
                self.model.stop_training = _EPOCH_ENDS

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Let training go on, if nobody else has stopped it."""
        if self.model.stop_training is _EPOCH_ENDS:
            self.model.stop_training = False

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002
        """Leave the loader where the model is."""
        self._feed.course.leave()
