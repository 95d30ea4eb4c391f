"""The options `image_size` and `augment` as settings of the images of a run."""

import pytest

from penstock.errors import OptionError
from penstock.fields import Image as ImageField
from penstock.fields import Number
from penstock.jobs.train.image_fields import check_image_encoder, refuse_image_options, set_images
from penstock.model.options import ModelOptions
from penstock.schema.schema import Schema
from penstock.training.options import TrainOptions
from penstock.transform import Augment, Image
from penstock.transform.kinds import load_override
from raising import raises_with

SCHEMA = Schema(
    {"front": ImageField(), "side": ImageField(), "mask": ImageField(role="target"), "age": Number()}
)


def load(fields, name="front"):
    return load_override(name, SCHEMA[name], fields[name])


def test_settings_are_unchanged_without_options():
    assert set_images(SCHEMA, {"front": "image"}, TrainOptions()) == {"front": "image"}


def test_options_are_set_for_every_image_that_is_an_input():
    fields = set_images(SCHEMA, {"age": None}, TrainOptions(image_size=48, augment="none"))
    assert set(fields) == {"front", "side", "age"}
    assert load(fields) == load(fields, "side") == Image(size=(48, 48), augment=None)


@pytest.mark.parametrize(
    "given", [{"channels": 1}, {"kind": "image", "channels": 1}, Image(channels=1), Image(8, channels=1)]
)
def test_other_settings_of_an_image_are_kept(given):
    options = TrainOptions(image_size=(48, 64), augment="flip")
    found = load(set_images(SCHEMA, {"front": given}, options))
    assert found == Image(size=(48, 64), channels=1, augment=Augment(crop=0.1, brightness=0.1, flip=0.5))


def test_size_alone_leaves_the_augmentation():
    fields = set_images(SCHEMA, {"side": Image(augment=True)}, TrainOptions(image_size=8))
    assert load(fields).augment == Augment.light()
    assert load(fields, "side").augment == Augment.usual()


def test_data_without_image_inputs_is_refused():
    for option in ({"image_size": 8}, {"augment": "none"}):
        with pytest.raises(OptionError) as caught:
            set_images(SCHEMA.select(["mask", "age"]), {}, TrainOptions(**option))
        assert caught.value.field == next(iter(option))


def test_pretrained_weights_need_images_and_fixed_weights_need_a_file(tmp_path):
    path = tmp_path / "notop.h5"
    path.write_bytes(b"")
    given = ModelOptions(image="VGG16", image_weights=path)
    random = ModelOptions(image="VGG16", freeze_image=True)
    for options in (None, ModelOptions(), given, ModelOptions(image="VGG16", freeze_image=False)):
        check_image_encoder(SCHEMA, options)
    for options, field in ((given, "image_weights"), (random, "freeze_image")):
        with raises_with(OptionError, field=field, expected="data with an image as an input"):
            check_image_encoder(SCHEMA.select(["mask", "age"]), options)
    with raises_with(OptionError, field="freeze_image", got="no weights") as caught:
        check_image_encoder(SCHEMA, random)
    assert "--image-weights FILE.h5" in caught.value.advice


def test_images_that_are_left_out_stay_so():
    fields = {"front": None, "side": None}  # as in run.yaml of a run whose trials left the images out
    assert set_images(SCHEMA, fields, TrainOptions(image_size=8)) == fields


def test_fitted_pipeline_and_options_of_images_are_refused():
    refuse_image_options({"epochs": 3, "augment": None})
    with pytest.raises(OptionError) as caught:
        refuse_image_options({"image_size": 8})
    assert caught.value.field == "image_size"


@pytest.mark.parametrize("size", [0, -1, "64", 1.5, (1, 2, 3), (8, 0), True, 1 << 20])
def test_size_that_is_not_valid_is_refused(size):
    with pytest.raises(OptionError) as caught:
        TrainOptions(image_size=size)
    assert caught.value.field == "image_size"


def test_size_in_json_is_a_pair():
    assert TrainOptions(image_size=8).to_json()["image_size"] == [8, 8]
    assert TrainOptions(image_size=[8, 9]).image_size == (8, 9)
    assert TrainOptions().to_json()["image_size"] is None
