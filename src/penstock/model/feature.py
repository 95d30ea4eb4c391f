"""The kind of each input of a pipeline: number, code, row, sequence or image, which selects its encoder.

In: a fitted pipeline. Out: `Feature`s. The transform that made an input decides its kind; for inputs of a
user's function, dtype and shape do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from penstock.errors import OptionError
from penstock.model.blueprint import make_stem
from penstock.schema.array import Sequence
from penstock.transform.base import Transform
from penstock.transform.category import Encode
from penstock.transform.date import ExpandDate
from penstock.transform.image import Image
from penstock.transform.number import Scale
from penstock.transform.output import STRINGS, Output
from penstock.transform.padding import Padded
from penstock.transform.pipeline import Pipeline, refuse_no_inputs
from penstock.transform.text import Tokenize

FeatureKind: TypeAlias = Literal["number", "code", "row", "ids", "steps", "image", "array"]

_WHOLE_DTYPES: Final = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@dataclass(frozen=True)
class Feature:
    """An input of a model, with the attributes that its encoder needs.

    Attributes:
        name: Name of the input.
        kind: "number": one number per record. "code": one code per record, or one per column. "row": a
            vector. "ids": a sequence of tokens or values. "steps": a sequence of numbers. "image": pixels.
            "array": a tensor of several dimensions.
        output: Output of the pipeline.
        sizes: Number of codes, for each column of codes.
        padding: Padding value of a sequence.
        mask: Name of the input that is True for steps that are not padding, or None.
        is_text: Whether the ids are tokens.
        is_scaled: Whether the numbers need no scaling: a transform scaled them, or they are zeros and ones.
        pixels: Scaling from pixels, 0 to 255, to the numbers of the image, if it is known.
        edges: Edges of the bins of a number, ascending; fewer than two for a number without bins.
        num_texts: Number of texts that a tokenizer was fitted to, or None where it is unknown.
    """

    name: str
    kind: FeatureKind
    output: Output
    sizes: tuple[int, ...] = ()
    padding: float = 0
    mask: str | None = None
    is_text: bool = False
    is_scaled: bool = False
    pixels: Scaling | None = None
    edges: tuple[float, ...] = ()
    num_texts: int | None = None

    @property
    def stem(self) -> str:
        """Prefix of the names of its variables and layers."""
        return make_stem(self.name)

    @property
    def is_whole(self) -> bool:
        """Whether the elements are whole numbers."""
        return self.output.dtype in _WHOLE_DTYPES


def find_features(pipeline: Pipeline) -> list[Feature]:
    """Return the features of a pipeline, in the order of its inputs; masks belong to their sequence."""
    inputs = pipeline.inputs
    if not inputs:
        raise refuse_no_inputs(pipeline.warnings)
    makers = _Makers(pipeline)
    found = [_classify(output, makers) for output in inputs.values()]
    masks = {each.mask for each in found}
    return [each for each in found if each.name not in masks]


def count_images(pipeline: Pipeline) -> int:
    """Return the number of inputs that are images, or arrays of several dimensions, treated as images."""
    makers = _Makers(pipeline)
    arrays = [each for each in pipeline.inputs.values() if not each.is_ragged and each.dtype not in STRINGS]
    return sum(_classify(each, makers).kind in ("image", "array") for each in arrays)


class _Makers:
    """The transform that made each input, and those that made the members of a group."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.inputs = pipeline.inputs
        self.fields = pipeline.schema
        self.transforms: dict[str, tuple[str, Transform]] = {
            output.name: (name, each)
            for name, each in pipeline.transforms.items()
            for output in each.outputs(name)
        }
        self.groups: dict[str, list[str]] = {
            each["name"]: each["members"] for each in pipeline.to_json()["groups"]
        }

    def find(self, name: str) -> tuple[str, Transform | None]:
        """Return the field and the transform of an output."""
        return self.transforms.get(name, (name, None))

    def find_parts(self, name: str) -> Iterator[Transform | None]:
        """Yield the transforms of the members of a group, including nested groups."""
        for member in self.groups.get(name, ()):
            if member in self.groups:
                yield from self.find_parts(member)
            else:
                yield self.find(member)[1]

    def find_mask(self, output: Output) -> str | None:
        """Return the name of the mask of a sequence, or None."""
        name = f"{output.name}_mask"
        mask = self.inputs.get(name)
        return name if mask is not None and mask.dtype == "bool" and mask.shape == output.shape[:1] else None


