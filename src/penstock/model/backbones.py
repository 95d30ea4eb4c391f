"""How pixels are scaled: for each model of `keras.applications`, as its weights were trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


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
"""Scaling of each model of `keras.applications`, by its name; `settings/model.py` lists the names."""
