"""A loss that is no number: found at its step, and named with the records that led to it.

In: the logs of each step; then the batch of that step again. Out: `LossFault`, and a `NonFiniteError`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import keras
import numpy as np

from penstock.batch.loader import Loader
from penstock.errors import NonFiniteError

_NUM_NAMED: Final = 3


class LossFault(Exception):  # noqa: N818 - it never leaves the run
    """A step gave a loss that is not finite.

    Attributes:
        epoch: Its epoch.
        step: Its batch in that epoch.
        loss: The loss.
    """

    def __init__(self, epoch: int, step: int, loss: float) -> None:
        super().__init__(epoch, step, loss)
        self.epoch = epoch
        self.step = step
        self.loss = loss


class LossGuard(keras.callbacks.Callback):  # type: ignore[misc]
    """Ends training at the first step whose loss is not finite; it comes behind the feed's own callback.

    The loss that Keras tells is the mean of the epoch so far: once a step is not finite, nor is that.
    """

    def __init__(self, loader: Loader) -> None:
        super().__init__()
        self._loader = loader

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float] | None = None) -> None:  # noqa: ARG002
        """Look at the loss of a step."""
        loss = float((logs or {}).get("loss", 0.0))
        if not math.isfinite(loss):
            epoch, step = self._loader.position
            raise LossFault(epoch, max(0, step - 1), loss)


def explain_fault(loader: Loader, fault: LossFault, cause: tuple[int, int]) -> NonFiniteError:
    """Return the error for a step: which records it had, and which of their values are not finite.

    The error names the cause alone. At which step the loss shows it depends on the processor: some kernels of
    ReLU turn NaN into 0, others keep it.

    Args:
        loader: Of the run.
        fault: The step whose loss is not finite.
        cause: Epoch and step of the batch that is to blame: that one, or one before it that left weights
            which are not finite, though its own loss was.
    """
    fault = LossFault(*cause, fault.loss)
    places = loader.where(fault.step, fault.epoch)
    records = tuple((place.path, place.record) for place in places)
    named = [f"record {record} of {path}" for path, record in records[:_NUM_NAMED]]
    more = f" and {len(records) - _NUM_NAMED} more" if len(records) > _NUM_NAMED else ""
    found = _find_bad_value(loader, fault)
    if found is None:
        got = f"{fault.loss}, from values that are all finite: {', '.join(named)}{more}"
        advice = "Lower the learning rate, or clip gradients (--clip, clip=…)."
        facts: dict[str, Any] = {}
    else:
        kind, name, value, row = found
        path, record = records[row] if row < len(records) else records[0]
        got = f"{fault.loss}, from a batch of {len(records)} records whose {kind} {name!r} has {value}"
        advice = (
            "Correct the data; or leave the field out: --drop NAME, or None in Pipeline.fit; or take NaN as "
            "missing: Scale(nan='missing') there, {nan: missing} for the field in a file for --config."
        )
        facts = {"path": path, "record": record, "field": name}
    return NonFiniteError(
        f"step {fault.step} of epoch {fault.epoch}",
        epoch=fault.epoch,
        step=fault.step,
        records=records,
        expected="a finite loss and finite weights",
        got=got,
        advice=f"{advice} The weights are those before that step.",
        **facts,
    )


def _find_bad_value(loader: Loader, fault: LossFault) -> tuple[str, str, float, int] | None:
    """Return what is not finite in a batch: input or target, its name, the value, the row."""
    with loader.read(fault.epoch, fault.step, fault.step + 1) as batches:
        batch = next(iter(batches))
    for kind, part in zip(("input", "target", "weight"), batch, strict=False):
        for name, array in part.items():
            if isinstance(array, np.ndarray) and array.dtype.kind == "f":
                bad = np.argwhere(~np.isfinite(array))
                if len(bad):
                    return kind, name, float(array[tuple(bad[0])]), int(bad[0][0])
    return None