def _classify(output: Output, makers: _Makers) -> Feature:
    _check_supported(output)
    name = output.name
    owner, transform = makers.find(name)
    if owner != name:  # a mask, an indicator of missing numbers, or a part of a date
        return _classify_by_shape(output, makers, is_scaled=True)
    if isinstance(transform, Image):
        return Feature(name, "image", output, pixels=_find_pixels(transform))
    if isinstance(transform, Encode | Tokenize):
        return _classify_codes(output, transform, makers)
    if isinstance(transform, Padded) and isinstance(makers.fields[name], Sequence):
        mask = makers.find_mask(output)
        is_scaled = isinstance(transform, Scale)
        return Feature(name, "steps", output, padding=transform.padding, mask=mask, is_scaled=is_scaled)
    if name in makers.groups:
        return _classify_group(output, makers)
    return _classify_by_shape(output, makers, is_scaled=isinstance(transform, Scale | ExpandDate))


def _classify_codes(output: Output, transform: Encode | Tokenize, makers: _Makers) -> Feature:
    name, sizes = output.name, (transform.num_codes,)
    if transform.output not in ("index", "hash"):
        return Feature(name, "row", output, is_scaled=True)
    if not output.shape:
        return Feature(name, "code", output, sizes)
    return Feature(
        name,
        "ids",
        output,
        sizes,
        padding=transform.padding,
        mask=makers.find_mask(output),
        is_text=isinstance(transform, Tokenize),
        num_texts=transform.num_texts if isinstance(transform, Tokenize) else None,
    )


def _classify_group(output: Output, makers: _Makers) -> Feature:
    parts = list(makers.find_parts(output.name))
    codes = [each for each in parts if isinstance(each, Encode) and each.output in ("index", "hash")]
    if len(codes) == len(parts) == output.shape[0]:
        return Feature(output.name, "code", output, tuple(each.num_codes for each in codes))
    is_scaled = all(isinstance(each, Scale | ExpandDate | Encode | Tokenize) for each in parts)
    return Feature(output.name, "row", output, is_scaled=is_scaled)


def _classify_by_shape(output: Output, makers: _Makers, *, is_scaled: bool) -> Feature:
    """Return the feature of an input by dtype and shape only."""
    name, shape = output.name, output.shape
    mask = makers.find_mask(output)
    if not shape:
        owner, transform = makers.find(name)
        is_own = owner == name  # the indicator of a number has no bins
        edges = transform.scaled_edges if is_own and isinstance(transform, Scale | ExpandDate) else ()
        # With the fewest digits that give the same float32, as they are part of the model's code.
        shown = tuple(float(str(edge)) for edge in edges)
        return Feature(name, "number", output, is_scaled=is_scaled, edges=shown)
    if mask is not None or (shape[0] is None and len(shape) < 3):
        return Feature(name, "steps", output, mask=mask, is_scaled=is_scaled)
    if len(shape) == 1:
        return Feature(name, "row", output, is_scaled=is_scaled or output.dtype == "bool")
    return Feature(name, "array", output, pixels=Scaling() if output.dtype == "uint8" else None)


def _find_pixels(transform: Image) -> Scaling:
    """Return the scaling that a transform applies to pixels from 0 to 255."""
    scale = 1.0 if transform.scale is None else transform.scale
    mean, deviation = (
        _as_tuple(each, default) for each, default in ((transform.mean, 0), (transform.deviation, 1))
    )
    size = max(len(mean), len(deviation))
    means, deviations = (each * (size // len(each)) for each in (mean, deviation))
    return Scaling(
        tuple(scale / each for each in deviations),
        tuple(-each / by for each, by in zip(means, deviations, strict=True)),
    )


def _as_tuple(given: Any, default: float) -> tuple[float, ...]:
    if given is None:
        return (float(default),)
    return tuple(map(float, given)) if isinstance(given, tuple | list) else (float(given),)


def _check_supported(output: Output) -> None:
    if output.is_ragged:
        advice = "Use Pad(), or a transform without ragged=True; or drop the field: pass None for it."
    elif output.dtype in STRINGS:
        advice = "Use Tokenize() or Encode() for it; or drop the field: pass None for it."
    else:
        return
    raise OptionError(
        f"input {output.name!r}",
        field=output.name,
        expected="an array of numbers",
        got=output.describe(),
        advice=advice,
    )


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
