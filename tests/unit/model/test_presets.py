"""Options of a model: refused ones, options that presets fill in, and the JSON form."""

import json

import pytest

from penstock.errors import NoSuchPathError, OptionError, SchemaError
from penstock.foundation.json_form import Document, JsonValue
from penstock.model.feature import BACKBONES
from penstock.model.presets import fill_in_preset, read_model_options
from penstock.settings import model
from penstock.settings.model import ModelOptions
from raising import mentions, raises_with


def test_presets_fill_in_options_that_are_not_given():
    base, small = fill_in_preset(ModelOptions()), fill_in_preset(ModelOptions(preset="small"))
    assert (base.units, base.width, base.token_width) == ((128, 64), 64, 32)
    assert (small.units, small.width, small.token_width) == ((64,), 32, 16)
    assert fill_in_preset(ModelOptions(preset="small", units=[8, 4])).units == (8, 4)
    assert fill_in_preset(ModelOptions(preset="small", dropout=0)).dropout == 0
    assert None not in (base.filters, base.num_blocks, base.dropout, base.freeze_image)
    assert fill_in_preset(base) == base


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"preset": "huge"}, "preset 'small' 'base' 'huge'"),
        ({"text": "lstm"}, "text 'pool' 'gru' 'conv' 'transformer' 'lstm'"),
        (
            {"image": "MobileNet2"},
            "image 'resnet' 'cnn' keras.applications 'MobileNet2' 'MobileNetV2'",
        ),
        ({"image": 7}, "image 'resnet' 'cnn' keras.applications 7 MobileNetV2"),
        (
            {"image": "VGG16", "image_weights": "imagenet"},
            "image_weights .h5 'imagenet' include_top=False",
        ),
        ({"image_weights": "notop.h5"}, "image_weights 'notop.h5' image='MobileNetV2'"),
        ({"units": ()}, "units"),
        ({"units": (8, 0)}, "units[1] 1 1048576 0"),
        ({"dropout": 1.0}, "dropout 0 1 1.0"),
        ({"l2": -1e-3}, "l2 0 -0.001"),
        ({"width": 1.5}, "width 1 1048576 1.5"),
        ({"text": "transformer", "token_width": 6}, "token_width 4 6"),
    ],
)
def test_options_that_cannot_be_are_refused(options, facts):
    with raises_with(OptionError, facts):
        ModelOptions(**options)


def test_weights_that_do_not_exist_are_refused(tmp_path):
    with raises_with(NoSuchPathError, f"{tmp_path}/notop.h5 image_weights"):
        ModelOptions(image="VGG16", image_weights=tmp_path / "notop.h5")


def find_stages(**options):
    """Return whether the image encoder is fixed, and whether it is fine-tuned."""
    filled = fill_in_preset(ModelOptions(image="VGG16", **options))
    return filled.freeze_image, filled.fine_tune


def read(**table):
    return read_model_options(JsonValue(table, Document("run", root="model")))


def test_weights_from_a_file_are_fine_tuned_by_default(tmp_path):
    path = tmp_path / "notop.h5"
    path.write_bytes(b"")
    assert find_stages(image_weights=path) == (False, True)
    assert find_stages(image_weights=path, freeze_image=True) == (True, False)
    assert find_stages(image_weights=path, freeze_image=False) == (False, False)
    assert find_stages() == (False, False)
    earlier = fill_in_preset(read(image="VGG16", image_weights=str(path), freeze_image=True))
    assert (earlier.freeze_image, earlier.fine_tune) == (True, False)
    with raises_with(OptionError, field="fine_tune", got="no weights") as caught:
        ModelOptions(image="VGG16", fine_tune=True)
    assert "image_weights='FILE.h5'" in caught.value.advice
    with raises_with(OptionError, field="fine_tune", got="fixed weights") as caught:
        ModelOptions(image="VGG16", image_weights=path, freeze_image=True, fine_tune=True)
    assert caught.value.advice == "Leave one out: `fine_tune=True` or `freeze_image=True`."


def test_json_form_gives_the_options_back(tmp_path):
    path = tmp_path / "notop.h5"
    path.write_bytes(b"")
    options = ModelOptions(image="VGG16", image_weights=path, units=(8, 4), text="gru", l2=0.5)
    for each in (options, fill_in_preset(options)):
        assert read(**json.loads(json.dumps(each.to_json()))).to_json() == each.to_json()


def test_table_with_an_unknown_option_names_the_nearest():
    with raises_with(SchemaError, field="model.droput") as caught:
        read(droput=0.1)
    assert mentions(caught.value.advice, "'dropout'")
    with raises_with(SchemaError, "model 3"):
        read_model_options(JsonValue(3, Document("run", root="model")))


def test_pairs_of_words_of_earlier_runs_stay_as_they_were():
    earlier = read(text="ngrams")
    assert (earlier.pair_weight, earlier.pairs_per_word) == (3.0, 8)
    stored = read(**ModelOptions().to_json())
    assert (stored.pair_weight, stored.pairs_per_word) == (3.5, 32)


def test_every_image_encoder_with_weights_has_a_scaling_of_pixels():
    assert sorted(BACKBONES) == sorted(model.BACKBONES)
