"""How to build a model: every choice with its default, checked when made.

In: what a caller chose. Out: `ModelOptions`, whose sizes come from a preset where none are given.
"""

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
    """What becomes of a pixel x, 0 to 255: x · scale + offset.

    Attributes:
        scale: One number, or one a channel.
        offset: Likewise.
        is_reversed: Whether the channels come in the order blue, green, red; scaled after that.
    """

    scale: tuple[float, ...] = (1.0,)
    offset: tuple[float, ...] = (0.0,)
    is_reversed: bool = False

    def undo(self) -> Scaling:
        """Return the scaling that gives pixels again; of one with as many scales as offsets."""
        pairs = list(zip(self.scale, self.offset, strict=True))
        return Scaling(tuple(1 / scale for scale, _ in pairs), tuple(-by / scale for scale, by in pairs))


_WITHIN: Final = Scaling()  # a layer of the model itself does it
_AROUND_ZERO: Final = Scaling((1 / 127.5,), (-1.0,))
# The means of ImageNet, blue first, as the weights of these were trained.
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
"""By name, as `keras.applications` has them."""


Preset: TypeAlias = Literal["small", "base"]
Style: TypeAlias = Literal["pool", "gru", "conv", "transformer"]

_OWNER: Final = "ModelOptions"
_PRESETS: Final[Mapping[str, Mapping[str, Any]]] = {
    # Some ten thousand weights and a few tables: for trying things out, and for some thousand records.
    "small": {"units": (64,), "width": 32, "token_width": 16, "filters": 8, "num_blocks": 1, "dropout": 0.2},
    # What two cores train in minutes on some ten thousand records.
    "base": {
        "units": (128, 64),
        "width": 64,
        "token_width": 32,
        "filters": 16,
        "num_blocks": 2,
        "dropout": 0.3,
    },
}
_LEAST: Final = {  # of counts; a step of one number alone cannot be normalised by a mask
    "width": 1,
    "token_width": 2,
    "max_category_width": 1,
    "filters": 1,
    "num_blocks": 1,
    "num_ids": 1,
}
_LARGEST: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Choices of a model that is built. What is None comes from the preset.

    Attributes:
        preset: Sizes that go together: "small" for a quick try, "base" for use.
        text: How tokens become one vector. "pool" is the mean of their embeddings, which trains fastest and
            is hard to beat on short texts; "gru" and "conv" see their order; "transformer" lets each look at
            all others, and wants more records than the rest.
        sequence: Likewise for sequences. "conv", as it sees the order and runs over all steps at once; a
            "gru" takes them one by one, several times slower on processors.
        image: "cnn", a small convolutional network that fits the size of the images; or a model of
            `keras.applications` by name, such as "MobileNetV2".
        image_weights: A file of weights for that model, without its top. If not given, it learns from
            nothing. Nothing is downloaded.
        freeze_image: Whether the weights of that model stay as they are; if not said, they do where a file
            has given them: few records spoil them.
        units: Of the dense layers behind all inputs.
        width: Of the vector that each text, sequence, image and row becomes, and the numbers together.
        token_width: Of the embeddings of tokens and ids. The transformer needs a multiple of 4.
        max_category_width: Of the embeddings of categories, at most; rare ones get less by themselves.
        filters: Of the first convolution of images; the following ones have twice as many each.
        num_blocks: Of the transformer.
        dropout: Which part of the units is left out at random while training.
        l2: What each weight of a dense, convolutional or recurrent layer costs, squared. 0, as the optimizer
            decays weights already.
        num_ids: Rows of the table for whole numbers in sequences that have no vocabulary: those below it
            have a row each, greater ones share. 4096 costs little, and holds hours, counts and small ids.

    Example:
        >>> ModelOptions(preset="small", text="gru").resolved().units
        (64,)
    """

    preset: Preset = "base"
    text: Style = "pool"
    sequence: Style = "conv"
    image: str = "cnn"
    image_weights: str | os.PathLike[str] | None = None
    freeze_image: bool | None = None
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
        for option in ("text", "sequence"):
            check_choice(_OWNER, option, getattr(self, option), get_args(Style))
        self._check_image()
        if self.units is not None:
            object.__setattr__(self, "units", _check_units(self.units))
        for option, least in _LEAST.items():
            if getattr(self, option) is not None:
                number = check_count(_OWNER, option, getattr(self, option), least, _LARGEST)
                object.__setattr__(self, option, number)
        if self.dropout is not None and not 0 <= check_real(_OWNER, "dropout", self.dropout) < 1:
            raise refuse_option(_OWNER, "dropout", "a number from 0 to below 1", show(self.dropout))
        if check_real(_OWNER, "l2", self.l2) < 0:
            raise refuse_option(_OWNER, "l2", "a number from 0 on", show(self.l2))
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
        """Return the options with nothing left open."""
        sizes = {
            option: value for option, value in _PRESETS[self.preset].items() if getattr(self, option) is None
        }
        is_frozen = self.image_weights is not None if self.freeze_image is None else self.freeze_image
        return replace(self, **sizes, freeze_image=is_frozen)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        form = {each.name: getattr(self, each.name) for each in fields(self)}
        weights = None if self.image_weights is None else os.fspath(self.image_weights)
        return {**form, "image_weights": weights, "units": None if self.units is None else list(self.units)}

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> ModelOptions:
        """Read the form that `to_json` makes, or a part of it.

        Raises:
            OptionError: There is an option that is none, or has a value that it cannot have.
        """
        if not isinstance(form, Mapping):
            raise OptionError(_OWNER, expected="a mapping of options", got=show(form))
        check_keywords(map(str, form), (each.name for each in fields(cls)), _OWNER)
        return cls(**form)

    def _check_image(self) -> None:
        if self.freeze_image is not None:
            check_flag(_OWNER, "freeze_image", self.freeze_image)
        if not isinstance(self.image, str) or self.image not in ("cnn", *BACKBONES):
            nearest = find_nearest(self.image, ("cnn", *BACKBONES)) if isinstance(self.image, str) else None
            advice = f"Did you mean {nearest!r}?" if nearest else "MobileNetV2 is a good one to begin with."
            expected = "'cnn' or the name of a model of keras.applications"
            raise refuse_option(_OWNER, "image", expected, show(self.image), advice)
        if self.image == "cnn":
            for option in ("image_weights", "freeze_image"):
                given = getattr(self, option)
                if given:
                    expected = "nothing for image='cnn', which learns from nothing"
                    raise refuse_option(_OWNER, option, expected, show(given), "Say image='MobileNetV2'.")
        if self.image_weights is not None:
            _check_weights(self.image_weights)


def _check_units(units: object) -> tuple[int, ...]:
    if not isinstance(units, list | tuple) or not units:
        expected = "one whole number a dense layer, and one layer at least"
        raise refuse_option(_OWNER, "units", expected, show(units))
    return tuple(check_count(_OWNER, f"units[{i}]", each, most=_LARGEST) for i, each in enumerate(units))


def _check_weights(weights: object) -> None:
    if not isinstance(weights, str | os.PathLike) or not str(weights).endswith(".h5"):
        advice = "Nothing is downloaded: fetch the file for include_top=False, and give its path."
        raise refuse_option(_OWNER, "image_weights", "the path of an .h5 file", show(weights), advice)
    if not Path(weights).is_file():
        raise NoSuchPathError(
            "image_weights", path=weights, field="image_weights", expected="a file", got="none"
        )
