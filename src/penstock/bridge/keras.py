"""Batches for Keras's `fit`, `evaluate` and `predict`, on any backend.

In: a `Loader`. Out: a `KerasFeed`, which Keras accepts in place of arrays.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import keras
from keras.src.trainers.data_adapters import data_adapter_utils
from keras.src.trainers.data_adapters.data_adapter import DataAdapter
from keras.src.trainers.epoch_iterator import EpochIterator

from penstock.bridge.keras_model import check_names, check_order_of_targets, declare_input, takes_array
from penstock.bridge.outputs import Arrangement, Padding, Sizes, Structure, find_paddings, pad_array
from penstock.bridge.position import get_tracker
from penstock.errors import OptionError
from penstock.foundation.wording import show
from penstock.transform.assembly import Assembly
from penstock.transform.output import STRINGS
from penstock.transform.pipeline import Pipeline

if TYPE_CHECKING:
    from penstock.batch.loader import Loader
    from penstock.batch.maker import Batch, Converter, MadeBatch

# Value of `stop_training` while an epoch that was resumed in its middle ends. It is truthy, and differs
# from the True of any other callback.
_EPOCH_ENDS = "the epoch ends here"
_METHODS: Final = ("fit", "evaluate", "predict")
_ADVICE: Final = {
    "y": "The batches of the loader already contain the targets.",
    "sample_weight": "Weigh records by a field: `weight=NAME` of ps.convert or ps.open.",
    "class_weight": "ps.train(data, model=model, class_weights=…) weighs the classes in the loss; "
    "loader(…, weights={'adopted': {'yes': 3.0}}) draws records of a class more often.",
    "batch_size": "Set it where the loader is made: loader(…, batch_size=…).",
    "validation_batch_size": "Set it where that loader is made: loader(…, batch_size=…).",
    "shuffle": "Set it where the loader is made: loader(…, shuffle=…).",
}


def make_feed(loader: Loader, structure: Structure = "auto") -> KerasFeed:
    """Return the loader as an object that Keras accepts in place of arrays."""
    return KerasFeed(loader, structure)


class KerasFeed(DataAdapter):  # type: ignore[misc]
    """A loader as input of Keras: `model.fit(feed, epochs=3, callbacks=[feed.callback])`.

    Each epoch of Keras is the next epoch of the loader. A batch is `(inputs, targets)`, or
    `(inputs, targets, weights)` if records have weights. Each is an array if there is one of them, and a dict
    by name if there are several: then the model needs one `keras.Input(shape, name="photo")` for each name in
    `pipeline.inputs`. A model that takes its only input by name gets a dict as well. Before the first step, a
    model whose inputs have other names is refused, with the names to use.

    Keras ignores some arguments of `fit`, `evaluate` and `predict` when it is given a feed. Those that would
    have no effect are refused: `y`, `sample_weight`, `class_weight`, `batch_size`, and a `shuffle` that
    differs from the loader's. The default `shuffle=True` of `fit` cannot be distinguished from an explicit
    one, and is ignored.

    The loader's state is the position after the last batch that the model used. Where Keras prefetches (JAX,
    several devices), `callback` keeps the state exact. It also ends an epoch that was resumed in its middle
    on time, where Keras would warn, and lets a further `fit` continue where the last one was stopped.
    Callbacks that read the loader's state belong after it in the list.

    Attributes:
        loader: The loader.
        structure: Structure of the batches: "auto", "dict" or "tuple".
        callback: Callback to pass to `fit`.
        tracker: Position of the model in the loader's batches.
        is_continuous: Whether epochs of Keras are cut from one stream of batches.
    """

    def __init__(self, loader: Loader, structure: Structure = "auto") -> None:
        self.loader = loader
        self.structure = structure
        self.callback = FeedCallback(self)
        self.tracker = get_tracker(loader)
        self._arrangement = Arrangement.of(loader, structure)
        self._adapted: weakref.ref[Any] | None = None
        self._dataset: Any = None
        self._is_new = self._is_building = False
        # Epochs of bucketed batches differ in length, epochs of Keras do not: they are cut from one stream.
        self.is_continuous = loader.options.bucket_by is not None or loader.is_endless

    @property
    def num_batches(self) -> int | None:
        """Number of batches of one Keras epoch; None if the loader is endless.

        Raises:
            OptionError: Keras starts a run with an argument that would have no effect, or with a model whose
                inputs have other names, or whose outputs do not fit the classes of a target.
        """
        # This is the only attribute that Keras reads while it still holds the arguments of the run.
        model, learns = self._read_call(sys._getframe(1))
        if isinstance(model, keras.Model):
            self.adapt_to(model)
            if learns and isinstance(self.loader.pipeline, Assembly):
                # The checks of ps.train; the model half is loaded late, as Keras is.
                from penstock.model.class_outputs import check_class_outputs  # noqa: PLC0415

                is_ordered = self._arrangement.forms[1] == "tuple"
                check_class_outputs(model, Pipeline(self.loader.pipeline), is_ordered=is_ordered)
        if self.loader.is_endless:
            return None
        return sum(map(self.loader.num_steps, self.tracker.whole_iteration(self.tracker.next_position()[0])))

    @property
    def batch_size(self) -> int | None:
        """Number of records of each batch; None if it varies."""
        return self.loader.static_batch_size

    @property
    def has_partial_batch(self) -> bool | None:
        """Whether the last batch is smaller; always None, for unknown."""
        return None

    @property
    def partial_batch_size(self) -> int | None:
        """Number of records of the last batch; always None, for unknown."""
        return None

    def __len__(self) -> int:
        """Return the number of batches of a whole iteration."""
        return len(self.loader)

    def __repr__(self) -> str:
        return f"KerasFeed({self.loader!r}, batches of {self._arrangement.describe()})"

    def adapt_to(self, model: keras.Model) -> None:
        """Arrange the batches as a model takes them; Keras' own methods do so when they are called.

        Raises:
            OptionError: The inputs of the model cannot be matched with the inputs of the batches by name.
        """
        if self._adapted is not None and self._adapted() is model:
            return
        inputs = self._arrangement.outputs[0]
        declare_input(model, inputs)
        chosen = Arrangement.of(self.loader, self.structure)
        if self.structure == "auto" and len(inputs) == 1 and not takes_array(model, inputs):
            chosen = chosen.with_inputs("dict")
        check_names(model, inputs, chosen.forms[0], self.loader.pipeline)
        if chosen.forms[1] == "tuple":
            check_order_of_targets(model, chosen.outputs[1])
        self._adapted = weakref.ref(model)
        if chosen.forms != self._arrangement.forms:
            self._arrangement, self._dataset = chosen, None

    def _read_call(self, frame: FrameType | None) -> tuple[Any, bool]:
        """Return the model whose method starts a run, and whether targets are used there."""
        if frame is None or frame.f_code is not EpochIterator.__init__.__code__:
            return None, False
        given = frame.f_locals
        for name in ("y", "sample_weight", "class_weight"):
            if given.get(name) is not None:
                raise _refuse_argument(name, given[name])
        while frame is not None and frame.f_code.co_name not in _METHODS:
            frame = frame.f_back
        if frame is None:
            return None, False
        called = frame.f_locals
        is_trained = called.get("x") is self
        name = "batch_size" if is_trained else "validation_batch_size"
        if called.get(name) is not None:
            raise _refuse_argument(name, called[name])
        shuffle = called.get("shuffle", True) if is_trained and frame.f_code.co_name == "fit" else True
        if shuffle is not True and (shuffle or self.loader.options.shuffle):
            raise _refuse_argument("shuffle", shuffle)
        return called.get("self"), frame.f_code.co_name != "predict"

    def arrange(self, batch: Batch) -> tuple[Any, ...]:
        """Arrange a batch of the loader for Keras."""
        return _arrange(self._arrangement, batch)

    def get_tf_dataset(self) -> Any:
        """Return the batches for the TensorFlow backend."""
        # Other backends do without TensorFlow.
        from penstock.bridge.tensorflow import make_keras_dataset  # noqa: PLC0415

        self.tracker.start_run()  # Keras calls this once per run
        self._is_new = True
        if self._dataset is None:
            begin = partial(self.tracker.begin, is_continuous=self.is_continuous)
            self._dataset = make_keras_dataset(self.loader, begin, partial(_arrange, self._arrangement))
        return self._dataset

    def get_numpy_iterator(self) -> Iterator[Any]:
        """Return the batches as NumPy arrays."""
        return self._read(lambda made: self.arrange(made.batch))

    def get_jax_iterator(self) -> Iterator[Any]:
        """Return the batches for the JAX backend: aligned NumPy arrays, which JAX uses without a copy.

        JAX compiles a model again for every new shape, so varying lengths are padded to powers of two.
        """
        outputs = self.loader.signature()[0]
        varying = {name: output for name, output in outputs.items() if None in output.shape}
        paddings, sizes = find_paddings(self.loader.pipeline), Sizes()

        def pad(made: MadeBatch) -> tuple[Any, ...]:
            inputs = dict(made.batch[0])
            for name, output in varying.items():
                inputs[name] = pad_array(inputs[name], output, paddings.get(name, Padding()), sizes)
            return self.arrange((inputs, *made.batch[1:]))

        return self._read(pad)

    def _read(self, convert: Converter) -> Iterator[Any]:
        """Return the batches as the threads of the loader convert them."""
        for part in self.loader.signature():
            for name, output in part.items():
                if output.is_ragged or output.dtype in STRINGS:
                    advice = "Use a transform that pads or encodes the field, such as Pad() or Encode()."
                    raise OptionError(
                        f"output {name!r} with this Keras backend",
                        expected="an array of numbers",
                        got=output.describe(),
                        advice=advice,
                    )
        if self.tracker.is_followed:
            return self._keep_error(self._read_followed(convert))
        iteration = self.tracker.begin(is_continuous=self.is_continuous)
        return self._keep_error(self.tracker.read(self.loader, iteration, convert))

    def _keep_error(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield batches; an error that ends them is kept, because Keras may raise another one instead."""
        try:
            yield from batches
        except Exception as error:
            self.loader.last_error = error
            raise

    def _read_followed(self, convert: Converter) -> Iterator[Any]:
        # Keras asks for the next epoch before `callback` has counted the last step: the start is not known
        # until the first batch is requested.
        iteration = self.tracker.begin(is_continuous=self.is_continuous)
        yield from self.tracker.read(self.loader, iteration, convert)

    def get_torch_dataloader(self) -> Any:
        """Return the batches for the torch backend."""
        return data_adapter_utils.get_torch_dataloader(self.get_numpy_iterator())

    def on_epoch_begin(self) -> None:
        """Note that an epoch begins, as reported by Keras.

        Keras starts a run by reporting the end of an epoch; if it did not, it reads the first batch only to
        build the model.
        """
        self._is_new, self._is_building = False, self._is_new

    def on_epoch_end(self) -> None:
        """Note that an epoch has ended or that a run begins, as reported by Keras."""
        if self._dataset is None:
            self.tracker.mark_epoch_end()
        elif self._is_building:
            self.tracker.discard_iteration()
        self._is_new = self._is_building = False


