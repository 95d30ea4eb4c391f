"""Batches as JAX arrays.

In: a `Loader`. Out: a `JaxFeed`: its batches on a device, prefetched, in few distinct shapes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
from numpy.typing import NDArray

from penstock.batch.state import check_whole
from penstock.bridge.outputs import (
    LoaderFeed,
    Padding,
    Sizes,
    Structure,
    check_outputs,
    find_paddings,
    pad_array,
)
from penstock.errors import FieldError, OptionError
from penstock.foundation.wording import show
from penstock.transform.output import cast

if TYPE_CHECKING:
    from penstock.batch.batch_plan import Ticket
    from penstock.batch.iteration import Iteration
    from penstock.batch.loader import Loader
    from penstock.batch.maker import MadeBatch


def make_feed(
    loader: Loader,
    device: Any,
    prefetch: int,
    sizes: Sequence[int] | None,
    structure: Structure = "dict",
) -> JaxFeed:
    """Return the loader's batches as arrays on a device."""
    check_outputs(loader, "JAX", lambda _: False)
    if device is not None and not isinstance(device, jax.Device | jax.sharding.Sharding):
        raise OptionError("device", expected="a jax.Device or a Sharding", got=show(device))
    if isinstance(device, jax.sharding.Sharding):
        _check_sharding(loader, device)
    return JaxFeed(loader, device, check_whole("prefetch", prefetch), Sizes(sizes), structure)


class PutBatch(NamedTuple):
    """A batch that is being transferred to the device: as the loader made it, and as arrays on the device."""

    made: MadeBatch
    arrays: tuple[dict[str, jax.Array], ...]


class JaxFeed(LoaderFeed):
    """A loader for JAX: `for inputs, targets in feed: params = step(params, inputs, targets)`.

    Each iteration is the next epoch of the loader. A batch is `(inputs, targets)`, or
    `(inputs, targets, weights)` if records have weights; each is a dict of arrays by output name, unless
    another structure was chosen. On a CPU the arrays share the memory of the loader.

    Varying lengths are padded to one of a few sizes, with the padding value of the transform: False in a
    mask, and 0 in the output of a map. Unless `jax_enable_x64` is on, 64-bit integers become 32-bit integers,
    where a value out of range is an error, and 64-bit floats are rounded to 32 bits.

    The state counts the batches that the consumer took, not those prefetched to the device.

    Attributes:
        loader: The loader.
    """

    def __init__(
        self, loader: Loader, device: Any, prefetch: int, sizes: Sizes, structure: Structure = "dict"
    ) -> None:
        super().__init__(loader, structure)
        self._device = device
        self._prefetch = prefetch
        self._sizes = sizes
        self._outputs = loader.signature()
        self._dtypes = {output.dtype for outputs in self._outputs for output in outputs.values()}
        self._paddings = find_paddings(loader.pipeline)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        # The threads start now, before the first batch is requested.
        return self._read(self.loader.iterate(partial(self._prepare, self._find_dtypes())))

    def _read(self, batches: Iteration) -> Iterator[tuple[Any, ...]]:
        """Yield batches; the threads stop at the end or when the iterator is dropped."""
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
                    except Exception as error:  # raised once the batches before it are consumed
                        fault, made = error, None
                    is_over = made is None
                    del made  # only the consumer may hold the batch
                if not ahead:
                    break
                batches.count(ahead[0].made)
                yield self._arrangement(ahead.popleft().arrays)
        if fault is not None:
            try:
                raise fault
            finally:
                del fault  # its traceback holds this frame: a reference cycle

    def _find_dtypes(self) -> dict[str, str]:
        """Return JAX's element type for each type of output; `jax.enable_x64` may hold in one thread only."""
        return {dtype: jax.dtypes.canonicalize_dtype(dtype).name for dtype in self._dtypes}

    def _prepare(self, dtypes: Mapping[str, str], made: MadeBatch) -> tuple[dict[str, NDArray[Any]], ...]:
        """Return the arrays of a batch as JAX accepts them; the threads of the loader call this."""
        padded = (
            {
                name: pad_array(part[name], output, self._paddings.get(name, Padding()), self._sizes)
                for name, output in outputs.items()
            }
            for part, outputs in zip(made.batch, self._outputs, strict=False)  # weights are optional
        )
        return self._cast(dtypes, tuple(padded), made.ticket)

    def _put(self, made: MadeBatch) -> tuple[dict[str, jax.Array], ...]:
        # Does nothing, unless the consumer has changed the mode of JAX since the iteration began.
        batch = self._cast(self._find_dtypes(), made.batch, made.ticket)
        arrays = [array for part in batch for array in part.values()]
        if self._device is None or getattr(self._device, "is_fully_addressable", True):
            put = iter(jax.device_put(arrays, self._device))
        else:  # each process holds its own part of the batch
            put = (jax.make_array_from_process_local_data(self._device, array) for array in arrays)
        return tuple({name: next(put) for name in part} for part in batch)

    def _cast(
        self, dtypes: Mapping[str, str], batch: tuple[dict[str, NDArray[Any]], ...], ticket: Ticket
    ) -> tuple[dict[str, NDArray[Any]], ...]:
        """Return a batch with element types that JAX supports."""
        return tuple(
            {name: self._cast_array(name, array, dtypes, ticket) for name, array in part.items()}
            for part in batch
        )

    def _cast_array(
        self, name: str, array: NDArray[Any], dtypes: Mapping[str, str], ticket: Ticket
    ) -> NDArray[Any]:
        dtype = dtypes.get(array.dtype.name, array.dtype.name)
        if dtype == array.dtype.name:
            return array
        try:
            return cast(name, array, dtype)
        except FieldError as error:
            raise self._name_record(error, array, ticket) from None

    def _name_record(self, error: FieldError, array: NDArray[Any], ticket: Ticket) -> FieldError:
        locations = self.loader.where(ticket.step, ticket.epoch)
        is_known = error.record is not None and len(locations) == len(array)  # else records were skipped
        location = locations[error.record or 0] if is_known else None
        return FieldError(
            f"value of output {error.field!r}",
            path=None if location is None else location.path,
            record=None if location is None else location.record,
            field=error.field,
            expected=error.expected,
            got=error.got,
            advice="Call jax.config.update('jax_enable_x64', True), or use another transform for the field.",
        )


def _check_sharding(loader: Loader, sharding: jax.sharding.Sharding) -> None:
    """Refuse a sharding that does not divide the batches."""
    num_rows = loader.options.batch_size
    for part in loader.signature():
        for name, output in part.items():
            dims = [dim for dim in output.shape if dim is not None]
            if len(dims) < len(output.shape):
                continue  # known only once the batch is made
            try:
                shape = sharding.shard_shape((num_rows, *dims))
            except ValueError as error:
                got = f"{output.describe()} in batches of {num_rows}: {error}"
                raise OptionError(
                    f"device for output {name!r}",
                    field=name,
                    expected="a sharding that divides its shape",
                    got=got,
                ) from None
            if shape[0] < num_rows and loader.static_batch_size is None:
                raise OptionError(
                    "loader for a sharding of rows",
                    expected="batches of equal size",
                    got=f"last={loader.options.last!r}, whose last batch may be shorter",
                    advice="Use loader(…, last='pad') or loader(…, last='drop').",
                )
