"""Batches as a `torch.utils.data.IterableDataset`.

In: a `Loader`. Out: a data set of its batches as tensors, in the loader's own memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from penstock.bridge.outputs import check_outputs
from penstock.errors import NotPicklableError, OptionError
from penstock.transform.cast import convert
from penstock.transform.output import Output

if TYPE_CHECKING:
    from penstock.batch.loader import Iteration, Loader
    from penstock.batch.maker import Batch


def make_dataset(loader: Loader) -> TorchFeed:
    """Return a data set of the loader's batches."""
    check_outputs(loader, "torch", _is_jagged)
    return TorchFeed(loader)


class TorchFeed(IterableDataset):  # type: ignore[misc]
    """A loader as torch takes it: `DataLoader(feed, batch_size=None)`, or the feed itself.

    A `DataLoader` must be told by `batch_size=None` not to make batches of batches. Each iteration is the
    loader's next epoch. A batch is `(inputs, targets)`, with weights behind them if records have weights:
    dicts of tensors by output name. Ragged outputs are nested tensors, `torch.jagged`. The tensors share the
    memory of the loader's arrays, which is used again when nobody holds them any more.

    Nothing is fetched ahead of whoever iterates: the loader itself does that, by threads, and its state stays
    exact. Workers of a `DataLoader` would each read everything, and are refused.

    Attributes:
        loader: The loader.
    """

    def __init__(self, loader: Loader) -> None:
        super().__init__()
        self.loader = loader

    def __iter__(self) -> Iterator[tuple[dict[str, Any], ...]]:
        worker = get_worker_info()
        if worker is not None:
            raise OptionError(
                "num_workers of the DataLoader",
                expected="0",
                got=worker.num_workers,
                advice="The loader's own threads make the batches: say DataLoader(…, num_workers=0).",
            )
        return _read(iter(self.loader))  # begun now: the threads start before the first batch is asked for

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

    def __reduce__(self) -> NoReturn:
        raise NotPicklableError(
            "the batches of a Loader cannot be sent to another process, such as a worker of a DataLoader",
            advice="The loader's own threads make them: use DataLoader(…, num_workers=0).",
        )

    def __repr__(self) -> str:
        return f"TorchFeed({self.loader!r})"


def _read(batches: Iteration) -> Iterator[tuple[dict[str, Any], ...]]:
    """Yield batches as tensors; the threads end with it, or when it is dropped."""
    with batches:
        yield from map(_as_tensors, batches)  # which holds no batch, as a variable would


def _as_tensors(batch: Batch) -> tuple[dict[str, Any], ...]:
    return tuple({name: _as_tensor(value) for name, value in part.items()} for part in batch)


def _as_tensor(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        values, offsets = _as_tensor(value.values), _as_tensor(value.offsets)
        return torch.nested.nested_tensor_from_jagged(values, offsets)
    # A map may give what must not be written to, and a tensor cannot say so.
    return torch.from_numpy(value if value.flags.writeable else convert(value, value.dtype.name))


def _is_jagged(output: Output) -> bool:
    """Whether lists are a nested tensor: one level of them, of values or of items of one shape."""
    return None not in output.shape[1:]
