"""Models for images: as deep as they are large, or by a model of `keras.applications`."""

import io

import keras
import numpy as np
import pytest
from PIL import Image as Picture

from built_models import NUM_ROWS, YES, build_both, list_layers, make_pipeline, run
from fit_sources import numbers, strings
from penstock.errors import OptionError
from penstock.fields import Image, Tensor
from penstock.model.build import build_model
from penstock.model.design import write_model
from penstock.model.encoder.grid import count_stages, plan_stages
from penstock.model.feature import BACKBONES
from penstock.settings.model import ModelOptions
from penstock.transform import Image as Decode
from penstock.transform import Keep
from raising import mentions


def draw_photos(seed=5):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(NUM_ROWS):
        buffer = io.BytesIO()
        Picture.fromarray(rng.integers(0, 256, (40, 40, 3), np.uint8)).save(buffer, "PNG")
        found.append(buffer.getvalue())
    return found


def make_photos(**choices):
    return make_pipeline({"photo": (Image("png"), Decode(**choices), strings(draw_photos())), "y": YES})


def test_stages_follow_the_size():
    assert [count_stages(side) for side in (1, 4, 8, 16, 32, 64, 96, 128, 224, 512, 4096)] == [
        *(1, 1, 1, 2, 3, 4, 5, 4, 5, 6, 6),
    ]


@pytest.mark.parametrize(
    ("sides", "expected"),
    [
        ((1, 1), (0, 8, (8,))),
        ((8, 8), (0, 8, (8, 16))),
        ((16, 16), (0, 8, (8, 16))),
        ((20, 28), (0, 8, (8, 16, 32))),
        ((32, 32), (0, 24, (24, 48, 96, 192))),
        ((56, 56), (0, 24, (24, 48, 96, 192))),
        ((64, 64), (1, 12, (24, 48, 96, 192))),
        ((160, 160), (2, 12, (24, 48, 96, 192))),
        ((96, 160), (2, 12, (24, 48, 96, 192))),
        ((512, 40), (2, 12, (24, 48))),
        ((16, 16, 16), (0, 8, (8, 16))),
    ],
)
def test_residual_network_follows_the_size(sides, expected):
    assert plan_stages(sides, 24) == expected


def test_residual_network_is_written_as_code():
    pipeline, inputs = make_photos(size=(33, 20))
    built, written = build_both(pipeline, ModelOptions(preset="small"))
    assert list_layers(built) == list_layers(written)
    assert np.array_equal(run(built, inputs), run(written, inputs))
    kinds = [type(layer).__name__ for layer in built.layers]
    assert kinds.count("Add") == 3
    assert built.get_layer("photo_3_second_convolution").output.shape == (None, 9, 5, 48)


def test_images_of_one_shape_share_an_encoder():
    def make(name, **choices):
        return {name: (Image("png"), Decode(**choices), strings(draw_photos()))}

    parts = {**make("front", size=8), **make("side", size=8), **make("top", size=9), "y": YES}
    pipeline, inputs = make_pipeline(parts)
    small = ModelOptions(preset="small")
    built, written = build_both(pipeline, small)
    assert list_layers(built) == list_layers(written)
    assert np.array_equal(run(built, inputs), run(written, inputs))
    names = [layer.name for layer in built.layers]
    assert "images_stem_convolution" in names
    assert "top_stem_convolution" in names
    apart = build_model(pipeline.schema, pipeline, small.replace(share_images=False))
    names = [layer.name for layer in apart.layers]
    assert {"front_stem_convolution", "side_stem_convolution", "top_stem_convolution"} < set(names)
    assert apart.count_params() > built.count_params()


def test_shared_encoder_gives_each_record_the_vectors_of_its_own_images():
    parts = {
        name: (Image("png"), Decode(8), strings(draw_photos(seed)))
        for name, seed in (("front", 1), ("side", 2))
    }
    pipeline, inputs = make_pipeline({**parts, "y": YES})
    model, _ = build_both(pipeline, ModelOptions(preset="small"))
    vectors = keras.Model(model.input, model.get_layer("combined_members").input)
    found = run(vectors, inputs)
    swapped = run(vectors, {"front": inputs["side"], "side": inputs["front"]})
    width = found.shape[1] // 2
    assert np.allclose(found[:, :width], swapped[:, width:], atol=1e-6)
    assert np.allclose(found[:, width:], swapped[:, :width], atol=1e-6)
    alone = run(vectors, {name: array[2:3] for name, array in inputs.items()})
    assert np.allclose(found[2:3], alone, atol=1e-6)


@pytest.mark.parametrize("side", [1, 8, 512])
def test_images_of_any_size_are_taken(side):
    pixels = (
        Tensor((side, side, 3), "uint8"),
        Keep(),
        numbers([np.zeros((side, side, 3))] * NUM_ROWS, "uint8"),
    )
    pipeline, inputs = make_pipeline({"pixels": pixels, "y": YES})
    model = build_model(pipeline.schema, pipeline, ModelOptions(preset="small"))
    output = run(model, {name: array[:1] for name, array in inputs.items()})
    assert output.shape == (1, 1)
    assert np.isfinite(output).all()


