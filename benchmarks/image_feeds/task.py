"""What a feed of images is given, and what it has to be able to do.

In: one set of pictures, one size, one number of cores. Out: an object whose batches `image_worker.py` times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from photos import BATCH_SIZE, PhotoSpec

Batch: TypeAlias = tuple[Mapping[str, Any], Mapping[str, Any]]
"""`{"image": (n, size, size, 3)}` and `{"label": (n,)}`; arrays or tensors."""
SHUFFLE_BUFFER = 1_000
SHUFFLE_SEED = 7
# Of random resized crops: shares of the picture, and width over height, as they were first published.
CROP_AREA = (0.08, 1.0)
CROP_ASPECT = (3 / 4, 4 / 3)


@dataclass(frozen=True)
class Task:
    """Feed this set on that many cores, `size` by `size` pixels per picture; `variant` says how."""

    photos: PhotoSpec
    size: int
    num_cores: int
    variant: str

    @property
    def batch_size(self) -> int:
        return BATCH_SIZE

    @property
    def is_cropped(self) -> bool:
        return "crops" in self.variant


class Competitor(Protocol):
    """A feed that is open; making it is not part of the timed turn."""

    def epochs(self) -> Iterator[Batch]:
        """Yield the batches of one epoch after the other, indefinitely."""
        ...

    def to_tensors(self, batch: Batch) -> Batch:
        """Give TensorFlow the batch, where that is not what it came as."""
        ...


class ArrayFeed:
    """What feeds of NumPy arrays have in common."""

    def to_tensors(self, batch: Batch) -> Batch:
        """Copy arrays into TensorFlow: DLPack would not, but ends the process where they are not aligned."""
        import tensorflow as tf  # noqa: PLC0415 - the other parts run without it

        converted: Batch = tf.nest.map_structure(tf.convert_to_tensor, batch)
        return converted
