"""Batches as JAX arrays.

In: a `Loader`. Out: a `JaxFeed`: its batches on a device, some of them put there ahead, in a few shapes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
from numpy.typing import NDArray

from penstock.batch.options import check_whole
from penstock.bridge.outputs import Padding, Sizes, check_outputs, find_paddings, pad_array
from penstock.errors import FieldError, OptionError
from penstock.foundation.wording import show
from penstock.transform.cast import cast
from penstock.transform.output import Output

if TYPE_CHECKING:
    from penstock.batch.batch_plan import Ticket
    from penstock.batch.loader import Iteration, Loader
    from penstock.batch.maker import MadeBatch


def make_feed(loader: Loader, device: Any, prefetch: int, sizes: Sequence[int] | None) -> JaxFeed:
    """Return the loader's batches as arrays on a device."""
    check_outputs(loader, "JAX", lambda _: False)
    if device is not None and not isinstance(device, jax.Device | jax.sharding.Sharding):
        raise OptionError("device", expected="a jax.Device or a Sharding", got=show(device))
    if isinstance(device, jax.sharding.Sharding):
        _check_sharding(loader, device)
    return JaxFeed(loader, device, check_whole("prefetch", prefetch), Sizes(sizes))


class PutBatch(NamedTuple):
    """A batch that is on its way to the device.

    Attributes:
        made: The batch as the loader made it.
        arrays: What the consumer gets.
    """

    made: MadeBatch
    arrays: tuple[dict[str, jax.Array], ...]


class JaxFeed:
    """A loader as JAX takes it: `for inputs, targets in feed: params = step(params, inputs, targets)`.

    Each iteration is the loader's next epoch. A batch is `(inputs, targets)`, with weights behind them if
    records have weights: dicts of arrays by output name. On a CPU they share the memory of the loader's
    arrays.

    Lengths that vary are padded to one of a few sizes, as their transform pads: with its value, False in a
    mask, and 0 in what a map gives. Unless `jax_enable_x64` is on, whole numbers of 64 bits become such of 32
    bits, and one that these cannot hold is an error; floats of 64 bits are rounded to 32.

    The state counts the batches that were taken, not those put on the device ahead.

    Attributes:
        loader: The loader.
    """

    def __init__(self, loader: Loader, device: Any, prefetch: int, sizes: Sizes) -> None:
        self.loader = loader
        self._device = device
        self._prefetch = prefetch
        self._sizes = sizes
        self._outputs = loader.signature()
        self._paddings = find_paddings(loader.pipeline)

    def __iter__(self) -> Iterator[tuple[dict[str, jax.Array], ...]]:
        return self._read(iter(self.loader))  # begun now: the threads start before a batch is asked for

    def __len__(self) -> int:
        """Return how many batches a whole iteration has.

        Raises:
            TypeError: It never ends.
        """
        return len(self.loader)

    def state_dict(self) -> dict[str, Any]:
        """Return where the consumer is: a small object for JSON."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a state was taken: the next iteration gives the batches that remain of its epoch.

        Raises:
            StateError: It is no state, or one of another data set, pipeline, order or batch size.
        """
        self.loader.load_state_dict(state)

    def __repr__(self) -> str:
        return f"JaxFeed({self.loader!r})"

    def _read(self, batches: Iteration) -> Iterator[tuple[dict[str, jax.Array], ...]]:
        """Yield batches; the threads end with it, or when it is dropped."""
        ahead: deque[PutBatch] = deque()
        fault: Exception | None = None
        is_over = False
        with batches:
            while True:
                while not is_over and len(ahead) <= self._prefetch:
                    try:
                        made = batches.fetch()
                        if made is not None:
                            ahead.append(PutBatch(made, self._put(made)))
                    except Exception as error:  # of a batch that nobody asked for yet
                        fault, made = error, None
                    is_over = made is None
                    del made  # the consumer alone is to hold what it gets
                if not ahead:
                    break
                batches.count(ahead[0].made)
                yield ahead.popleft().arrays
        if fault is not None:
            try:
                raise fault
            finally:
                del fault  # its traceback holds this frame: a ring

    def _put(self, made: MadeBatch) -> tuple[dict[str, jax.Array], ...]:
        arrays = [
            self._shape(output, part[name], made.ticket)
            for part, outputs in zip(made.batch, self._outputs, strict=False)  # no weights, perhaps
            for name, output in outputs.items()
        ]
        if self._device is None or getattr(self._device, "is_fully_addressable", True):
            put = iter(jax.device_put(arrays, self._device))
        else:  # each process has its own part of the batch
            put = (jax.make_array_from_process_local_data(self._device, array) for array in arrays)
        return tuple({name: next(put) for name in self._outputs[i]} for i in range(len(made.batch)))

    def _shape(self, output: Output, array: NDArray[Any], ticket: Ticket) -> NDArray[Any]:
        """Return an array in a shape and an element type that JAX takes."""
        array = pad_array(array, output, self._paddings.get(output.name, Padding()), self._sizes)
        dtype = jax.dtypes.canonicalize_dtype(array.dtype)
        if dtype == array.dtype:
            return array
        try:
            return cast(output.name, array, dtype.name)
        except FieldError as error:
            raise self._name_record(error, array, ticket) from None

    def _name_record(self, error: FieldError, array: NDArray[Any], ticket: Ticket) -> FieldError:
        places = self.loader.where(ticket.step, ticket.epoch)
        is_known = error.record is not None and len(places) == len(array)  # else some were skipped
        place = places[error.record or 0] if is_known else None
        return FieldError(
            f"value of output {error.field!r}",
            path=None if place is None else place.path,
            record=None if place is None else place.record,
            field=error.field,
            expected=error.expected,
            got=error.got,
            advice="Turn jax_enable_x64 on, or give the field another transform.",
        )


def _check_sharding(loader: Loader, sharding: jax.sharding.Sharding) -> None:
    """Refuse a sharding that some batch could not have."""
    num_rows = loader.options.batch_size
    for part in loader.signature():
        for name, output in part.items():
            dims = [dim for dim in output.shape if dim is not None]
            if len(dims) < len(output.shape):
                continue  # only the batch knows
            try:
                shape = sharding.shard_shape((num_rows, *dims))
            except ValueError as error:
                got = f"{output.describe()} in batches of {num_rows}: {error}"
                raise OptionError(
                    f"device for output {name!r}", field=name, expected="a sharding that divides it", got=got
                ) from None
            if shape[0] < num_rows and loader.static_batch_size is None:
                raise OptionError(
                    "loader for a sharding of rows",
                    expected="batches that all have as many",
                    got=f"last={loader.options.last!r}, whose last one is shorter",
                    advice="Say last='pad', or last='drop'.",
                )
