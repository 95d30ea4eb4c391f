"""The small network whose steps wait for the feeds: embeddings and numbers into three dense layers.

In: fitted vocabularies. Out: a compiled training step over a batch, the same for every feed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from feeds.task import Batch, Task

EMBEDDING_SIZE = 8
HIDDEN_SIZES = (128, 64)
NUM_CLASSES = 10
LEARNING_RATE = 0.01


def make_step(task: Task) -> Callable[[Batch], Any]:
    """Build the network and return what trains it on one batch and gives the loss."""
    keras.utils.set_random_seed(task.spec.num_records)
    inputs = {name: keras.Input((), dtype="int64", name=name) for name in task.fitted.vocabularies}
    inputs |= {name: keras.Input((1,), dtype="float32", name=name) for name in task.fitted.means}
    parts = [
        keras.layers.Embedding(len(words) + 1, EMBEDDING_SIZE)(inputs[name])
        for name, words in task.fitted.vocabularies.items()
    ]
    parts += [inputs[name] for name in task.fitted.means]
    hidden = keras.layers.Concatenate()(parts)
    for size in HIDDEN_SIZES:
        hidden = keras.layers.Dense(size, activation="relu")(hidden)
    model = keras.Model(inputs, keras.layers.Dense(NUM_CLASSES)(hidden))
    measure = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.SGD(LEARNING_RATE)
    optimizer.build(model.trainable_variables)

    def train(batch: Batch) -> Any:
        columns, targets = batch
        # A scalar that a Normalization layer has seen comes as a vector of one.
        columns = {name: tf.reshape(columns[name], (-1, *each.shape[1:])) for name, each in inputs.items()}
        with tf.GradientTape() as tape:
            loss = measure(targets["label"], model(columns, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    # The last batch of an epoch is short, which must not cost a trace each time.
    compiled: Callable[[Batch], Any] = tf.function(train, reduce_retracing=True)
    return compiled
