"""Options of `Image`: refused ones, their JSON and YAML, and images in a pipeline."""

import json

import numpy as np
import pytest

import penstock as ps
from fit_sources import fit, strings
from image_files import jpeg, opened, png, scene
from penstock.errors import OptionError, SchemaError
from penstock.fields import Image as ImageField
from penstock.transform import Augment, Draws, Image, Output
from raising import containing, raises_with

COLUMN = strings([png(scene(40, 56, seed)) for seed in range(3)])
EVERYTHING = {"flip": 0.5, "crop": 0.2, "brightness": 0.3, "contrast": 0.3, "saturation": 0.3, "cutout": 0.3}


def make(**options):
    return fit(Image(**{"size": (12, 10), **options}), ImageField(), COLUMN)


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"size": 0}, "size Image 1 16384 0"),
        ({"size": (3,)}, "size Image (3,)"),
        ({"size": "48x64"}, "size Image '48x64'"),
        ({"resize": "fit"}, "resize Image 'stretch' 'pad' 'crop' 'random' 'fit'"),
        ({"channels": 2}, "channels Image 1 3 4 2"),
        ({"channels": 5}, "channels Image 1 3 4 5"),
        ({"channels": 3.0}, "channels Image 1 3 4 3.0"),
        ({"channels": True}, "channels Image 1 3 4 True"),
        ({"dtype": "int8"}, "dtype Image 'uint8' 'float32' 'int8'"),
        ({"antialias": 1}, "antialias Image True False 1"),
        ({"orient": None}, "orient Image True False None"),
        ({"fill": 256}, "fill Image 0 255 256"),
        ({"fill": 0.5}, "fill Image 0 255 0.5"),
        ({"fill": (1, 2)}, "fill Image 3 (1, 2)"),
        ({"missing": 0}, "missing Image 'error' 'fill' 0"),
        ({"max_pixels": 0}, "max_pixels Image 1 1099511627776 0"),
        ({"scale": 1 / 255}, "scale Image dtype=\"float32\" dtype='uint8'"),
        ({"dtype": "float32", "deviation": 0}, "deviation Image 0 0"),
        ({"dtype": "float32", "mean": (1, 2)}, "mean Image 3 (1, 2)"),
        ({"dtype": "float32", "scale": 0}, "scale Image 0 0"),
        ({"formats": "jpg"}, "formats Image 'jpeg' 'png' 'webp' 'gif' 'bmp' 'jpg' 'jpeg'"),
        ({"resize": "pad", "augment": {"area": (0.3, 1)}}, "augment.area Image"),
        ({"formats": ("tiff",)}, "formats Image 'jpeg' 'png' 'webp' 'gif' 'bmp'"),
        ({"formats": ()}, "formats Image 'jpeg' 'png' 'webp' 'gif' 'bmp'"),
        ({"augment": {"flip": 2}}, "flip Augment 0 1 2"),
        ({"augment": 3}, "augment Image Augment True None 3"),
    ],
)
def test_options_that_cannot_be_are_refused(options, facts):
    with raises_with(OptionError, facts):
        Image(**options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"size": (9, 7), "resize": "random", "augment": EVERYTHING},
        {"size": 8, "dtype": "float32", "scale": 1 / 255, "mean": (1, 2, 3), "deviation": 2.5},
        {"augment": True, "formats": ("gif",), "fill": (1, 2, 3), "missing": "fill", "channels": np.int64(3)},
        {"antialias": False, "draft": False, "orient": False, "max_pixels": 9999, "dtype": np.float32},
    ],
)
def test_json_comes_back_as_it_was(options):
    for transform in (Image(**options), make(**options)):
        form = json.loads(json.dumps(transform.to_json()))
        again = Image.from_json(form)
        assert again == transform
        assert again.to_json() == form
    if "augment" in options:
        assert isinstance(again.augment, Augment)
        assert form["augment"]["flip"] == 0.5


def test_json_that_is_wrong_says_where():
    with pytest.raises(SchemaError, match=r"\$\.augment\.flips?"):
        Image.from_json({"kind": "image", "augment": {"flips": 1}})
    with raises_with(SchemaError, "0 1", field="$.augment.crop", got="7"):
        Image.from_json({"kind": "image", "augment": {"crop": 7}})
    form = make().to_json()
    for size in ([0, 5], [5], [5, 5, 5], [1 << 20, 5]):
        with pytest.raises(SchemaError, match=r"\$\.fitted\.size"):
            Image.from_json({**form, "fitted": {**form["fitted"], "size": size}})
    with raises_with(SchemaError, field="$.formats", expected=containing("some", "'jpeg'", "'png'")):
        Image.from_json({**form, "fitted": {**form["fitted"], "formats": ["exe"]}})


