"""TFRecord shards of any origin, into Keras `fit`: photo, station numbers and five measures by name.

Run it in any folder: TensorFlow writes `parcels/*.tfrecord`, from which it learns which parcels are late.
"""

from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import penstock as ps


def make_parcel(random: np.random.Generator) -> tf.train.Example:
    """Return a record: a parcel is late if two of three speak for it, so that no input is enough alone."""
    is_red, is_detoured, is_heavy = random.integers(0, 2, 3).tolist()
    height, width = random.integers(30, 60, 2)  # photos have any size
    photo = np.full((height, width, 3), (190, 60, 50) if is_red else (60, 90, 180))
    photo = np.clip(photo + random.normal(0, 25, photo.shape), 0, 255).astype(np.uint8)
    stations = random.integers(2, 20, random.integers(3, 9))  # and lists any length
    if is_detoured:
        stations[random.integers(len(stations))] = 1
    measures = random.normal([2.0 if is_heavy else -2.0, 0, 0, 0, 0], 0.5)

    late = int(is_red + is_detoured + is_heavy >= 2)
    jpeg = tf.io.encode_jpeg(photo).numpy()
    feature = {
        "photo": tf.train.Feature(bytes_list=tf.train.BytesList(value=[jpeg])),
        "stations": tf.train.Feature(int64_list=tf.train.Int64List(value=stations)),
        "measures": tf.train.Feature(float_list=tf.train.FloatList(value=measures)),
        "late": tf.train.Feature(int64_list=tf.train.Int64List(value=[late])),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature))


def write_shards() -> None:
    """Write four plain files, as a program without Penstock does."""
    random = np.random.default_rng(0)
    Path("parcels").mkdir(exist_ok=True)
    for name in ("train-0", "train-1", "train-2", "test-0"):
        with tf.io.TFRecordWriter(f"parcels/{name}.tfrecord") as writer:
            for _ in range(250):
                writer.write(make_parcel(random).SerializeToString())


def build_model(inputs: dict[str, keras.Input]) -> keras.Model:
    """Return a model with a branch for each input; a `Sequential` has only one."""
    photo = keras.layers.Rescaling(1 / 127.5, -1)(inputs["photo"])
    photo = keras.layers.Conv2D(8, 5, 3, activation="relu")(photo)
    photo = keras.layers.GlobalAveragePooling2D()(photo)
    stations = keras.layers.Embedding(20, 8, mask_zero=True)(inputs["stations"])  # 0 is padding
    stations = keras.layers.GlobalAveragePooling1D()(stations)
    joined = keras.layers.Concatenate()([photo, stations, inputs["measures"]])
    joined = keras.layers.Dense(32, "relu")(joined)
    return keras.Model(inputs, keras.layers.Dense(1, "sigmoid")(joined))


def main() -> dict[str, float]:
    """Open the files by a glob, train, and see how well it does on those that were kept back."""
    keras.utils.set_random_seed(0)
    write_shards()
    parcels = ps.open("parcels/*.tfrecord", target="late")  # splits by the names of the files
    print(parcels.schema, parcels.splits, sep="\n")  # types, lengths and formats are found in the bytes

    pipeline = ps.Pipeline.fit(parcels, photo=ps.transform.Image(32))  # JPEGs to uint8 pixels of one size
    print(pipeline)
    inputs = {k: keras.Input(v.shape, dtype=v.dtype, name=k) for k, v in pipeline.inputs.items()}
    model = build_model(inputs)
    model.compile(keras.optimizers.Adam(1e-2), "binary_crossentropy", metrics=["accuracy"])
    train = parcels["train"].loader(pipeline, batch_size=32, shuffle=True, seed=7)
    test = parcels["test"].loader(pipeline, batch_size=32)
    model.fit(train.to_keras(), epochs=8, verbose=2)

    scores = model.evaluate(test.to_keras(), verbose=0, return_dict=True)
    late = np.concatenate([targets["late"] for _, targets in test])
    majority = float(max(late.mean(), 1 - late.mean()))
    print(f"right in {scores['accuracy']:.0%} of the test files; always the same answer: {majority:.0%}")
    return {"accuracy": scores["accuracy"], "majority": majority}


if __name__ == "__main__":
    main()
