"""Shuffle, repeat, batch, prefetch: what `tf.data` chains, a loader has as options.

Run it in any folder: it writes `meals/`, four shards of photos and reviews, and learns which are recommended.
"""

import io
from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np
from PIL import Image

import penstock as ps

WORDS = ("the", "soup", "came", "late", "but", "we", "stayed", "for", "bread", "and", "wine")


def make_meals(count: int) -> Iterator[dict]:
    """Yield photos of many sizes and reviews of many lengths; green *and* praised is recommended."""
    random = np.random.default_rng(0)
    for _ in range(count):
        is_green, is_praised = random.integers(0, 2, 2).tolist()
        height, width = random.integers(40, 80, 2)
        pixels = random.normal((80, 150, 60) if is_green else (150, 90, 60), 30, (height, width, 3))
        file = io.BytesIO()
        Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(file, "JPEG")
        review = random.choice(WORDS, random.integers(2, 10) if random.random() < 0.8 else 40).tolist()
        review.insert(int(random.integers(len(review) + 1)), "superb" if is_praised else "bland")
        yield {
            "photo": file.getvalue(),
            "review": " ".join(review),
            "recommended": "yes" if is_green and is_praised else "no",
        }


def find_padding(loader: ps.Loader) -> float:
    """Return which share of the ids of an epoch is padding."""
    ids = [inputs["review"] for inputs, _ in loader.read(epoch=0)]
    return sum(int((each == 0).sum()) for each in ids) / sum(each.size for each in ids)


def differs_by_epoch(loader: ps.Loader) -> bool:
    """Return whether a record's pixels are others in the next epoch."""
    first, second = (next(iter(loader.read(epoch)))[0]["photo"] for epoch in (0, 1))
    return not np.array_equal(first, second)


def build_model(pipeline: ps.Pipeline) -> keras.Model:
    """Return a model with a branch for photos and one for reviews of any length."""
    inputs = {k: keras.Input(v.shape, dtype=v.dtype, name=k) for k, v in pipeline.inputs.items()}
    photo = keras.layers.Rescaling(1 / 127.5, -1)(inputs["photo"])
    photo = keras.layers.Conv2D(8, 5, 3, activation="relu")(photo)
    photo = keras.layers.GlobalAveragePooling2D()(photo)
    review = keras.layers.Embedding(pipeline.transforms["review"].num_codes, 8)(inputs["review"])
    review = keras.layers.GlobalMaxPooling1D()(review)
    joined = keras.layers.Dense(16, "relu")(keras.layers.Concatenate()([photo, review]))
    return keras.Model(inputs, keras.layers.Dense(1, "sigmoid")(joined))


def main() -> dict[str, float]:
    """Look at what each step does, train, and see how well it does."""
    keras.utils.set_random_seed(0)
    meals = ps.convert(make_meals(1000), "meals", target="recommended", num_shards=4, overwrite=True)
    # .map(decode), .map(resize), .map(augment): once for all splits; only *train* is augmented.
    photo = ps.transform.Image(32, resize="crop", augment={"flip": 0.5, "brightness": 0.1, "crop": 0.1})
    pipeline = ps.Pipeline.fit(meals, photo=photo)
    train, test = meals["train"], meals["test"]

    # .interleave(files), .shuffle(buffer): a permutation of the whole split, another in each epoch.
    shuffled = train.loader(pipeline, batch_size=32, shuffle=True, seed=7)
    num_files = len({Path(place.path).name for place in shuffled.where(step=0)})
    print(f"the first batch has records of {num_files} of the 4 files")

    # .padded_batch(32): as long as the longest review of the batch. .bucket_by_sequence_length(…): bucket_by.
    bucketed = train.loader(pipeline, batch_size=32, shuffle=True, seed=7, bucket_by="review")
    padding, padding_bucketed = find_padding(shuffled), find_padding(bucketed)
    print(f"padding: {padding:.0%} of all ids, {padding_bucketed:.0%} in batches of reviews of like length")
    is_augmented = differs_by_epoch(train.loader(pipeline, batch_size=32))
    is_test_augmented = differs_by_epoch(test.loader(pipeline, batch_size=32))
    print(f"photos differ from epoch to epoch: train {is_augmented}, test {is_test_augmented}")

    # .cache(): pixels before they are augmented. .repeat(): without an end; a fit then says how many steps.
    endless = train.loader(
        pipeline, batch_size=32, shuffle=True, seed=7, bucket_by="review", repeat=None, cache="memory"
    )
    model = build_model(pipeline)
    model.compile(keras.optimizers.Adam(1e-2), "binary_crossentropy", metrics=["accuracy"])
    # .prefetch(AUTOTUNE): threads make batches ahead, always.
    model.fit(endless.to_keras(), steps_per_epoch=25, epochs=4, verbose=2)
    scores = model.evaluate(test.loader(pipeline, batch_size=32).to_keras(), verbose=0, return_dict=True)
    majority = np.mean([record["recommended"] == "no" for record in test])
    print(f"right in {scores['accuracy']:.0%} of the test split; always the same answer: {majority:.0%}")
    return {
        "accuracy": scores["accuracy"],
        "majority": float(majority),
        "num_files": num_files,
        "padding": padding,
        "padding_bucketed": padding_bucketed,
        "is_augmented": is_augmented,
        "is_test_augmented": is_test_augmented,
    }


if __name__ == "__main__":
    main()
