"""Batches as a `torch.utils.data.IterableDataset`.

In: a `Loader`. Out: its batches as tensors that share the memory of the loader.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from penstock.bridge.outputs import Arrangement, LoaderFeed, Structure, check_outputs
from penstock.errors import NotPicklableError, OptionError
from penstock.transform.output import Output, convert

if TYPE_CHECKING:
    from penstock.batch.iteration import Iteration
    from penstock.batch.loader import Loader
    from penstock.batch.maker import Batch


def make_dataset(loader: Loader, structure: Structure = "dict") -> TorchFeed:
    """Return the loader as an `IterableDataset` of its batches."""
    check_outputs(loader, "torch", _is_jagged)
    return TorchFeed(loader, structure)


class TorchFeed(LoaderFeed, IterableDataset):  # type: ignore[misc]
    """A loader as a torch data set: iterate over it, or pass it to `DataLoader(feed, batch_size=None)`.

    Pass `batch_size=None` to a `DataLoader`: the elements already are batches. Each iteration is the next
    epoch of the loader. A batch is `(inputs, targets)`, or `(inputs, targets, weights)` if records have
    weights; each is a dict of tensors by output name, unless another structure was chosen. Ragged outputs are
    nested tensors with the layout `torch.jagged`. The tensors share the memory of the loader's arrays, which
    is reused once no tensor refers to it.

    The feed does not prefetch: the threads of the loader do, and so its state stays exact. Worker processes
    of a `DataLoader` would each read all of the data, and are refused.

    Attributes:
        loader: The loader.
    """

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        worker = get_worker_info()
        if worker is not None:
            raise OptionError(
                "num_workers of the DataLoader",
                expected="0",
                got=worker.num_workers,
                advice="The threads of the loader make the batches: use DataLoader(…, num_workers=0).",
            )
        return _read(
            iter(self.loader), self._arrangement
        )  # the threads start now, before the first batch is requested

    def __reduce__(self) -> NoReturn:
        raise NotPicklableError(
            "the batches of a Loader cannot be sent to another process, such as a worker of a DataLoader",
            advice="The threads of the loader make the batches: use DataLoader(…, num_workers=0).",
        )


def _read(batches: Iteration, arrangement: Arrangement) -> Iterator[tuple[Any, ...]]:
    """Yield batches as tensors; the threads stop at the end or when the iterator is dropped."""
    with batches:
        yield from map(arrangement, map(_as_tensors, batches))  # a loop variable would hold a batch


def _as_tensors(batch: Batch) -> tuple[dict[str, Any], ...]:
    return tuple({name: _as_tensor(value) for name, value in part.items()} for part in batch)


def _as_tensor(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        values, offsets = _as_tensor(value.values), _as_tensor(value.offsets)
        return torch.nested.nested_tensor_from_jagged(values, offsets)
    # A map may return a read-only array, and torch has no read-only tensors.
    return torch.from_numpy(value if value.flags.writeable else convert(value, value.dtype.name))


def _is_jagged(output: Output) -> bool:
    """Whether a ragged output fits a nested tensor: one ragged level of values or of items of one shape."""
    return None not in output.shape[1:]
