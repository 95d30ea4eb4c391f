"""Choices of a model: what is refused, what presets fill in, and the JSON form."""

import json

import pytest

from penstock.errors import NoSuchPathError, OptionError
from penstock.model.options import ModelOptions
from raising import mentions, raises_with


def test_presets_fill_in_what_is_not_given():
    base, small = ModelOptions().resolved(), ModelOptions(preset="small").resolved()
    assert (base.units, base.width, base.token_width) == ((128, 64), 64, 32)
    assert (small.units, small.width, small.token_width) == ((64,), 32, 16)
    assert ModelOptions(preset="small", units=[8, 4], dropout=0).resolved().units == (8, 4)
    assert ModelOptions(preset="small", dropout=0).resolved().dropout == 0
    assert None not in (base.filters, base.num_blocks, base.dropout, base.freeze_image)
    assert base.resolved() == base


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"preset": "huge"}, "preset ModelOptions 'small' 'base' 'huge'"),
        ({"text": "lstm"}, "text ModelOptions 'pool' 'gru' 'conv' 'transformer' 'lstm'"),
        (
            {"image": "MobileNet2"},
            "image ModelOptions 'resnet' 'cnn' keras.applications 'MobileNet2' 'MobileNetV2'",
        ),
        ({"image": 7}, "image ModelOptions 'resnet' 'cnn' keras.applications 7 MobileNetV2"),
        (
            {"image": "VGG16", "image_weights": "imagenet"},
            "image_weights ModelOptions .h5 'imagenet' include_top=False",
        ),
        ({"image_weights": "notop.h5"}, "image_weights ModelOptions 'notop.h5' image='MobileNetV2'"),
        ({"units": ()}, "units ModelOptions"),
        ({"units": (8, 0)}, "units[1] ModelOptions 1 1048576 0"),
        ({"dropout": 1.0}, "dropout ModelOptions 0 1 1.0"),
        ({"l2": -1e-3}, "l2 ModelOptions 0 -0.001"),
        ({"width": 1.5}, "width ModelOptions 1 1048576 1.5"),
        ({"text": "transformer", "token_width": 6}, "token_width ModelOptions 4 6"),
    ],
)
def test_options_that_cannot_be_are_refused(options, facts):
    with raises_with(OptionError, facts):
        ModelOptions(**options)


def test_weights_that_do_not_exist_are_refused(tmp_path):
    with raises_with(NoSuchPathError, f"{tmp_path}/notop.h5 image_weights"):
        ModelOptions(image="VGG16", image_weights=tmp_path / "notop.h5")


def test_weights_from_a_file_are_fine_tuned_by_default(tmp_path):
    path = tmp_path / "notop.h5"
    path.write_bytes(b"")
    given = ModelOptions(image="VGG16", image_weights=path)
    assert (given.resolved().freeze_image, given.resolved().fine_tune) == (False, True)
    frozen = ModelOptions(image="VGG16", image_weights=path, freeze_image=True).resolved()
    assert (frozen.freeze_image, frozen.fine_tune) == (True, False)
    earlier = ModelOptions.from_run({"image": "VGG16", "image_weights": str(path), "freeze_image": True})
    assert (earlier.resolved().freeze_image, earlier.resolved().fine_tune) == (True, False)
    with raises_with(OptionError, field="fine_tune", got="no weights") as caught:
        ModelOptions(image="VGG16", fine_tune=True)
    assert "image_weights='FILE.h5'" in caught.value.advice
    with raises_with(OptionError, field="fine_tune", got="freeze_image=True") as caught:
        ModelOptions(image="VGG16", image_weights=path, freeze_image=True, fine_tune=True)
    assert "image_weights" not in caught.value.advice
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
    with raises_with(OptionError, "'droput' ModelOptions") as caught:
        ModelOptions.from_json({"droput": 0.1})
    assert mentions(caught.value.advice, "'dropout'")
    with raises_with(OptionError, got="3"):
        ModelOptions.from_json(3)


def test_pairs_of_words_of_earlier_runs_stay_as_they_were():
    earlier = ModelOptions.from_run({"text": "ngrams"})
    assert (earlier.pair_weight, earlier.pairs_per_word) == (3.0, 8)
    stored = ModelOptions.from_run(ModelOptions().to_json())
    assert (stored.pair_weight, stored.pairs_per_word) == (3.5, 32)
