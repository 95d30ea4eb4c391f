"""Choices of a model: what is refused, what presets fill in, and the JSON form."""

import json

import pytest

from penstock.errors import NoSuchPathError, OptionError
from penstock.model.options import ModelOptions


def test_presets_fill_in_what_is_not_given():
    base, small = ModelOptions().resolved(), ModelOptions(preset="small").resolved()
    assert (base.units, base.width, base.token_width) == ((128, 64), 64, 32)
    assert (small.units, small.width, small.token_width) == ((64,), 32, 16)
    assert ModelOptions(preset="small", units=[8, 4], dropout=0).resolved().units == (8, 4)
    assert ModelOptions(preset="small", dropout=0).resolved().dropout == 0
    assert None not in (base.filters, base.num_blocks, base.dropout, base.freeze_image)
    assert base.resolved() == base


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "huge"}, "preset of ModelOptions: expected 'small' or 'base', got 'huge'."),
        (
            {"text": "lstm"},
            "text of ModelOptions: expected 'pool', 'gru', 'conv' or 'transformer', got 'lstm'.",
        ),
        (
            {"image": "MobileNet2"},
            "image of ModelOptions: expected 'cnn' or the name of a model of keras.applications, got "
            "'MobileNet2'. Did you mean 'MobileNetV2'?",
        ),
        (
            {"image": 7},
            "image of ModelOptions: expected 'cnn' or the name of a model of keras.applications, got 7. "
            "MobileNetV2 is a good one to begin with.",
        ),
        (
            {"image": "VGG16", "image_weights": "imagenet"},
            "image_weights of ModelOptions: expected the path of an .h5 file, got 'imagenet'. Nothing is "
            "downloaded: fetch the file for include_top=False, and give its path.",
        ),
        (
            {"image_weights": "notop.h5"},
            "image_weights of ModelOptions: expected nothing for image='cnn', which learns from nothing, got "
            "'notop.h5'. Say image='MobileNetV2'.",
        ),
        (
            {"units": ()},
            "units of ModelOptions: expected one whole number a dense layer, and one layer at least, got ().",
        ),
        (
            {"units": (8, 0)},
            "units[1] of ModelOptions: expected a whole number from 1 to 1048576, got 0.",
        ),
        ({"dropout": 1.0}, "dropout of ModelOptions: expected a number from 0 to below 1, got 1.0."),
        ({"l2": -1e-3}, "l2 of ModelOptions: expected a number from 0 on, got -0.001."),
        ({"width": 1.5}, "width of ModelOptions: expected a whole number from 1 to 1048576, got 1.5."),
        (
            {"text": "transformer", "token_width": 6},
            "token_width of ModelOptions: expected a multiple of 4 for a transformer, whose four heads share "
            "it, got 6.",
        ),
    ],
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(OptionError) as caught:
        ModelOptions(**options)
    assert str(caught.value) == message


def test_weights_that_are_not_there_are_refused(tmp_path):
    with pytest.raises(NoSuchPathError) as caught:
        ModelOptions(image="VGG16", image_weights=tmp_path / "notop.h5")
    assert str(caught.value) == f"{tmp_path}/notop.h5: image_weights: expected a file, got none."


def test_weights_from_a_file_stay_as_they_are_unless_said_otherwise(tmp_path):
    path = tmp_path / "notop.h5"
    path.write_bytes(b"")
    given = ModelOptions(image="VGG16", image_weights=path)
    assert given.resolved().freeze_image is True
    assert ModelOptions(image="VGG16").resolved().freeze_image is False
    assert (
        ModelOptions(image="VGG16", image_weights=path, freeze_image=False).resolved().freeze_image is False
    )


def test_json_form_gives_the_options_back(tmp_path):
    path = tmp_path / "notop.h5"
    path.write_bytes(b"")
    options = ModelOptions(image="VGG16", image_weights=str(path), units=(8, 4), text="gru", l2=0.5)
    form = json.loads(json.dumps(options.to_json()))
    assert ModelOptions.from_json(form) == options
    assert ModelOptions.from_json({"preset": "small"}) == ModelOptions(preset="small")
    assert ModelOptions.from_json(json.loads(json.dumps(options.resolved().to_json()))) == options.resolved()


def test_json_form_with_an_unknown_option_names_the_nearest():
    with pytest.raises(OptionError) as caught:
        ModelOptions.from_json({"droput": 0.1})
    assert str(caught.value).startswith("option 'droput': expected an option of ModelOptions")
    assert caught.value.advice == "Did you mean 'dropout'?"
    with pytest.raises(OptionError, match="expected a mapping of options, got 3"):
        ModelOptions.from_json(3)
