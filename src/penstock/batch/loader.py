"""`Loader`: batches of a split in an order that only the seed determines, resumable at every step.

In: the parts that `batch/build.py` assembles. Out: batches, the state of the consumer, and time statistics.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from penstock.batch.batch_plan import BatchPlan, Ticket
from penstock.batch.iteration import Iteration
from penstock.batch.maker import ConvertedJob, Converter, MadeBatch, Maker, Transforming, fit_slice
from penstock.batch.state import Identity, check_whole, make_state, read_state
from penstock.batch.stats import LoaderMeter, LoaderStats
from penstock.batch.supply import PlannedRows, RecordLocation, Supply
from penstock.errors import NotPicklableError, OptionError, StateError, importing
from penstock.foundation.job_window import max_window_bytes
from penstock.foundation.keras_backend import importing_keras
from penstock.foundation.thread_pool import Feed
from penstock.foundation.wording import show
from penstock.settings.loading import LoadOptions
from penstock.transform.output import Output

if TYPE_CHECKING:
    from penstock.bridge.outputs import Structure


@dataclass(frozen=True)
class LoaderParts:
    """Parts of a loader; states are checked against the identity."""

    plan: BatchPlan
    supply: Supply
    pipeline: Transforming
    options: LoadOptions
    identity: Identity


class Loader:
    """Batches of a split for training; each iteration is the next epoch.

    A batch is `(inputs, targets)`, or `(inputs, targets, weights)` if records have weights: dicts of arrays
    by output name. Their memory is aligned, and reused once no reference to the arrays is left. `to_keras`,
    `to_tf`, `to_torch` and `to_jax` give the same batches to a framework.

    Loading is exactly resumable: save `state_dict()` at any step, and pass it to `load_state_dict()` of a new
    loader with the same data, pipeline and options. It yields the remaining batches, byte for byte the same,
    for any number of threads. The state counts batches that were taken, not those prepared ahead.

    Attributes:
        last_error: Last error raised inside a framework that hides the original exception, or None.

    Example:
        >>> import penstock as ps
        >>> pets = ps.open("pets/", target="adopted")
        >>> loader = pets["train"].loader(batch_size=2, shuffle=True, seed=7)
        >>> for inputs, targets in loader:
        ...     state = loader.state_dict()
        >>> (state["epoch"], state["step"]) == (0, len(loader))
        True
    """

    def __init__(self, parts: LoaderParts) -> None:
        self._parts = parts
        self._meter = LoaderMeter()
        self._rows = PlannedRows(parts.plan, parts.supply)
        self._maker = Maker(
            self._rows,
            parts.pipeline,
            parts.options.seed,
            self._meter,
            slice_rows=fit_slice(parts.supply.record_bytes, prepares=parts.pipeline.prepares),
            augments=parts.options.augment is True,
            pad_to=parts.plan.slots if parts.options.last == "pad" else None,
        )
        self.last_error: BaseException | None = None
        self._position = (0, 0)
        self._next = (0, 0)  # where the next iteration begins
        self._feed: weakref.ref[Feed[Ticket, MadeBatch]] | None = None

    def __reduce__(self) -> NoReturn:
        raise NotPicklableError(
            "a loader has threads and open files, and cannot be pickled or copied",
            advice="Pickle the split, the pipeline and loader.state_dict(); then make a new loader from them "
            "and call load_state_dict().",
        )

    @property
    def __array__(self) -> NoReturn:
        # A property: Keras only looks whether `x` of a type that it does not know has this attribute.
        raise OptionError(
            "data",
            expected="arrays, or batches in the form of a framework",
            got="a Loader",
            advice="Pass loader.to_keras() to fit, evaluate and predict, or loader.to_tf().",
        )

    @property
    def options(self) -> LoadOptions:
        """Options of the loader."""
        return self._parts.options

    @property
    def pipeline(self) -> Transforming:
        """Assembly of the pipeline that turns columns into arrays; without a pipeline, stored values."""
        return self._parts.pipeline

    @property
    def position(self) -> tuple[int, int]:
        """Epoch and step of the next batch."""
        return self._position

    @property
    def next_start(self) -> tuple[int, int]:
        """Epoch and step of the first batch of the next iteration; an iteration that was left is an epoch."""
        return self._next

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches in the current epoch; only with buckets do epochs differ."""
        return self._parts.plan.num_steps(self._position[0])

    @property
    def num_slices(self) -> int:
        """Number of slices of a full batch; threads make them at the same time."""
        num_rows = -(-self.options.batch_size // self.options.world)
        return -(-num_rows // self._maker.slice_rows)

    @property
    def window_bytes(self) -> int:
        """Maximum total size of the batches that are ready or in the making, in bytes."""
        chosen = self.options.prefetch_bytes
        return max_window_bytes() if chosen is None else chosen

    def num_steps(self, epoch: int) -> int:
        """Return the number of batches in an epoch."""
        return self._parts.plan.num_steps(epoch)

    @property
    def static_batch_size(self) -> int | None:
        """Number of records in every batch, or None if it varies."""
        # A skipped record shortens its batch, unless the batch is padded.
        return None if self.may_skip and self.options.last != "pad" else self._parts.plan.slots

    @property
    def may_skip(self) -> bool:
        """Whether bad records are left out rather than being an error."""
        return any(source.losses.on_error != "raise" for source in self._parts.supply.sources)

    @property
    def is_endless(self) -> bool:
        """Whether an iteration never ends."""
        return self._parts.options.repeat is None

    def __len__(self) -> int:
        """Return the number of batches in a complete iteration."""
        repeat = self._parts.options.repeat
        if repeat is None:
            raise TypeError("a loader with repeat=None has no length: it repeats indefinitely")
        epoch, step = self._position
        if step >= self._parts.plan.num_steps(epoch):  # at the end of an epoch, the next one counts
            epoch = self._next[0]
        stop = epoch // repeat * repeat + repeat
        return sum(self._parts.plan.num_steps(epoch) for epoch in range(stop - repeat, stop))

    def __iter__(self) -> Iteration:
        return self.iterate()

    def iterate(self, convert: Converter | None = None) -> Iteration:
        """Start the next iteration, as `iter(loader)` does.

        Args:
            convert: Function that replaces the arrays of each batch; the threads of the loader call it, ahead
                of the consumer.
        """
        epoch, step = self._next
        repeat = self._parts.options.repeat
        # The end does not depend on the start: a resumed iteration ends where the first one would have.
        stop = math.inf if repeat is None else epoch // repeat * repeat + repeat
        iteration = self._iterate(epoch, step, stop, is_consumer=True, convert=convert)
        self._next = (epoch + 1 if repeat is None else int(stop), 0)
        self._position = (epoch, step)
        return iteration

    def read(self, epoch: int, start: int = 0, stop: int | None = None) -> Iteration:
        """Return the batches of one epoch without changing the state of the loader.

        Args:
            epoch: Number of the epoch, counted from 0.
            start: First batch.
            stop: Exclusive end. Defaults to the end of the epoch.
        """
        epoch = check_whole("epoch", epoch)
        start = check_whole("start", start)
        return self._iterate(epoch, start, epoch + 1, last_step=stop)

    def read_epochs(self, epoch: int, step: int, stop: float, convert: Converter | None = None) -> Iteration:
        """Return the batches from a position on, over several epochs, without changing the state.

        Args:
            epoch: Epoch of the first batch.
            step: Step of the first batch.
            stop: Exclusive end, as an epoch; infinity has no end.
            convert: Function that replaces the arrays of each batch; the threads of the loader call it, ahead
                of the consumer.
        """
        return self._iterate(epoch, step, stop, convert=convert)

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the consumer as a small dict that JSON can store."""
        return make_state(self._parts.identity, *self._position)

    def state_at(self, step: int, epoch: int | None = None) -> dict[str, Any]:
        """Return the state after `step` batches of an epoch; of the current epoch by default.

        Use it when a framework fetches batches ahead, so that the model has seen fewer than were taken.

        Raises:
            OptionError: The epoch has fewer batches.
        """
        epoch = self._position[0] if epoch is None else check_whole("epoch", epoch)
        step = check_whole("step", step)
        num_steps = self._parts.plan.num_steps(epoch)
        if step > num_steps:
            raise OptionError("step", expected=f"0 to {num_steps}", got=show(step))
        return make_state(self._parts.identity, epoch, step)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a state: the next iteration yields the remaining batches of its epoch.

        Raises:
            StateError: The state is not valid, or belongs to another data set, pipeline, order or batch size.
        """
        epoch, step = read_state(state, self._parts.identity)
        num_steps = self._parts.plan.num_steps(epoch)
        if step > num_steps:
            advice = "The state does not belong to this loader."
            raise StateError(
                "step of the loader state", expected=f"0 to {num_steps}", got=step, advice=advice
            )
        self.seek(epoch, step)

    def seek(self, epoch: int, step: int) -> None:
        """Move to a position: the next iteration begins after `step` batches of an epoch."""
        if step and step >= self._parts.plan.num_steps(epoch):
            # At the end of an epoch, iteration continues with the next one.
            self._position, self._next = (epoch, step), (epoch + 1, 0)
        else:
            self._position = self._next = (epoch, step)

    def where(self, step: int, epoch: int | None = None) -> list[RecordLocation]:
        """Return the locations of the records of a batch, in order; of the current epoch by default.

        Raises:
            OptionError: The epoch has no such batch.
        """
        epoch = self._position[0] if epoch is None else check_whole("epoch", epoch)
        step = check_whole("step", step)
        num_steps = self._parts.plan.num_steps(epoch)
        if step >= num_steps:
            raise OptionError("step", expected=f"0 to {num_steps - 1}", got=show(step))
        picks = self._parts.plan.picks(Ticket(epoch, step))
        numbers = [0] * len(picks.rows) if picks.sources is None else picks.sources.tolist()
        places = []
        for number, row in zip(numbers, picks.rows.tolist(), strict=True):
            shard, record = self._parts.supply.sources[number].scatter.rows.locate(row)
            places.append(RecordLocation(str(shard.path), record, row))
        return places

    def signature(self) -> tuple[dict[str, Output], dict[str, Output], dict[str, Output]]:
        """Return the specifications of inputs, targets and weights by name; weights may be empty."""
        pipeline = self._parts.pipeline
        weights: dict[str, Output] = {}
        if self._maker.has_weights:
            names = tuple(pipeline.targets) or ("weight",)
            weights = {name: Output(name, "float32", ()) for name in names}
        return dict(pipeline.inputs), dict(pipeline.targets), weights

    def stats(self) -> LoaderStats:
        """Return counts and durations so far."""
        supply = self._parts.supply
        feed = None if self._feed is None else self._feed()
        num_ready = 0 if feed is None else feed.num_ready
        return self._meter.stats(
            supply.read_seconds, supply.bytes_read, self._parts.options.count_threads(), num_ready
        )

    def to_tf(self, structure: Structure = "auto") -> Any:
        """Return a `tf.data.Dataset` of the batches; each complete iteration is one epoch.

        An element is `(inputs, targets)`, or `(inputs, targets, weights)` if records have weights. A single
        input or target is a tensor, so that models need no names; several are dicts by output name, which
        Keras matches with the names of inputs and outputs of the model.

        Args:
            structure: "auto" as above; "dict" for dicts also of a single input or target; "tuple" for tuples
                of several, in the order of `pipeline.inputs` and `pipeline.targets`.

        Raises:
            OptionError: There is no such structure.
            MissingPackageError: TensorFlow is not installed.

        Example:
            ```python
            pipeline = ps.Pipeline.fit(pets, name=None)  # the age alone
            dataset = pets["train"].loader(pipeline, batch_size=32, shuffle=True, seed=7).to_tf()
            model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
            model.compile("adam", "mse")
            model.fit(dataset, epochs=3, shuffle=False)
            ```
        """
        with importing("to_tf()", "tensorflow"):
            from penstock.bridge.tensorflow import make_dataset  # noqa: PLC0415 - TensorFlow, when asked for

        return make_dataset(self, structure)

    def to_keras(self, structure: Structure = "auto") -> Any:
        """Return the batches for Keras's `fit`, `evaluate` and `predict`, on any backend.

        A single input or target is an array, so that a model with one of them needs no names. Several are
        dicts: Keras matches inputs by name, so the model needs one input for each of `pipeline.inputs`, such
        as `keras.Input(shape, name="photo")` for the output `photo`. Other names are an error before the
        first step, with the names to use. A model that takes its only input by name, from a dict, gets one.

        Args:
            structure: "auto" as above; "dict" for dicts also of a single input or target; "tuple" for tuples
                of several, in the order of `pipeline.inputs` and `pipeline.targets`.

        Raises:
            OptionError: There is no such structure.
            MissingPackageError: Keras is not installed.

        Example:
            ```python
            feed = pets["train"].loader(pipeline, batch_size=32, shuffle=True, seed=7).to_keras()
            photo = keras.Input((96, 96, 3), name="photo")
            features = keras.applications.MobileNetV2(include_top=False, pooling="avg", weights=None)(photo)
            model = keras.Model(photo, keras.layers.Dense(2)(features))
            model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
            model.fit(feed, epochs=3, callbacks=[feed.callback])
            ```
        """
        with importing_keras("to_keras()"):
            from penstock.bridge.keras import make_feed  # noqa: PLC0415 - Keras, when asked for

        return make_feed(self, structure)

    def to_torch(self, structure: Structure = "dict") -> Any:
        """Return a `torch.utils.data.IterableDataset` of the batches, for `DataLoader(…, batch_size=None)`.

        Each iteration is the loader's next epoch. The tensors share the memory of the batch.

        Args:
            structure: "dict" for dicts by output name; "tuple" for tuples in the order of the pipeline;
                "auto" for dicts of several. The last two give a single input or target as a tensor.

        Raises:
            OptionError: An output has strings, or nested lists of varying length; or no such structure.
            MissingPackageError: torch is not installed.

        Example:
            ```python
            feed = pets["train"].loader(pipeline, batch_size=32, shuffle=True, seed=7).to_torch()
            for inputs, targets in torch.utils.data.DataLoader(feed, batch_size=None):
                loss = model(inputs["age"], targets["adopted"])
            state = feed.state_dict()
            ```
        """
        with importing("to_torch()", "torch"):
            from penstock.bridge.torch import make_dataset  # noqa: PLC0415 - torch, when asked for

        return make_dataset(self, structure)

    def to_jax(
        self,
        device: Any = None,
        prefetch: int = 2,
        sizes: Sequence[int] | None = None,
        structure: Structure = "dict",
    ) -> Any:
        """Return an iterable of the batches as JAX arrays; each iteration is the loader's next epoch.

        JAX compiles a function again for each new shape. Lengths that vary between batches are therefore
        padded to one of a few `sizes`. The last batch of an epoch may have fewer rows, so another shape:
        `last="pad"` fills it with records of weight 0, `last="drop"` leaves it out.

        Args:
            device: Target of the arrays: a `jax.Device` or a `Sharding`. Defaults to JAX's choice.
            prefetch: Number of batches that are transferred ahead. The state counts only batches taken.
            sizes: Lengths to pad to; longer values are padded to a multiple of the largest. Defaults to the
                powers of two from 8; `()` disables padding.
            structure: As for `to_torch`.

        Raises:
            OptionError: An output has strings or is ragged, or an argument is not valid.
            MissingPackageError: JAX is not installed.

        Example:
            ```python
            feed = pets["train"].loader(pipeline, batch_size=32, last="drop", seed=7).to_jax()
            for inputs, targets in feed:
                parameters = step(parameters, inputs["age"], targets["adopted"])
            state = feed.state_dict()
            ```
        """
        with importing("to_jax()", "jax"):
            from penstock.bridge.jax import make_feed  # noqa: PLC0415 - JAX, when asked for

        return make_feed(self, device, prefetch, sizes, structure)

    def _iterate(
        self,
        epoch: int,
        step: int,
        stop: float,
        *,
        is_consumer: bool = False,
        last_step: int | None = None,
        convert: Converter | None = None,
    ) -> Iteration:
        parts = self._parts
        parts.supply.check()
        self._meter.begin()  # before the threads begin
        feed = Feed(
            _tickets(parts, epoch, step, stop, last_step),
            self._maker.begin if convert is None else partial(ConvertedJob, self._maker, convert),
            parts.options.count_threads(),
            parts.options.prefetch_bytes,
            self._meter.waited,
        )
        if is_consumer:
            self._feed = weakref.ref(feed)
        return Iteration(self, feed, self._rows)

    def took(self, feed: Feed[Ticket, MadeBatch], made: MadeBatch) -> None:
        """Advance the state past a batch that the consumer took from an iteration."""
        if self._feed is not None and self._feed() is feed:  # neither one for a bridge, nor an older one
            self._position = (made.ticket.epoch, made.ticket.step + 1)
            self._next = max(self._next, (made.ticket.epoch + 1, 0))
        self._meter.taken(made.num_records)

    def __repr__(self) -> str:
        options = self._parts.options
        return (
            f"Loader({self.steps_per_epoch} batches of {options.batch_size}, shuffle={options.shuffle!r}, "
            f"seed={options.seed}, epoch {self._position[0]}, step {self._position[1]})"
        )


def _tickets(
    parts: LoaderParts, epoch: int, step: int, stop: float, last_step: int | None
) -> Iterator[Ticket]:
    while epoch < stop:
        continues = epoch + 1 < stop
        for ticket in parts.plan.tickets(epoch, step):
            if last_step is not None and ticket.step >= last_step:
                return
            yield ticket._replace(continues=True) if continues else ticket
        epoch, step = epoch + 1, 0
        if epoch < stop:
            parts.supply.check()  # each epoch begins with that, also where several are one iteration
