"""Keras `fit`, stopped in the middle of its second epoch, and resumed there.

Run it in any folder: it writes `pets/` and learns from it which pets are adopted.
"""

import keras
import numpy as np

import penstock as ps


def main() -> None:
    """Train for a while, and train on from the state."""
    age = np.arange(2000) % 15
    table = {"age": age, "kind": np.where(age % 2, "cat", "dog"), "adopted": age < 7}
    pets = ps.convert(table, "pets", target="adopted", overwrite=True)
    pipeline = ps.Pipeline.fit(pets)
    inputs = {k: keras.Input(v.shape, dtype=v.dtype, name=k) for k, v in pipeline.inputs.items()}
    kind = keras.layers.Embedding(3, 2)(inputs["kind"])
    joined = keras.layers.Concatenate()([inputs["age"][:, None], kind])
    model = keras.Model(inputs, keras.layers.Dense(1, "sigmoid")(joined))
    model.compile("sgd", "binary_crossentropy", metrics=["accuracy"])

    def take_state(step: int, **_: object) -> None:
        states.append(loader.state_dict())  # of the batch that the model took last
        model.stop_training = states[-1]["epoch"] == 1 and step == 11

    states: list[dict] = []
    loader = pets["train"].loader(pipeline, batch_size=64, shuffle=True, seed=7)
    taking = keras.callbacks.LambdaCallback(on_train_batch_end=take_state)
    model.fit(loader.to_keras(), epochs=4, verbose=0, callbacks=[taking])

    again = pets["train"].loader(pipeline, batch_size=64, shuffle=True, seed=7)
    again.load_state_dict(states[-1])
    feed = again.to_keras()
    model.fit(feed, initial_epoch=1, epochs=4, verbose=2, callbacks=[feed.callback])


if __name__ == "__main__":
    main()
