"""Arrays: images of 64 × 64 floats, a dense network, and a training loop with its accuracy per epoch.

Run it in any folder: it writes `spots/` and learns from it what shape a spot has.
"""

import keras
import numpy as np
import tensorflow as tf

import penstock as ps

SHAPES = ("disc", "ring", "bar")


def draw_spots(count: int) -> dict[str, np.ndarray]:
    """Return noisy images, each with a disc, a ring or a bar near its middle, and what it is."""
    random = np.random.default_rng(0)
    shape = random.integers(0, 3, count)
    down, across = np.mgrid[-32:32, -32:32][:, None] - random.integers(-4, 5, (2, count, 1, 1))
    distance = np.hypot(down, across)
    spots = np.stack([distance < 12, np.abs(distance - 14) < 4, np.abs(across) < 5])
    spots = spots[shape, np.arange(count)] + random.normal(0, 1, distance.shape)
    return {"image": spots.astype(np.float32), "shape": np.array(SHAPES)[shape]}


def main() -> dict[str, list[float] | float]:
    """Store the arrays, train for some epochs, and see how well it does."""
    keras.utils.set_random_seed(0)
    spots = ps.convert(draw_spots(900), "spots", target="shape", split="train=0.8,test=0.2", overwrite=True)
    image = spots["train"][0]["image"]  # no parse function, no reshape: both are in the schema
    print(spots.schema, f"{image.dtype} {image.shape}", sep="\n")

    pipeline = ps.Pipeline.fit(spots)
    model = keras.Sequential(
        [
            keras.Input(pipeline.inputs["image"].shape),
            keras.layers.Flatten(),
            keras.layers.Dense(64, "relu"),
            keras.layers.Dense(len(SHAPES)),
        ]
    )
    find_loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.Adam(1e-4)
    accuracy = keras.metrics.SparseCategoricalAccuracy()

    @tf.function(reduce_retracing=True)
    def step(images: tf.Tensor, shapes: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            loss = find_loss(shapes, logits)
        slopes = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(slopes, model.trainable_variables, strict=True))
        accuracy.update_state(shapes, logits)

    train = spots["train"].loader(pipeline, batch_size=32, shuffle=True, seed=7).to_tf()
    per_epoch = []
    for epoch in range(5):
        accuracy.reset_state()  # else it is the mean of all epochs so far
        for images, shapes in train:  # one input and one target: no dicts
            step(images, shapes)
        per_epoch.append(float(accuracy.result()))
        print(f"epoch {epoch}: accuracy {per_epoch[-1]:.3f}")

    accuracy.reset_state()
    for images, shapes in spots["test"].loader(pipeline, batch_size=32).to_tf():
        accuracy.update_state(shapes, model(images))
    print(f"right in {float(accuracy.result()):.0%} of the test split")
    return {"per_epoch": per_epoch, "accuracy": float(accuracy.result())}


if __name__ == "__main__":
    main()
