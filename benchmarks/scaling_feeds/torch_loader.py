"""torch's DataLoader: JPEGs in memory, decoded and resized with antialiasing by worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms import v2

from scaling_data import NUM_CLASSES

if TYPE_CHECKING:
    from scaling_feeds import Task

# One of 16 workers takes half a second for a batch of 256 images: with few ahead, bursts leave workers idle.
BATCHES_AHEAD = 4


class Photos(torch.utils.data.Dataset):  # type: ignore[misc]
    """The images of all records by number; the bytes are in memory, which is the best case."""

    def __init__(self, task: Task) -> None:
        files, offsets = np.load(task.photos.pictures), np.load(task.photos.offsets).tolist()
        self._files = [torch.from_numpy(files[begin:end].copy()) for begin, end in pairwise(offsets)]
        self._num_records = task.data.num_records
        self._resize = v2.Resize((task.size, task.size), antialias=True)

    def __len__(self) -> int:
        return self._num_records

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        pixels = decode_jpeg(self._files[i % len(self._files)], mode=ImageReadMode.RGB)
        return self._resize(pixels), i % NUM_CLASSES


class Endless(torch.utils.data.Sampler):  # type: ignore[misc]
    """One permutation of all records after the other."""

    def __init__(self, num_records: int) -> None:
        self._num_records = num_records

    def __iter__(self) -> Iterator[int]:
        while True:
            yield from torch.randperm(self._num_records).tolist()


class Feed:
    """Makes DataLoaders with as many worker processes as the others have threads."""

    def __init__(self, task: Task) -> None:
        torch.set_num_threads(1)
        self._task = task
        self._photos = Photos(task)

    def epochs(self) -> Iterator[Any]:
        """Iterate indefinitely; the workers end with the iteration."""
        batches = iter(
            torch.utils.data.DataLoader(
                self._photos,
                batch_size=self._task.batch_size,
                sampler=Endless(len(self._photos)),
                num_workers=self._task.num_cores,
                prefetch_factor=BATCHES_AHEAD,
            )
        )
        try:
            for images, labels in batches:
                yield {"image": images}, {"label": labels}
        finally:
            batches._shutdown_workers()
