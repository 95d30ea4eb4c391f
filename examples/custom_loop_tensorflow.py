"""A training loop of your own with `GradientTape`: several inputs by name, a metric for each epoch.

Run it in any folder: it writes `pets/` and learns from it which pets are adopted.
"""

import keras
import numpy as np
import tensorflow as tf

import penstock as ps

WORDS = ("sleeps", "eats", "jumps", "watches", "birds", "all", "day", "often")


def make_pets(count: int) -> dict[str, list]:
    """Return a table: a pet is adopted if two of three speak for it, so that no input is enough alone."""
    random = np.random.default_rng(0)
    is_cat, is_gentle = random.integers(0, 2, (2, count))
    age = random.uniform(0, 15, count)
    notes = [random.choice(WORDS, random.integers(3, 9)) for _ in range(count)]
    return {
        "age": age.tolist(),
        "kind": np.where(is_cat, "cat", "dog").tolist(),
        "note": [" ".join(["gentle"][: is_gentle[i]] + notes[i].tolist()) for i in range(count)],
        "adopted": (is_cat + is_gentle + (age < 7.5) >= 2).tolist(),
    }


def build_model(pipeline: ps.Pipeline) -> keras.Model:
    """Return a model with an input for each of the pipeline, by its name."""
    inputs = {k: keras.Input(v.shape, dtype=v.dtype, name=k) for k, v in pipeline.inputs.items()}
    kind = keras.layers.Embedding(pipeline.transforms["kind"].num_codes, 4)(inputs["kind"])
    note = keras.layers.Embedding(pipeline.transforms["note"].num_codes, 8, mask_zero=True)(inputs["note"])
    note = keras.layers.GlobalAveragePooling1D()(note)
    joined = keras.layers.Concatenate()([keras.ops.expand_dims(inputs["age"], 1), kind, note])
    joined = keras.layers.Dropout(0.1)(keras.layers.Dense(32, "relu")(joined))
    return keras.Model(inputs, keras.layers.Dense(1)(joined))


def main() -> dict[str, list[float] | float]:
    """Train for some epochs, and see how well it does."""
    keras.utils.set_random_seed(0)
    pets = ps.convert(make_pets(2000), "pets", target="adopted", overwrite=True)
    pipeline = ps.Pipeline.fit(pets)
    model = build_model(pipeline)
    optimizer = keras.optimizers.Adam(1e-2)
    find_loss = keras.losses.BinaryCrossentropy(from_logits=True)
    accuracy = keras.metrics.BinaryAccuracy(threshold=0.0)  # of logits

    train = pets["train"].loader(pipeline, batch_size=64, shuffle=True, seed=7)
    batches = train.to_tf(structure="dict")

    # Compiled once, for notes of any length and for the last batch, which is shorter.
    @tf.function(input_signature=batches.element_spec)
    def step(inputs: dict[str, tf.Tensor], targets: dict[str, tf.Tensor]) -> tf.Tensor:
        with tf.GradientTape() as tape:
            logits = model(inputs, training=True)[:, 0]
            loss = find_loss(targets["adopted"], logits)
        slopes = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(slopes, model.trainable_variables, strict=True))
        accuracy.update_state(targets["adopted"], logits)
        return loss

    @tf.function(input_signature=batches.element_spec)
    def check(inputs: dict[str, tf.Tensor], targets: dict[str, tf.Tensor]) -> None:
        accuracy.update_state(targets["adopted"], model(inputs, training=False)[:, 0])

    def score(split: str) -> float:
        accuracy.reset_state()
        for inputs, targets in pets[split].loader(pipeline, batch_size=64).to_tf(structure="dict"):
            check(inputs, targets)
        return float(accuracy.result())

    per_epoch = []
    for epoch in range(5):
        accuracy.reset_state()  # it would accumulate over the epochs
        for inputs, targets in batches:  # every iteration is the next epoch, in another order
            loss = step(inputs, targets)
        per_epoch.append(float(accuracy.result()))
        print(f"epoch {epoch}: loss {float(loss):.3f}, accuracy {per_epoch[-1]:.3f}, ", end="")
        print(f"validation {score('validation'):.3f}, state {train.position}")

    found = score("test")
    print(f"right in {found:.0%} of the test split")
    return {"per_epoch": per_epoch, "accuracy": found}


if __name__ == "__main__":
    main()
