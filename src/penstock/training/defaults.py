"""Defaults of training that depend on the data: the size of batches, the number of epochs, and others.

In: options, and the numbers of records and images. Out: the options that a run uses.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.settings.training import TrainOptions

_SMALLEST_BATCH: Final = 16
_SMALLEST_IMAGE_BATCH: Final = 32  # whose mean and deviation batch normalization uses
_LARGEST_BATCH: Final = 256
_STEPS_WANTED: Final = 50  # per epoch: with fewer an epoch hardly changes the weights
# For a whole run: small data sets need more epochs than large ones, and about as many steps.
_TOTAL_STEPS: Final = 2000
_FEWEST_EPOCHS: Final = 20
_MOST_EPOCHS: Final = 60
# Of data with images, which are the cost of a run: 3,400 photos of 160 x 160 take about 6 minutes of two
# cores. With a falling rate, accuracy on photos rose up to 30 epochs; without validation too.
_TOTAL_IMAGES: Final = 90_000
_FEWEST_IMAGE_EPOCHS: Final = 10
_MOST_IMAGE_EPOCHS: Final = 80
_MOST_BLIND_IMAGE_EPOCHS: Final = 40
# Without validation nothing ends a run before it overfits. With it, the best epoch of noisy tables was the
# 2nd to the 18th.
_BLIND_EPOCHS: Final = 15


def choose_batch_size(options: TrainOptions, num_records: int, *, has_images: bool = False) -> int:
    """Return the number of records per step, for a split of `num_records`, with images or without.

    Example:
        >>> choose_batch_size(TrainOptions(), 10_000)
        128
    """
    if options.batch_size is not None:
        return options.batch_size
    wanted = max(1, num_records // _STEPS_WANTED)
    least = _SMALLEST_IMAGE_BATCH if has_images else _SMALLEST_BATCH
    return min(_LARGEST_BATCH, max(least, 1 << (wanted.bit_length() - 1)))


def fill_in_defaults(
    options: TrainOptions, steps_per_epoch: int, *, is_validated: bool = True, images_per_epoch: int = 0
) -> TrainOptions:
    """Return the options with all defaults that depend on the data.

    `images_per_epoch`: number of images, or arrays of several dimensions, that an epoch reads.
    """
    schedule = options.schedule or ("one_cycle" if images_per_epoch else "constant")
    is_cycle = schedule == "one_cycle"
    usual: dict[str, Any] = {
        "epochs": _choose_epochs(steps_per_epoch, images_per_epoch, is_validated=is_validated),
        "schedule": schedule,
        "averaging": 0.0 if is_cycle or images_per_epoch else 0.99,
        "weight_decay": 0.05 if images_per_epoch else 0.01,
        "warmup": 0.25 if is_cycle else 0.05,
    }
    chosen = {name: value for name, value in usual.items() if getattr(options, name) is None}
    if options.patience == "auto":
        chosen["patience"] = None if is_cycle else 8
    return options.replace(**chosen)


def count_epochs(options: TrainOptions) -> int:
    """Return the maximum number of epochs of options with all defaults."""
    if options.epochs is None:
        raise TypeError("the options have no number of epochs yet: call fill_in_defaults()")
    return options.epochs


def find_patience(options: TrainOptions) -> int | None:
    """Return the number of epochs without improvement that end a run; None if none do."""
    return None if isinstance(options.patience, str) else options.patience


def _choose_epochs(steps_per_epoch: int, images_per_epoch: int, *, is_validated: bool) -> int:
    if images_per_epoch:
        wanted = round(_TOTAL_IMAGES / images_per_epoch)
        most = _MOST_IMAGE_EPOCHS if is_validated else _MOST_BLIND_IMAGE_EPOCHS
        return min(most, max(_FEWEST_IMAGE_EPOCHS, wanted))
    wanted = round(_TOTAL_STEPS / max(1, steps_per_epoch))
    return min(_MOST_EPOCHS, max(_FEWEST_EPOCHS, wanted)) if is_validated else _BLIND_EPOCHS
