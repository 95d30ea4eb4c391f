"""Penstock: the shards opened, an `Image` transform, a loader over them.

As it is, with all defaults; "aliased", "full" (no scaled decoding), "crops", "bridged" (as tf.data); "first"
and "second", the epochs of a loader with a cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import penstock as ps
from image_feeds.task import CROP_AREA, CROP_ASPECT, SHUFFLE_SEED, Batch, Task


def choose_options(task: Task) -> dict[str, Any]:
    """Translate the variant into options of `Image`."""
    options: dict[str, Any] = {"size": task.size}
    if "aliased" in task.variant:
        options |= {"antialias": False, "draft": False}
    if task.variant == "full":
        options |= {"draft": False}
    if task.is_cropped:
        options |= {"resize": "random", "augment": {"area": CROP_AREA, "aspect": CROP_ASPECT}}
    return options


class Feed:
    """Makes loaders; their batches are arrays in their final place."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._split = ps.open(task.photos.folder / "shards")["train"]
        self._pipeline = ps.Pipeline.fit(
            self._split, image=ps.transform.Image(**choose_options(task)), label=ps.transform.Keep()
        )

    def epochs(self) -> Iterator[Batch]:
        """Iterate over one epoch after the other; a first one always comes from a fresh loader."""
        if self._task.variant == "first":
            while True:
                yield from self._make(repeat=1)
        loader = self._make(repeat=None)
        yield from loader.to_tf() if self._task.variant == "bridged" else loader

    def to_tensors(self, batch: Batch) -> Batch:
        """Hand arrays over by DLPack: they are aligned; what comes over the bridge is tensors already."""
        if self._task.variant == "bridged":
            return batch
        import tensorflow as tf  # noqa: PLC0415 - the other parts run without it

        converted: Batch = tf.nest.map_structure(
            lambda values: tf.experimental.dlpack.from_dlpack(values.__dlpack__()), batch
        )
        return converted

    def _make(self, repeat: int | None) -> Any:
        return self._split.loader(
            self._pipeline,
            batch_size=self._task.batch_size,
            shuffle=True,
            seed=SHUFFLE_SEED,
            num_threads=self._task.num_cores,
            cache="memory" if self._task.variant in {"first", "second"} else None,
            repeat=repeat,
        )