def test_bytes_are_rescaled_by_a_layer_and_floats_of_the_pipeline_are_not():
    pipeline, _ = make_photos(size=8)
    model = build_model(pipeline.schema, pipeline, ModelOptions(preset="small"))
    assert model.get_layer("photo_rescaling").scale == 1 / 255
    pipeline, _ = make_photos(size=8, dtype="float32", scale=1 / 255)
    model = build_model(pipeline.schema, pipeline, ModelOptions(preset="small"))
    assert "photo_rescaling" not in [layer.name for layer in model.layers]


def test_backbones_equal_the_backbones_of_keras():
    assert set(BACKBONES) == {name for name in dir(keras.applications) if name[0].isupper()}


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("ResNet50", "resnet"),
        ("VGG16", "vgg16"),
        ("VGG19", "vgg19"),
        ("ResNet50V2", "resnet_v2"),
        ("MobileNet", "mobilenet"),
        ("MobileNetV2", "mobilenet_v2"),
        ("MobileNetV3Small", "mobilenet_v3"),
        ("DenseNet121", "densenet"),
        ("EfficientNetB0", "efficientnet"),
        ("EfficientNetV2S", "efficientnet_v2"),
        ("ConvNeXtTiny", "convnext"),
        ("InceptionV3", "inception_v3"),
        ("InceptionResNetV2", "inception_resnet_v2"),
        ("NASNetMobile", "nasnet"),
        ("Xception", "xception"),
    ],
)
def test_pixels_are_scaled_as_each_backbone_was_trained(name, module):
    pixels = np.random.default_rng(1).integers(0, 256, (2, 3, 3, 3)).astype(np.float32)
    expected = getattr(keras.applications, module).preprocess_input(pixels.copy())
    scale, offset, is_reversed = BACKBONES[name]
    got = (pixels[..., ::-1] if is_reversed else pixels) * scale + offset
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


# Keras warns about its own arrays while it writes weights.
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_backbone_takes_images_scaled_by_the_pipeline_and_weights_of_a_file(tmp_path):
    path = tmp_path / "notop.weights.h5"
    facts = {"include_top": False, "weights": None, "pooling": "avg"}
    source = keras.applications.MobileNet(**facts, input_shape=(32, 32, 3))
    source.save_weights(path)
    scaled, inputs = make_photos(
        size=32, dtype="float32", scale=1 / 255, mean=(0.5, 0.4, 0.3), deviation=(0.1, 0.2, 0.4)
    )
    options = ModelOptions(image="MobileNet", image_weights=path, preset="small", freeze_image=True)
    model = build_model(scaled.schema, scaled, options)
    backbone = model.get_layer("photo_MobileNet")
    for got, expected in zip(backbone.get_weights(), source.get_weights(), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert backbone.trainable is False
    assert len(model.trainable_weights) == 7  # of three dense layers, and the scales of the members
    _, pixels = make_photos(size=32)
    expected = keras.applications.mobilenet.preprocess_input(pixels["photo"].astype(np.float32))
    seen = keras.Model(model.input, model.get_layer("photo_rescaling").output)
    np.testing.assert_allclose(run(seen, inputs), expected, atol=1e-3)


def test_code_of_a_backbone_builds_the_same_model(monkeypatch):
    # A network of one layer stands for it: the real ones take their time, and are called alike.
    def make_small(include_top, weights, input_shape, pooling, name):
        assert (include_top, weights, pooling) == (False, None, "avg")
        image = keras.Input(input_shape)
        pooled = keras.layers.GlobalAveragePooling2D()(keras.layers.Conv2D(4, 3, name="seen")(image))
        return keras.Model(image, pooled, name=name)

    monkeypatch.setattr(keras.applications, "MobileNet", make_small)
    pipeline, inputs = make_photos(size=32, channels=1)
    options = ModelOptions(image="MobileNet", preset="small", freeze_image=True)
    built, written = build_both(pipeline, options)
    assert list_layers(built) == list_layers(written)
    assert [each.trainable for each in built.layers] == [each.trainable for each in written.layers]
    assert built.get_layer("photo_MobileNet").trainable is False
    np.testing.assert_array_equal(run(built, inputs), run(written, inputs))


def test_code_of_a_backbone_says_how_pixels_come_to_it():
    pipeline, _ = make_photos(size=32, channels=4)
    code = write_model(pipeline.schema, pipeline, ModelOptions(image="VGG16", preset="small"))
    start, end = code.index("    # photo"), code.index("    # Together")
    assert (
        code[start:end]
        == """    # photo: an image of 32 × 32, encoded by VGG16.
    # Without alpha.
    x = inputs["photo"][:, :, :, :3]
    # Blue, green, red.
    x = ops.flip(x, axis=-1)
    x = layers.Rescaling(1.0, [-103.939, -116.779, -123.68], name="photo_rescaling")(x)
    backbone = applications.VGG16(
        include_top=False,
        weights=None,
        input_shape=(32, 32, 3),
        pooling="avg",
        name="photo_VGG16",
    )
    x = backbone(x)
    photo = layers.Dense(32, activation="relu", name="photo_dense")(x)

"""
    )


def test_images_too_small_for_a_backbone_are_refused():
    pipeline, _ = make_photos(size=16)
    with pytest.raises(OptionError) as caught:
        build_model(pipeline.schema, pipeline, ModelOptions(image="MobileNet"))
    message = str(caught.value)
    assert mentions(message, "image ModelOptions MobileNet (16, 16, 3)")
    assert mentions(message, "Image(size=224)")
