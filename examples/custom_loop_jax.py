"""A training loop of your own on JAX: a Keras model without state, gradients by JAX, a metric for each epoch.

Run it in any folder: it writes `pets/` and learns from it which pets are adopted.
"""

import os

os.environ["KERAS_BACKEND"] = "jax"  # before the first import of Keras

import jax
import keras
import numpy as np

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
    optimizer.build(model.trainable_variables)
    entropy = keras.losses.BinaryCrossentropy(from_logits=True)
    accuracy = keras.metrics.BinaryAccuracy(threshold=0.0)  # of logits

    def find_loss(trained: list, others: list, inputs: dict, targets: dict) -> tuple:
        logits, others = model.stateless_call(trained, others, inputs, training=True)
        return entropy(targets["adopted"], logits[:, 0]), (logits[:, 0], others)

    @jax.jit
    def step(state: tuple, counts: list, inputs: dict, targets: dict) -> tuple:
        trained, others, moments = state  # `others` holds the seeds of dropout, which move on
        find = jax.value_and_grad(find_loss, has_aux=True)
        (loss, (logits, others)), slopes = find(trained, others, inputs, targets)
        trained, moments = optimizer.stateless_apply(moments, slopes, trained)
        counts = accuracy.stateless_update_state(counts, targets["adopted"], logits)
        return (trained, others, moments), counts, loss

    @jax.jit
    def check(state: tuple, counts: list, inputs: dict, targets: dict, weights: dict) -> list:
        logits, _ = model.stateless_call(state[0], state[1], inputs, training=False)
        return accuracy.stateless_update_state(
            counts, targets["adopted"], logits[:, 0], sample_weight=weights["adopted"]
        )

    # Every shape is compiled anew: full batches alone, and notes padded to 8 ids, or 16.
    train = pets["train"].loader(pipeline, batch_size=64, shuffle=True, seed=7, last="drop")
    batches = train.to_jax()
    state = tuple(
        [each.value for each in variables]
        for variables in (model.trainable_variables, model.non_trainable_variables, optimizer.variables)
    )
    per_epoch = []
    for epoch in range(5):
        counts = accuracy.stateless_reset_state()  # zeros: each epoch counts by itself
        for inputs, targets in batches:  # every iteration is the next epoch, in another order
            state, counts, loss = step(state, counts, inputs, targets)
        per_epoch.append(float(accuracy.stateless_result(counts)))
        print(f"epoch {epoch}: loss {loss:.3f}, accuracy {per_epoch[-1]:.3f}, state {train.position}")

    counts = accuracy.stateless_reset_state()
    for batch in pets["test"].loader(pipeline, batch_size=64, last="pad").to_jax():
        counts = check(state, counts, *batch)  # what fills up the last batch has weight 0
    found = float(accuracy.stateless_result(counts))
    for variable, value in zip(model.trainable_variables, state[0], strict=True):
        variable.assign(value)  # the model itself has not changed so far
    print(f"right in {found:.0%} of the test split")
    return {"per_epoch": per_epoch, "accuracy": found}


if __name__ == "__main__":
    main()
