"""Stop training at a loss that is NaN or infinite, with an error that names the records of the batch.

In: the logs of each step, and the batch of that step, read again. Out: `LossFault`, then `NonFiniteError`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import keras
import numpy as np

from penstock.batch.loader import Loader
from penstock.errors import NonFiniteError
from penstock.foundation.wording import override

_NUM_NAMED: Final = 3


class LossFault(Exception):  # noqa: N818 - internal: callers get NonFiniteError
    """The loss of a step is not finite.

    Attributes:
        epoch: Number of the epoch.
        step: Number of the step in that epoch.
        loss: The loss.
    """

    def __init__(self, epoch: int, step: int, loss: float) -> None:
        super().__init__(epoch, step, loss)
        self.epoch = epoch
        self.step = step
        self.loss = loss


class LossGuard(keras.callbacks.Callback):  # type: ignore[misc]
    """Stops training at the first step whose loss is not finite; must come after the feed's callback.

    Keras reports the mean loss of the epoch so far: once a step is not finite, the mean is not either.
    """

    def __init__(self, loader: Loader) -> None:
        super().__init__()
        self._loader = loader

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float] | None = None) -> None:  # noqa: ARG002
        """Check the loss of a step."""
        loss = float((logs or {}).get("loss", 0.0))
        if not math.isfinite(loss):
            epoch, step = self._loader.position
            raise LossFault(epoch, max(0, step - 1), loss)


def explain_fault(loader: Loader, fault: LossFault, cause: tuple[int, int]) -> NonFiniteError:
    """Return the error for a step: the records of its batch, and the first value that is not finite.

    The error names only the batch that caused it. The step at which the loss shows it depends on the
    processor: some kernels of ReLU turn NaN into 0, others keep it.

    `cause`: epoch and step of the batch that caused it: the same step, or an earlier one after which the
    weights were not finite although its loss was.
    """
    fault = LossFault(*cause, fault.loss)
    origins = loader.where(fault.step, fault.epoch)
    records = tuple((origin.path, origin.record) for origin in origins)
    named = [f"record {record} of {path}" for path, record in records[:_NUM_NAMED]]
    more = f" and {len(records) - _NUM_NAMED} more" if len(records) > _NUM_NAMED else ""
    found = _find_bad_value(loader, fault)
    if found is None:
        got = f"loss {fault.loss} although all values are finite: {', '.join(named)}{more}"
        advice = "Lower the learning rate, or clip gradients: `clip=1.0`."
        path = record = name = None
    else:
        kind, name, value, row = found
        path, record = records[row] if row < len(records) else records[0]
        got = f"loss {fault.loss} from a batch of {len(records)} records: {kind} {name!r} contains {value}"
        scaled = override(name, "Scale(nan='missing')")
        advice = (
            f"Fix the data; or drop the field: {override(name, 'None')}; or treat NaN as missing: {scaled}."
        )
    return NonFiniteError(
        f"step {fault.step} of epoch {fault.epoch}",
        epoch=fault.epoch,
        step=fault.step,
        records=records,
        expected="a finite loss and finite weights",
        got=got,
        advice=f"{advice} The weights before that step are kept.",
        path=path,
        record=record,
        field=name,
    )


def _find_bad_value(loader: Loader, fault: LossFault) -> tuple[str, str, float, int] | None:
    """Return the first value of a batch that is not finite: kind and name of the array, value, row."""
    with loader.read(fault.epoch, fault.step, fault.step + 1) as batches:
        batch = next(iter(batches))
    for kind, part in zip(("input", "target", "weight"), batch, strict=False):
        for name, array in part.items():
            if isinstance(array, np.ndarray) and array.dtype.kind == "f":
                bad = np.argwhere(~np.isfinite(array))
                if len(bad):
                    return kind, name, float(array[tuple(bad[0])]), int(bad[0][0])
    return None
