"""The options `image_size` and `augment` as settings of the images of a run."""

import keras
import pytest

import penstock as ps
from image_datasets import photo, write_photos
from penstock.errors import OptionError
from penstock.fields import Image as ImageField
from penstock.fields import Number
from penstock.jobs.train.train import TrainJob, plan_training, tune
from penstock.schema.schema import Schema
from penstock.settings.model import ModelOptions
from penstock.settings.training import TrainCall, TrainOptions
from penstock.transform import Augment, Image
from penstock.transform.kinds import load_override
from penstock.tuning.pipeline_fitter import check_image_encoder, refuse_image_options, set_images
from raising import raises_with
from training_data import Listener

SCHEMA = Schema(
    {"front": ImageField(), "side": ImageField(), "mask": ImageField(role="target"), "age": Number()}
)


def load(fields, name="front"):
    return load_override(name, SCHEMA[name], fields[name])


def test_images_without_settings_are_augmented_lightly_for_a_model_that_is_built_alone():
    fields = {"front": "image", "age": None}
    assert load(set_images(SCHEMA, fields, TrainOptions(), is_built=True)) == Image()
    assert load(set_images(SCHEMA, {}, TrainOptions(), is_built=True)) == Image(augment=Augment.light())
    assert set_images(SCHEMA, {"age": None}, TrainOptions(), is_built=False) == {"age": None}
    asked = set_images(SCHEMA, {}, TrainOptions(augment="light"), is_built=False)
    assert load(asked) == Image(augment=Augment.light())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"channels": 1}, Image(channels=1, augment=Augment.light())),
        ({"augment": None}, Image()),
        ({"augment": {"flip": 1.0}}, Image(augment=Augment(flip=1.0))),
        ({"kind": "image", "channels": 1}, Image(channels=1)),  # as run.yaml of earlier runs has it
        (Image(channels=1), Image(channels=1)),
    ],
)
def test_augmentation_of_an_image_is_the_default_unless_a_transform_or_another_one_is_given(given, expected):
    assert load(set_images(SCHEMA, {"front": given}, TrainOptions(), is_built=True)) == expected


def test_options_are_set_for_every_image_that_is_an_input():
    fields = set_images(SCHEMA, {"age": None}, TrainOptions(image_size=48, augment="none"), is_built=True)
    assert set(fields) == {"front", "side", "age"}
    assert load(fields) == load(fields, "side") == Image(size=(48, 48), augment=None)


@pytest.mark.parametrize(
    "given", [{"channels": 1}, {"kind": "image", "channels": 1}, Image(channels=1), Image(8, channels=1)]
)
def test_other_settings_of_an_image_are_kept(given):
    options = TrainOptions(image_size=(48, 64), augment="flip")
    found = load(set_images(SCHEMA, {"front": given}, options, is_built=True))
    assert found == Image(size=(48, 64), channels=1, augment=Augment(crop=0.1, brightness=0.1, flip=0.5))


def test_size_alone_leaves_the_augmentation():
    fields = set_images(SCHEMA, {"side": Image(augment=True)}, TrainOptions(image_size=8), is_built=True)
    assert load(fields).augment == Augment.light()
    assert load(fields, "side").augment == Augment.usual()


def test_data_without_image_inputs_is_refused():
    for option in ({"image_size": 8}, {"augment": "none"}):
        with pytest.raises(OptionError) as caught:
            set_images(SCHEMA.select(["mask", "age"]), {}, TrainOptions(**option), is_built=True)
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
    assert "ModelOptions(image_weights='FILE.h5')" in caught.value.advice


def test_images_that_are_left_out_stay_so():
    fields = {"front": None, "side": None}  # as in run.yaml of a run whose trials left the images out
    assert set_images(SCHEMA, fields, TrainOptions(image_size=8), is_built=True) == fields


def test_fitted_pipeline_and_options_of_images_are_refused():
    refuse_image_options(TrainOptions(epochs=3, augment=None))
    with pytest.raises(OptionError) as caught:
        refuse_image_options(TrainOptions(image_size=8))
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


def prepare(photos, folder, **more):
    """Return the plan, and the notes on it, as they are before the first step."""
    listener, fields = Listener(), more.pop("fields", {})
    options = {"epochs": 1, "batch_size": 8, "parts": "all", "target": "y", **more}
    job = TrainJob(data=photos, fields=fields, options=TrainCall(**options))
    return tune(job, plan_training(job, folder), folder, listener)[0], listener.notes


def make_model():
    return keras.Sequential()  # it is not called before the first step


@pytest.mark.parametrize(
    ("more", "expected", "num_notes"),
    [
        ({}, Augment.light(), 1),
        ({"augment": "light"}, Augment.light(), 0),
        ({"augment": "none"}, None, 0),
        ({"fields": {"image": {"augment": None}}}, None, 0),
        ({"fields": {"image": Image(augment={"flip": 1.0})}}, Augment(flip=1.0), 0),
        ({"model": make_model}, None, 0),
        ({"model": make_model, "augment": "light"}, Augment.light(), 0),
    ],
)
def test_training_says_that_it_augments_images_of_a_model_that_it_builds(
    photos, more, expected, num_notes, tmp_path
):
    plan, notes = prepare(photos, tmp_path / "run", **more)
    assert plan.pipeline.transforms["image"].augment == expected
    assert ("image" in plan.pipeline.notes) == (expected is not None)
    assert plan.config.fields["image"]["augment"] == (expected and expected.to_json())
    assert len(notes) == num_notes
    assert all("augment='none'" in note and "image" in note for note in notes)


def test_pipeline_that_is_given_is_used_without_a_note(photos, tmp_path):
    plan, notes = prepare(photos, tmp_path / "run", pipeline=ps.Pipeline.fit(photos))
    assert not plan.pipeline.assembly.augments
    assert notes == []


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = write_photos(tmp_path_factory.mktemp("photos"), [photo(i) for i in range(12)])
    return ps.open(folder, target="y", fields={"image": ImageField()}, id="n")
