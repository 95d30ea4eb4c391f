"""The small network whose steps wait for the feeds: three convolutions and a dense layer.

In: a size. Out: a compiled training step over a batch, the same for every feed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from image_feeds.task import Batch, Task

NUM_FILTERS = (8, 16, 32)
NUM_CLASSES = 10
LEARNING_RATE = 0.01


def make_step(task: Task) -> Callable[[Batch], Any]:
    """Build the network and return what trains it on one batch and gives the loss."""
    keras.utils.set_random_seed(task.size)
    image = hidden = keras.Input((task.size, task.size, 3), dtype="float32")
    for num_filters in NUM_FILTERS:
        hidden = keras.layers.Conv2D(num_filters, 3, strides=2, padding="same", activation="relu")(hidden)
    hidden = keras.layers.GlobalAveragePooling2D()(hidden)
    model = keras.Model(image, keras.layers.Dense(NUM_CLASSES)(hidden))
    measure = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.SGD(LEARNING_RATE)
    optimizer.build(model.trainable_variables)

    @tf.function
    def train(batch: Batch) -> Any:
        inputs, targets = batch
        pixels = inputs["image"]
        if pixels.dtype == tf.uint8:  # the model scales what comes small
            pixels = tf.cast(pixels, tf.float32) / 255.0
        with tf.GradientTape() as tape:
            loss = measure(targets["label"] % NUM_CLASSES, model(pixels, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    compiled: Callable[[Batch], Any] = train
    return compiled
