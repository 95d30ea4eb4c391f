"""Batches as a `tf.data.Dataset`, for a training loop of your own.

Run it in any folder: it writes `pets/` and learns from it which pets are adopted.
"""

import numpy as np
import tensorflow as tf

import penstock as ps


def main() -> None:
    """Train a linear model for three epochs."""
    age, weight = np.arange(2000) % 15, np.arange(2000) % 7 + 0.5
    table = {"age": age, "weight": weight, "adopted": age < weight + 3}
    pets = ps.convert(table, "pets", target="adopted", overwrite=True)
    pipeline = ps.Pipeline.fit(pets).group("numbers", ["age", "weight"])
    loader = pets["train"].loader(pipeline, batch_size=64, shuffle=True, seed=7)
    dataset = loader.to_tf()
    print(dataset.element_spec, "of", int(dataset.cardinality()), "batches")

    slopes = tf.Variable([0.0, 0.0])
    for _ in range(3):  # every iteration is the next epoch, in another order
        for numbers, adopted in dataset:  # one input and one target: no dicts
            with tf.GradientTape() as tape:
                logits = tf.linalg.matvec(numbers, slopes)
                labels = tf.cast(adopted, tf.float32)
                loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, logits))
            slopes.assign_sub(0.5 * tape.gradient(loss, slopes))
        print(loader.position, float(loss))


if __name__ == "__main__":
    main()