@pytest.fixture
def photos(tmp_path):
    samples = [{"photo": jpeg(scene(30, 40, i)), "label": i % 2} for i in range(8)]
    return ps.convert(samples, tmp_path / "photos", target="label", fields={"photo": ImageField()})


def test_image_fields_are_decoded_by_default(photos):
    pipeline = ps.Pipeline.fit(photos)
    assert isinstance(pipeline.transforms["photo"], Image)
    assert pipeline.inputs["photo"] == Output("photo", "uint8", (30, 40, 3))


def test_options_come_as_a_dict_too(photos):
    options = {"size": [16, 20], "augment": {"flip": 1.0}, "dtype": "float32"}
    for form in (options, {"kind": "image", **options}):
        pipeline = ps.Pipeline.fit(photos, photo=form)
        transform = pipeline.transforms["photo"]
        assert transform.augment == Augment(flip=1.0)
        assert pipeline.inputs["photo"] == Output("photo", "float32", (16, 20, 3))
    with raises_with((OptionError, SchemaError), "0 1", field="photo", got="3"):
        ps.Pipeline.fit(photos, photo={"augment": {"flip": 3}})


def test_options_come_from_yaml_too(photos, tmp_path):
    path = tmp_path / "feed.yaml"
    path.write_text(
        "fields:\n  photo: {size: [16, 20], resize: random, augment: {flip: 0.5, area: [0.2, 1]}}\n"
    )
    transform = ps.Pipeline.fit_config(photos, path).transforms["photo"]
    assert transform.augment == Augment(flip=0.5, area=(0.2, 1.0))
    assert (transform.size, transform.resize) == ((16, 20), "random")
    path.write_text("fields:\n  photo:\n    augment:\n      flip: 3\n")
    with raises_with((OptionError, SchemaError), "0 1", field="photo", got="3"):
        ps.Pipeline.fit_config(photos, path)


def test_pipeline_comes_back_from_its_file_and_gives_the_same(photos, tmp_path):
    pipeline = ps.Pipeline.fit(photos, photo=Image(size=16, resize="random", augment=True))
    pipeline.save(tmp_path / "pipeline.json")
    again = ps.Pipeline.load(tmp_path / "pipeline.json")
    assert again.fingerprint() == pipeline.fingerprint()
    columns = photos["train"].columns() if "train" in photos.splits else photos["all"].columns()
    count = len(columns["photo"])
    first, second = (
        each.apply(columns, count, Draws(3, 0, np.arange(count)))[0]["photo"] for each in (pipeline, again)
    )
    assert np.array_equal(first, second)


def test_map_takes_images_as_they_are_stored(photos):
    def sizes(columns):
        return {"bytes": np.array([len(each) for each in columns["photo"]], np.int64)}

    pipeline = ps.Pipeline.fit(photos, photo=Image(size=16))
    pipeline = pipeline.map(sizes, fields=["photo"], outputs=[Output("bytes", "int64")], keep=True)
    split = photos[photos.splits[0]]
    inputs, _ = next(iter(split.loader(pipeline, batch_size=3, num_threads=0)))
    assert inputs["photo"].shape == (3, 16, 16, 3)
    assert inputs["bytes"].tolist() == [len(split[row]["photo"]) for row in range(3)]


def test_pixels_of_a_photo_are_those_that_pillow_shows(photos):
    split = photos[photos.splits[0]]
    loader = split.loader(ps.Pipeline.fit(photos), batch_size=4, num_threads=0, augment=False)
    for batch, start in zip(loader, range(0, 8, 4), strict=False):
        for at, found in enumerate(batch[0]["photo"]):
            wanted = opened(split[start + at]["photo"])
            assert np.abs(found.astype(int) - wanted.astype(int)).max() <= 1


def test_numbers_of_channels_come_as_arrays_too():
    given = Image(dtype="float32", mean=np.array([1.0, 2.0, 3.0]), deviation=np.array(2.0))
    assert (given.mean, given.deviation) == ((1.0, 2.0, 3.0), 2.0)


def test_nothing_is_augmented_where_every_change_is_none():
    assert not Image(augment=Augment()).augments
    assert not Image(augment=False).augments
    assert Image(augment=Augment(cutout=0.1)).augments
    assert Image(resize="random").augments


def test_fitted_size_that_is_not_the_size_is_refused():
    form = make().to_json()
    form["fitted"]["size"] = [12, 11]
    with raises_with(SchemaError, field="$.fitted.size", expected=containing("(12, 10)"), got="(12, 11)"):
        Image.from_json(form)
