"""The GPU part of `scaling.py`: the step rate of a ResNet50, Keras on JAX, by where its images come from.

In: the JPEGs of `scaling_data.py`. Out: images per second from arrays in memory, from the loader and from the
loader's cache, and the share of the time that each waits for batches.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scaling_data import NUM_CLASSES, SIDE, ensure_data, list_data
from tables import draw

BATCH_SIZE, QUICK_BATCH_SIZE = 256, 4
NUM_MEMORY_BATCHES = 40
# Steps per timed run: some seconds on a fast GPU. Before it, as many as compile the model and fill a cache.
NUM_STEPS, QUICK_STEPS = 160, 2
MEMORY = "arrays in memory"


def measure_gpu(folder: Path, is_quick: bool) -> dict[str, Any]:
    """Train from each source, and return a row of figures per source."""
    os.environ["KERAS_BACKEND"] = "jax"
    data = list_data(folder, is_quick)["images"]
    ensure_data(data)
    import jax  # noqa: PLC0415 - after the data is made: its threads must not be forked
    import keras  # noqa: PLC0415
    import numpy as np  # noqa: PLC0415

    batch_size = QUICK_BATCH_SIZE if is_quick else BATCH_SIZE
    num_steps = QUICK_STEPS if is_quick else NUM_STEPS
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    keras.utils.set_random_seed(0)
    model = make_model(keras)
    pixels = np.random.default_rng(0).integers(
        0, 255, (batch_size * min(NUM_MEMORY_BATCHES, num_steps), SIDE, SIDE, 3), np.uint8
    )
    labels = (np.arange(len(pixels)) % NUM_CLASSES).astype(np.int32)
    rows: list[dict[str, Any]] = []

    def add(source: str, figures: Mapping[str, float]) -> None:
        rows.append({"source": source, "batch_size": batch_size, **figures})
        rate, cores = rows[-1]["images_per_second"], rows[-1]["cores_used"]
        print(f"{source}: {rate:,.0f} images/s, {cores:.1f} cores used", flush=True)

    add(MEMORY, _time_arrays(model, pixels, labels, batch_size, num_steps))
    for source, cache in (("Penstock loader", None), ('Penstock loader, cache="memory"', "memory")):
        add(source, _time_loader(model, data, batch_size, num_steps, cache))
    # With the images in memory again: the machine may have become faster or slower meanwhile.
    add(f"{MEMORY}, again", _time_arrays(model, pixels, labels, batch_size, num_steps))
    device = jax.devices()[0]
    return {"gpu": rows, "gpu_name": f", {device.device_kind}"}


def make_model(keras: Any) -> Any:
    """Make a ResNet50 with random weights, compiled for training."""
    image = keras.Input((SIDE, SIDE, 3), name="image")
    body = keras.applications.ResNet50(
        include_top=False, weights=None, pooling="avg", input_shape=(SIDE, SIDE, 3)
    )
    features = body(keras.layers.Rescaling(1 / 255)(image))
    scores = keras.layers.Dense(NUM_CLASSES, activation="softmax", dtype="float32")(features)
    model = keras.Model({"image": image}, {"label": scores})
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model


class _Clock:
    """Wall time and CPU time of the last epoch of a fit, and the time that a loader waited in it."""

    def __init__(self, keras: Any, loader: Any = None) -> None:
        self.seconds = self.cpu_seconds = self.waited = 0.0
        clock = self

        class Callback(keras.callbacks.Callback):  # type: ignore[misc]
            """Keras waits for the device before an epoch ends: it reads the loss."""

            def on_epoch_begin(self, _epoch: int, _logs: Any = None) -> None:
                self.start, self.cpu_start = time.perf_counter(), time.process_time()
                self.waited = loader.stats().wait_seconds if loader else 0.0

            def on_epoch_end(self, _epoch: int, _logs: Any = None) -> None:
                clock.seconds = time.perf_counter() - self.start
                clock.cpu_seconds = time.process_time() - self.cpu_start
                clock.waited = (loader.stats().wait_seconds if loader else 0.0) - self.waited

        self.callback = Callback()

    def figures(self, num_images: int, *, has_waited: bool) -> dict[str, Any]:
        return {
            "images_per_second": num_images / self.seconds,
            "cores_used": self.cpu_seconds / self.seconds,
            "wait_share": self.waited / self.seconds if has_waited else None,
        }


def _time_arrays(model: Any, pixels: Any, labels: Any, batch_size: int, num_steps: int) -> dict[str, Any]:
    import keras  # noqa: PLC0415

    clock = _Clock(keras)
    rates = []
    num_epochs = max(2, num_steps * batch_size // len(pixels))

    class Rates(keras.callbacks.Callback):  # type: ignore[misc]
        """Notes each epoch but the first, in which the model is compiled."""

        def on_epoch_end(self, epoch: int, _logs: Any = None) -> None:
            if epoch:
                rates.append(clock.figures(len(pixels), has_waited=False))

    model.fit(
        {"image": pixels},
        {"label": labels},
        batch_size=batch_size,
        epochs=num_epochs,
        shuffle=False,
        verbose=0,
        callbacks=[clock.callback, Rates()],
    )
    rates.sort(key=lambda figures: float(figures["images_per_second"]))
    return rates[len(rates) // 2]


def _time_loader(model: Any, data: Any, batch_size: int, num_steps: int, cache: str | None) -> dict[str, Any]:
    """Train two epochs: one that compiles and fills the cache, and the timed one."""
    import keras  # noqa: PLC0415

    import penstock as ps  # noqa: PLC0415
    from scaling_feeds.penstock_loader import open_split  # noqa: PLC0415

    per_epoch = data.num_records // batch_size
    loader = open_split(data).loader(
        ps.Pipeline.load(data.pipeline),
        batch_size=batch_size,
        shuffle=True,
        seed=1,
        last="drop",
        # One epoch of Keras is several of the data, as many steps as an epoch of a larger set has.
        repeat=max(1, num_steps // per_epoch),
        take=None if per_epoch <= num_steps else num_steps * batch_size,
        cache=cache,
    )
    feed = loader.to_keras()
    clock = _Clock(keras, loader)
    model.fit(feed, epochs=2, verbose=0, callbacks=[clock.callback, feed.callback])
    steps = max(1, num_steps // per_epoch) * min(per_epoch, num_steps)
    return clock.figures(steps * batch_size, has_waited=True)


def format_gpu(rows: Sequence[Mapping[str, Any]]) -> str:
    """Format one row per source, with the share of the rate from memory."""
    best = max(row["images_per_second"] for row in rows if row["source"].startswith(MEMORY))
    cells = []
    for row in rows:
        rate, waited = row["images_per_second"], row["wait_share"]
        shares = [f"{rate / best:.0%}", "" if waited is None else f"{waited:.1%}"]
        cells.append([row["source"], f"{rate:,.0f}", *shares, f"{row['cores_used']:.1f}"])
    heads = [f"ResNet50, bfloat16, batches of {rows[0]['batch_size']}", "images/s"]
    return draw([*heads, "of memory", "waiting", "cores used"], cells)
