"""Images by TensorFlow's operations alone: the loader's pixels, but for the rounding of the resize."""

from __future__ import annotations

import logging
import os

import pytest

import penstock as ps
from graph_images import GREY, JPEGS, PNGS, TURNED, draw, encode, open_images
from graph_rows import assert_same_batches, fit_some
from penstock.errors import OptionError
from penstock.transform import Image
from raising import containing, raises_with

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow")
pytest.importorskip("simplejpeg")


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> ps.Dataset:
    return open_images(tmp_path_factory.mktemp("photos") / "train.tfrecord", [*JPEGS, *TURNED, *PNGS, *GREY])


def compare(data: ps.Dataset, transform: Image, pixels: int = 1, ulps: int = 0) -> None:
    split, pipeline = data["train"], fit_some(data, photo=transform)
    loader = split.loader(pipeline, batch_size=5, augment=False)
    graph = split.to_tf_graph(pipeline, batch_size=5)
    assert graph.element_spec == loader.to_tf(structure="dict").element_spec
    assert_same_batches(loader, graph, ulps, pixels)


@pytest.mark.parametrize(
    "options",
    [
        {"size": 48},
        {"size": (15, 20)},
        {"size": (15, 20), "resize": "crop"},
        {"size": 31, "antialias": False, "draft": False},
        {"size": (40, 60), "resize": "pad", "fill": 7},
        {"size": (40, 60), "resize": "pad", "fill": (7, 80, 200), "draft": False},
        {"size": (40, 60), "resize": "crop"},
        {"size": 64, "resize": "random", "augment": {"flip": 0.5}},
        {"size": 48, "channels": 1},
        {"size": 48, "channels": 4, "orient": False, "resize": "crop"},
    ],
    ids=str,
)
def test_pixels_resized_by_tensorflow_differ_from_the_loader_by_at_most_one(photos, options):
    compare(photos, Image(**options))


def test_pixels_that_are_not_resized_equal_pixels_of_the_loader(tmp_path):
    jpegs = open_images(tmp_path / "train.tfrecord", [encode(draw(40, 56), "jpeg")] * 6, format="jpeg")
    compare(jpegs, Image(), pixels=0)
    pngs = open_images(tmp_path / "png-train.tfrecord", [encode(draw(40, 56), "png")], format="png")
    assert pngs.splits
    split, pipeline = pngs[pngs.splits[0]], fit_some(pngs, photo=Image())
    assert_same_batches(split.loader(pipeline), split.to_tf_graph(pipeline))


def test_float_pixels_are_scaled_to_a_unit_of_the_last_place(tmp_path):
    data = open_images(tmp_path / "train.tfrecord", [encode(draw(40, 56), "jpeg")] * 2, format="jpeg")
    scaled = Image(dtype="float32", scale=1 / 255, mean=(0.4, 0.5, 0.6), deviation=(0.2, 0.3, 0.4))
    compare(data, scaled, pixels=0, ulps=1)
    compare(data, Image(dtype="float32", scale=1 / 255), pixels=0, ulps=1)


@pytest.mark.parametrize("fill", [9, (1, 2, 3)])
def test_record_without_an_image_gets_the_filling(tmp_path, fill):
    data = open_images(tmp_path / "train.tfrecord", [JPEGS[0], None, PNGS[0]], optional=True)
    compare(data, Image(size=32, missing="fill", fill=fill))


@pytest.mark.parametrize("size", [16, 64])
def test_brightness_of_cmyk_equals_brightness_of_its_colours_by_tensorflow(tmp_path, size):
    picture = draw(64, 64).convert("CMYK")
    data = open_images(tmp_path / "train.tfrecord", [encode(picture, "jpeg"), GREY[0]])
    split = data["train"]
    bright, coloured = (
        next(iter(split.to_tf_graph(fit_some(data, photo=Image(size=size, channels=channels)))))[0]["photo"]
        for channels in (1, 3)
    )
    shares = tf.reduce_sum(tf.cast(coloured, tf.int32) * [19595, 38470, 7471], axis=-1, keepdims=True)
    wanted = tf.cast((shares + 32768) // 65536, tf.int32)
    assert int(tf.reduce_max(tf.abs(tf.cast(bright, tf.int32) - wanted))) <= (size < 64)


def test_augmentation_is_left_out_with_a_line_in_the_log(photos, caplog):
    with caplog.at_level(logging.WARNING, "penstock"):
        plain = photos["train"].to_tf_graph(fit_some(photos, photo=Image(size=8)))
        assert not caplog.messages
        pipeline = fit_some(photos, photo=Image(size=8, augment={"flip": 1.0}))
        left = photos["train"].to_tf_graph(pipeline)
    assert caplog.messages == [containing("to_tf_graph()", "augment", "loader(…).to_tf()")]
    for one, other in zip(plain, left, strict=True):
        assert bool(tf.reduce_all(one[0]["photo"] == other[0]["photo"]))


@pytest.mark.parametrize("is_graph", [True, False])
def test_keras_model_of_one_target_is_fitted_by_the_names_of_its_inputs_and_outputs(photos, is_graph):
    keras = pytest.importorskip("keras")
    data = ps.open(photos.paths, schema=photos.schema.with_roles(target="row"))
    split, pipeline = data["train"], ps.Pipeline.fit(data, photo=Image(size=8))
    batches = split.to_tf_graph(pipeline, batch_size=6)
    photo = keras.Input((8, 8, 3), name="photo")
    row = keras.layers.Dense(1)(keras.layers.Flatten()(keras.layers.Rescaling(1 / 255)(photo)))
    model = keras.Model({"photo": photo}, {"row": row})
    model.compile("sgd", "mse")
    loader = split.loader(pipeline, batch_size=6)
    before = model.get_weights()[0].copy()
    model.fit(
        batches if is_graph else loader.to_tf(structure="dict"), steps_per_epoch=1, shuffle=False, verbose=0
    )
    assert (model.get_weights()[0] != before).any()


def test_image_of_too_many_pixels_or_damaged_ends_the_iteration(tmp_path):
    data = open_images(tmp_path / "train.tfrecord", [encode(draw(40, 56), "png")])
    pipeline = fit_some(data, photo=Image(size=8, max_pixels=2000))
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(data["train"].to_tf_graph(pipeline))
    cut = open_images(tmp_path / "cut-train.tfrecord", [JPEGS[0][:-400]])
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(cut[cut.splits[0]].to_tf_graph(fit_some(cut, photo=Image(size=8))))


def test_format_with_other_pixels_in_tensorflow_is_refused(photos):
    pipeline = fit_some(photos, photo=Image(size=8, formats=("jpeg", "webp")))
    facts = {"expected": containing("JPEG", "PNG"), "got": containing("webp")}
    with raises_with(OptionError, what=containing("'photo'", "TensorFlow"), **facts):
        photos["train"].to_tf_graph(pipeline)
