"""Options for building a model: `ModelOptions`, checked when created; a preset gives the default sizes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from penstock.errors import NoSuchPathError, OptionError
from penstock.foundation.option_checks import check_choice, check_count, check_flag, check_real, refuse_option
from penstock.foundation.wording import check_keywords, find_nearest, show


class Scaling(NamedTuple):
    """Scaling of pixels x from 0 to 255: x · scale + offset.

    Attributes:
        scale: One number, or one per channel.
        offset: One number, or one per channel.
        is_reversed: Whether the channels are first brought into the order blue, green, red.
    """

    scale: tuple[float, ...] = (1.0,)
    offset: tuple[float, ...] = (0.0,)
    is_reversed: bool = False

    def undo(self) -> Scaling:
        """Return the inverse scaling; there must be as many scales as offsets."""
        pairs = list(zip(self.scale, self.offset, strict=True))
        return Scaling(tuple(1 / scale for scale, _ in pairs), tuple(-by / scale for scale, by in pairs))


_WITHIN: Final = Scaling()  # a layer of the model itself scales
_AROUND_ZERO: Final = Scaling((1 / 127.5,), (-1.0,))
# The means of ImageNet, blue first, with which the weights of these models were trained.
_REVERSED: Final = Scaling((1.0,), (-103.939, -116.779, -123.68), is_reversed=True)
_MEANS: Final = (0.485, 0.456, 0.406)
_DEVIATIONS: Final = (0.229, 0.224, 0.225)
_STANDARD: Final = Scaling(
    tuple(1 / (255 * each) for each in _DEVIATIONS),
    tuple(-mean / each for mean, each in zip(_MEANS, _DEVIATIONS, strict=True)),
)

BACKBONES: Final[Mapping[str, Scaling]] = {
    **dict.fromkeys((f"ConvNeXt{size}" for size in ("Tiny", "Small", "Base", "Large", "XLarge")), _WITHIN),
    **dict.fromkeys((f"DenseNet{depth}" for depth in (121, 169, 201)), _STANDARD),
    **dict.fromkeys((f"EfficientNetB{number}" for number in range(8)), _WITHIN),
    **dict.fromkeys((f"EfficientNetV2{size}" for size in ("B0", "B1", "B2", "B3", "S", "M", "L")), _WITHIN),
    **dict.fromkeys(("InceptionResNetV2", "InceptionV3", "MobileNet", "MobileNetV2"), _AROUND_ZERO),
    **dict.fromkeys(("MobileNetV3Large", "MobileNetV3Small"), _WITHIN),
    **dict.fromkeys(("NASNetLarge", "NASNetMobile", "Xception"), _AROUND_ZERO),
    **dict.fromkeys((f"ResNet{depth}" for depth in (50, 101, 152)), _REVERSED),
    **dict.fromkeys((f"ResNet{depth}V2" for depth in (50, 101, 152)), _AROUND_ZERO),
    **dict.fromkeys(("VGG16", "VGG19"), _REVERSED),
}
"""Scaling of each model of `keras.applications`, by name."""


Preset: TypeAlias = Literal["small", "base"]
Style: TypeAlias = Literal["pool", "gru", "conv", "transformer"]
TextStyle: TypeAlias = Literal["ngrams", "pool", "gru", "conv", "transformer"]
Numbers: TypeAlias = Literal["bins", "ramps"]
Convolution: TypeAlias = Literal["resnet", "cnn"]

_OWNER: Final = "ModelOptions"
_PRESETS: Final[Mapping[str, Mapping[str, Any]]] = {
    # About ten thousand weights and a few embeddings: for a quick try, and for a few thousand records.
    "small": {
        "units": (64,),
        "width": 32,
        "token_width": 16,
        "filters": 12,
        "num_blocks": 1,
        "dropout": 0.1,
        "members": 4,
    },
    # Two cores train it in minutes on about ten thousand records.
    "base": {
        "units": (128, 64),
        "width": 64,
        "token_width": 32,
        "filters": 24,
        "num_blocks": 2,
        "dropout": 0.1,
        "members": 16,
    },
}
# Options that run.yaml of earlier versions lacks, with the values that give the models of those versions.
_EARLIER: Final[Mapping[str, Any]] = {
    "numbers": "ramps",
    "members": 1,
    "part_outputs": False,
    "text": "pool",
    "pair_weight": 3.0,  # of the first version with pairs
    "pairs_per_word": 8,
    "array": "cnn",
    "share_images": False,
    "image_dropout": 0.0,
    "fine_tune": False,
}
_CNN_FILTERS: Final = {"small": 8, "base": 16}  # as in models of earlier versions
_LEAST: Final = {  # a step of a single number cannot be normalized with a mask
    "width": 1,
    "token_width": 2,
    "max_category_width": 1,
    "filters": 1,
    "num_blocks": 1,
    "num_ids": 1,
    "members": 1,
    "pairs_per_word": 1,
}
_LARGEST: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Options for building a model. The preset gives the values of options that are None.

    Attributes:
        preset: Preset of sizes: "small" for a quick try, "base" for use.
        numbers: Encoder of single numbers. "bins" learns a piecewise linear function of each number, with the
            bins of its `Scale`; "ramps" learns the places where its slope changes, as models of earlier
            versions did.
        members: Number of members of the ensemble that the dense layers after the inputs are: members share
            these layers, and each has its own scale of the layers' inputs and its own output layer. The
            prediction is their mean. 1 for no ensemble.
        part_outputs: Whether each text, sequence, image and array has an output layer of its own beside those
            of the members. Only training uses it: an encoder then learns from the target itself, and not only
            from what the other inputs leave unexplained. Needs an ensemble and a second input.
        text: Encoder of texts. "pool" is the mean of the token embeddings; "ngrams" adds to it a linear
            function of words and pairs of words, directly to the outputs, as in logistic regression; "gru"
            and "conv" use the order of tokens; "transformer" uses attention, and needs more records than the
            others.
        pair_weight: Weight of a pair of words of "ngrams", where that of a word is 1 + 0.5·log(1 + rank).
        pairs_per_word: Number of rows that all pairs share, by a hash, for each word of the vocabulary.
        sequence: Encoder of sequences, with the same choices except "ngrams". "conv" by default, as it uses
            the order and processes all steps at once; a "gru" processes them one by one, several times slower
            on CPUs.
        image: Encoder of images: "resnet", a small residual network that adapts to the image size; "cnn", the
            network without residual blocks of earlier versions; or the name of a model of
            `keras.applications`, such as "MobileNetV2".
        array: Encoder of arrays of two and more dimensions: "resnet" or "cnn".
        share_images: Whether images of the same shape share one encoder, which learns from all of them.
        image_dropout: Share of the outputs of a residual network that dropout sets to 0 during training.
        image_weights: File of pretrained weights for that model, without its top. By default the model is
            trained from scratch. Nothing is downloaded.
        freeze_image: Whether to keep the weights of that model fixed. By default they are fine-tuned if
            `image_weights` is given.
        fine_tune: Whether to train in two stages: first all other layers, with the weights of that model
            fixed, then all weights at a twentieth of the learning rate. The batch normalization of that model
            keeps its statistics in both. By default True if `image_weights` is given without `freeze_image`.
        units: Number of units of each dense layer after the inputs are combined.
        width: Size of the vector of each text, sequence, image and row, and of all numbers together.
        token_width: Size of the embeddings of tokens and ids. A transformer needs a multiple of 4.
        max_category_width: Maximum size of the embeddings of categories; with fewer categories it is smaller.
        filters: Number of filters of the first stage of a residual network, or the first convolution of a
            "cnn"; each further one has twice as many. Images of less than 24 × 24 have a third of them in a
            residual network.
        num_blocks: Number of transformer blocks.
        dropout: Share of the units that dropout sets to 0 during training.
        l2: L2 regularization of the weights of dense, convolutional and recurrent layers. 0 by default, as
            the optimizer already has weight decay.
        num_ids: Number of embedding rows for whole numbers in sequences without a vocabulary: smaller numbers
            have one row each, greater ones share rows. 4096 is inexpensive, and enough for hours, counts and
            small ids.

    Example:
        >>> ModelOptions(preset="small", text="gru").resolved().units
        (64,)
    """

    preset: Preset = "base"
    numbers: Numbers = "bins"
    members: int | None = None
    part_outputs: bool = True
    text: TextStyle = "ngrams"
    pair_weight: float = 3.5
    pairs_per_word: int = 32
    sequence: Style = "conv"
    image: str = "resnet"
    array: Convolution = "resnet"
    share_images: bool = True
    image_dropout: float = 0.2
    image_weights: str | os.PathLike[str] | None = None
    freeze_image: bool | None = None
    fine_tune: bool | None = None
    units: tuple[int, ...] | None = None
    width: int | None = None
    token_width: int | None = None
    max_category_width: int = 32
    filters: int | None = None
    num_blocks: int | None = None
    dropout: float | None = None
    l2: float = 0.0
    num_ids: int = 4096

    def __post_init__(self) -> None:
        check_choice(_OWNER, "preset", self.preset, get_args(Preset))
        check_choice(_OWNER, "numbers", self.numbers, get_args(Numbers))
        check_choice(_OWNER, "text", self.text, get_args(TextStyle))
        check_choice(_OWNER, "sequence", self.sequence, get_args(Style))
        check_choice(_OWNER, "array", self.array, get_args(Convolution))
        for option in ("share_images", "part_outputs"):
            check_flag(_OWNER, option, getattr(self, option))
        self._check_image()
        if self.units is not None:
            object.__setattr__(self, "units", _check_units(self.units))
        for option, least in _LEAST.items():
            if getattr(self, option) is not None:
                number = check_count(_OWNER, option, getattr(self, option), least, _LARGEST)
                object.__setattr__(self, option, number)
        for option in ("dropout", "image_dropout"):
            share = getattr(self, option)
            if (share is not None or option != "dropout") and not 0 <= check_real(_OWNER, option, share) < 1:
                raise refuse_option(_OWNER, option, "a number of at least 0 and below 1", show(share))
        for option in ("l2", "pair_weight"):
            number = getattr(self, option)
            if check_real(_OWNER, option, number) < 0:
                raise refuse_option(_OWNER, option, "a number of at least 0", show(number))
        if (
            self.token_width is not None
            and self.token_width % 4
            and "transformer"
            in (
                self.text,
                self.sequence,
            )
        ):
            expected = "a multiple of 4 for a transformer, whose four heads share it"
            raise refuse_option(_OWNER, "token_width", expected, show(self.token_width))

    def resolved(self) -> ModelOptions:
        """Return the options with all defaults of the preset filled in."""
        sizes = {
            option: value for option, value in _PRESETS[self.preset].items() if getattr(self, option) is None
        }
        if self.image == "cnn" and self.filters is None:
            sizes["filters"] = _CNN_FILTERS[self.preset]
        is_tuned = self.image_weights is not None and self.freeze_image is None
        if self.fine_tune is not None:
            is_tuned = self.fine_tune
        is_frozen = self.image_weights is not None if self.freeze_image is None else self.freeze_image
        return replace(self, **sizes, freeze_image=is_frozen and not is_tuned, fine_tune=is_tuned)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        options = {each.name: getattr(self, each.name) for each in fields(self)}
        weights = None if self.image_weights is None else os.fspath(self.image_weights)
        return {
            **options,
            "image_weights": weights,
            "units": None if self.units is None else list(self.units),
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> ModelOptions:
        """Create options from their JSON form, or a part of it.

        Raises:
            OptionError: There is no such option, or its value is not valid.
        """
        if not isinstance(form, Mapping):
            raise OptionError(_OWNER, expected="a mapping of options", got=show(form))
        check_keywords(map(str, form), (each.name for each in fields(cls)), _OWNER)
        return cls(**form)

    @classmethod
    def from_run(cls, form: Mapping[str, Any]) -> ModelOptions:
        """Create options from the table of a run, which may be that of an earlier version.

        Raises:
            OptionError: There is no such option, or its value is not valid.
        """
        return cls.from_json({**_EARLIER, **form} if isinstance(form, Mapping) else form)

    def _check_image(self) -> None:
        for option in ("freeze_image", "fine_tune"):
            if getattr(self, option) is not None:
                check_flag(_OWNER, option, getattr(self, option))
        if self.fine_tune and (self.image_weights is None or self.freeze_image):
            got = "no weights" if self.image_weights is None else "freeze_image=True"
            advice = "Leave out fine_tune to train the other layers alone, or freeze_image to train all."
            if self.image_weights is None:
                advice = "Pass image_weights='FILE.h5', or leave out fine_tune."
            expected = "image_weights, and weights that are not fixed"
            raise refuse_option(_OWNER, "fine_tune", expected, got, advice)
        choices = (*get_args(Convolution), *BACKBONES)
        if not isinstance(self.image, str) or self.image not in choices:
            nearest = find_nearest(self.image, choices) if isinstance(self.image, str) else None
            advice = f"Did you mean {nearest!r}?" if nearest else "MobileNetV2 is a good first choice."
            expected = "'resnet', 'cnn' or the name of a model of keras.applications"
            raise refuse_option(_OWNER, "image", expected, show(self.image), advice)
        if self.image not in BACKBONES:
            for option in ("image_weights", "freeze_image"):
                given = getattr(self, option)
                if given:
                    expected = f"no value for image={self.image!r}, which has no pretrained weights"
                    advice = "Use a model that has some: --image-encoder MobileNetV2, "
                    advice += "in Python image='MobileNetV2'."
                    raise refuse_option(_OWNER, option, expected, show(given), advice)
        if self.image_weights is not None:
            _check_weights(self.image_weights)


def _check_units(units: object) -> tuple[int, ...]:
    if not isinstance(units, list | tuple) or not units:
        expected = "one whole number per dense layer, and at least one layer"
        raise refuse_option(_OWNER, "units", expected, show(units))
    return tuple(check_count(_OWNER, f"units[{i}]", each, most=_LARGEST) for i, each in enumerate(units))


def _check_weights(weights: object) -> None:
    if not isinstance(weights, str | os.PathLike) or not str(weights).endswith(".h5"):
        advice = "Weights are not downloaded: get the file for include_top=False, and pass its path."
        raise refuse_option(_OWNER, "image_weights", "the path of an .h5 file", show(weights), advice)
    if not Path(weights).is_file():
        raise NoSuchPathError(
            "image_weights", path=weights, field="image_weights", expected="a file", got="no file"
        )