def _refuse_argument(name: str, given: Any) -> OptionError:
    return OptionError(
        name,
        field=name,
        expected="not to be given, as it has no effect on the batches of a loader",
        got=show(given),
        advice=_ADVICE[name],
    )


def _arrange(arrangement: Arrangement, batch: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    """Arrange a batch for Keras, which expects no empty dict of targets."""
    return arrangement(batch) if arrangement.outputs[1] else arrangement(batch)[:1]


class FeedCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Keeps the loader's state at the last batch that the model used.

    Where a callback handles the end of each step, Keras waits for the device after each step, which leaves
    the device idle while the next step is prepared. It does not wait for callbacks that are `async_safe`, and
    calls them later, in another thread. A step is therefore counted when the next one begins. If Keras does
    wait, for another callback, the step is counted at its end, so that the other callback sees the state.

    Attributes:
        async_safe: Tells Keras not to wait; always True.
    """

    async_safe = True

    def __init__(self, feed: KerasFeed) -> None:
        super().__init__()
        self._feed = feed
        self._thread: int | None = None
        self._num_counted = self._num_begun = 0
        self._num_left: int | None = None  # steps of an epoch that was resumed in its middle

    def set_params(self, params: Any) -> None:
        """Forget a step that an error ended: Keras calls this when a run begins."""
        super().set_params(params)
        self._num_counted = self._num_begun = 0

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        """Start at the loader's position; batches read before only built the model."""
        feed, loader = self._feed, self._feed.loader
        self._thread = threading.get_ident()
        is_cut = self.params.get("steps") != feed.num_batches  # steps_per_epoch was given
        epoch, step = feed.tracker.follow_consumer(is_continuous=is_cut)
        epochs = feed.tracker.whole_iteration(epoch)
        is_short = not is_cut and not feed.is_continuous and (epoch, step) != (epochs.start, 0)
        self._num_left = sum(map(loader.num_steps, range(epoch, epochs.stop))) - step if is_short else None

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Reset the number of steps."""
        self._num_counted = self._num_begun = 0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Count the steps before this one; end the epoch after it if no batch is left."""
        self._count(batch)
        self._num_begun = batch + self.model.steps_per_execution
        if self._num_left is not None and self._num_begun >= self._num_left:
            self._num_left = None
            if not self.model.stop_training:
                self.model.stop_training = _EPOCH_ENDS

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Count the step, unless Keras calls this later, in a separate thread."""
        if threading.get_ident() == self._thread:
            self._count(batch + 1)

    def on_test_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        """Count the last step before a validation."""
        self._count(self._num_begun)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Count the last step. Continue training, unless another callback stopped it."""
        self._count(self._num_begun)
        if self.model.stop_training is _EPOCH_ENDS:
            self.model.stop_training = False

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002
        """Leave the loader at the position of the model."""
        self._feed.tracker.stop_following()

    def _count(self, num_steps: int) -> None:
        """Advance the loader's position to a number of steps of this epoch."""
        if num_steps > self._num_counted:
            self._feed.tracker.advance(num_steps - self._num_counted)
            self._num_counted = num_steps
