"""Images for Keras `fit`: pixels cross as bytes, and a layer of the model rescales them.

Run it in any folder: it writes `stripes/` and learns from it which way stripes run.
"""

import io
from collections.abc import Iterator

import keras
import numpy as np
from PIL import Image

import penstock as ps


def draw_stripes(count: int) -> Iterator[dict]:
    """Yield samples: JPEGs of many sizes, each with stripes that run across or down."""
    random = np.random.default_rng(0)
    for number in range(count):
        height, width, gap = random.integers((40, 40, 5), (90, 90, 10)).tolist()
        dark, light = random.integers(0, 100, 3), random.integers(150, 256, 3)
        is_light = np.arange(max(height, width)) // gap % 2 == 1
        stripes = is_light[:height, None, None] if number % 2 else is_light[None, :width, None]
        pixels = np.broadcast_to(np.where(stripes, light, dark), (height, width, 3))
        content = io.BytesIO()
        Image.fromarray(pixels.astype(np.uint8)).save(content, "JPEG")
        yield {"picture": content.getvalue(), "stripes": ("down", "across")[number % 2]}


def main() -> None:
    """Train for some epochs, and see how well it does."""
    keras.utils.set_random_seed(0)
    data = ps.convert(draw_stripes(600), "stripes", target="stripes", overwrite=True)
    picture = ps.transform.Image(48, resize="pad", augment={"flip": 0.5, "brightness": 0.2})
    pipeline = ps.Pipeline.fit(data, picture=picture)

    pixels = keras.Input(pipeline.inputs["picture"].shape, dtype="uint8", name="picture")
    x = keras.layers.Rescaling(1 / 127.5, -1)(pixels)
    x = keras.layers.Conv2D(16, 5, 2, activation="relu")(x)
    x = keras.layers.Conv2D(32, 3, 2, activation="relu")(x)
    across = keras.layers.Dense(1, "sigmoid")(keras.layers.GlobalAveragePooling2D()(x))
    model = keras.Model({"picture": pixels}, across)
    model.compile(keras.optimizers.Adam(3e-3), "binary_crossentropy", metrics=["accuracy"])

    # Decoded and resized once: later epochs take the pixels from memory, and augment them anew.
    train = data["train"].loader(pipeline, batch_size=32, shuffle=True, seed=7, cache="memory")
    checks = data["validation"].loader(pipeline, batch_size=32, cache="memory")  # nothing is augmented here
    feed = train.to_keras()
    model.fit(feed, epochs=3, verbose=2, validation_data=checks.to_keras(), callbacks=[feed.callback])
    test = data["test"].loader(pipeline, batch_size=32)
    print(model.evaluate(test.to_keras(), verbose=0, return_dict=True))


if __name__ == "__main__":
    main()
