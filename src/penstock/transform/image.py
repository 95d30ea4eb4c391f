"""Photos and drawings as pixels of one size.

In: encoded images. Out: uint8 arrays (rows, height, width, channels), or float32 ones. Decoding and resizing
depend on the image alone and can be kept; what is random comes after, or with `resize="random"` in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Bytes, CodedColumn, Dense
from penstock.decode.pixels import FORMATS, MAX_PIXELS, PixelRules, has_turned
from penstock.errors import FieldError, OptionError
from penstock.foundation.json_form import JsonValue, Load, list_of
from penstock.foundation.option_checks import (
    advise_nearest,
    check_choice,
    check_count,
    check_dtype_name,
    check_flag,
    check_number,
    check_real,
    refuse_option,
)
from penstock.foundation.wording import list_choices, show
from penstock.schema.field import Field
from penstock.schema.scalar import Image as ImageField
from penstock.transform.agreement import refuse_gaps
from penstock.transform.augment import Augment, load_augment
from penstock.transform.base import Arrays, FitSource, Fitted, Prepared, Transform, misfit, need_fitted
from penstock.transform.cast import align
from penstock.transform.crop import Resizing, Size
from penstock.transform.draws import Draws
from penstock.transform.image_pixels import Drawing
from penstock.transform.output import Output

_USUAL_SIZE: Final = 224
_LARGEST_USUAL: Final = 512  # larger images are seldom meant to be fed whole
_LARGEST_SIDE: Final = 1 << 14
_SAFE_FORMATS: Final = ("jpeg", "png")  # the others are named: each is one more decoder to trust


@dataclass(frozen=True)
class ImageFit(Fitted):
    """What `Image` learned.

    Attributes:
        size: Height and width of the output.
        formats: Which are decoded.
        can_lack: Whether records may have no image, nor a default.
    """

    size: tuple[int, ...]
    formats: tuple[str, ...]
    can_lack: bool

    LOADERS: ClassVar[Mapping[str, Load]] = {
        "size": list_of(JsonValue.count),
        "formats": list_of(JsonValue.text),
        "can_lack": JsonValue.flag,
    }


@dataclass(frozen=True, repr=False)
class Image(Transform):
    """Decode images, and bring them to one size.

    Attributes:
        size: Height and width, or one number for both. If not given, the size that all images of the train
            split have, if none is turned and that is at most 512; or else 224.
        resize: How an image of other proportions gets there. "stretch" takes all of it; "pad" takes all of it
            and keeps its proportions, with `fill` at two sides; "crop" takes the largest part from its
            middle; "random" takes a part of random size, proportions and place while training (see
            `Augment`), and else what "crop" takes.
        channels: 3 for colours, 1 for brightness, 4 for colours and alpha.
        dtype: "uint8", a quarter of the memory of "float32".
        scale: What pixels are multiplied with, of float32: 1/255 gives 0 to 1.
        mean: What is subtracted then: a number, or one a channel.
        deviation: By what that is divided: likewise.
        antialias: Whether all pixels of an image count when it shrinks. Without it some are skipped, as
            OpenCV and TensorFlow do by default.
        draft: Whether a JPEG that is much larger than the output may be decoded at a half, a quarter or an
            eighth of its size, and resized from there: faster, and hardly another picture. Only with
            `antialias`, and not with "random".
        orient: Whether photos are turned upright, as the camera noted.
        fill: What stands where there is no image: a number from 0 to 255, or one a channel.
        missing: What a record without an image gets: an "error", or "fill".
        augment: What is random in training: an `Augment`, a mapping of its options, or True for usual ones.
        formats: Which are decoded: "jpeg" and "png" and what the field declares, if not given. "webp",
            "gif" (its first frame) and "bmp" there are besides.
        max_pixels: How many pixels an image may have, by its header.
        fitted: What was learned.

    Example:
        >>> Image(size=96, augment={"flip": 0.5}).size
        (96, 96)
    """

    size: int | tuple[int, int] | None = None
    _: KW_ONLY
    resize: Resizing = "stretch"
    channels: int = 3
    dtype: str = "uint8"
    scale: float | None = None
    mean: float | tuple[float, ...] | None = None
    deviation: float | tuple[float, ...] | None = None
    antialias: bool = True
    draft: bool = True
    orient: bool = True
    fill: float | tuple[float, ...] = 0
    missing: Literal["error", "fill"] = "error"
    augment: Augment | Mapping[str, Any] | bool | None = None
    formats: tuple[str, ...] | None = None
    max_pixels: int = MAX_PIXELS
    fitted: ImageFit | None = None

    kind: ClassVar[str] = "image"
    fitted_type: ClassVar[type[Fitted]] = ImageFit

    def __post_init__(self) -> None:
        if self.size is not None:
            self._keep(size=_check_size(self.size))
        check_choice("Image", "resize", self.resize, get_args(Resizing))
        self._keep(channels=check_number("Image", "channels", self.channels, (1, 3, 4)))
        self._keep(dtype=check_dtype_name("Image", self.dtype, ("uint8", "float32")))
        for name in ("antialias", "draft", "orient"):
            check_flag("Image", name, getattr(self, name))
        self._check_scaling()
        fill = self._check_channels("fill", self.fill)
        if not all(0 <= each <= 255 and each == int(each) for each in fill):
            raise refuse_option("Image", "fill", "whole numbers from 0 to 255", show(self.fill))
        check_choice("Image", "missing", self.missing, ("error", "fill"))
        self._keep(augment=load_augment("Image", self.augment, self.resize))
        if self.formats is not None:
            self._keep(formats=_check_formats(self.formats))
        self._keep(max_pixels=check_count("Image", "max_pixels", self.max_pixels, 1, 2**40))
        self._keep(_fill=np.array(fill, np.uint8))
        if self.fitted is not None:
            self._keep(_drawing=self._make_drawing(self.fitted))

    @classmethod
    def load_option(cls, name: str, value: JsonValue) -> Any:
        """Read one option from JSON or YAML."""
        if name == "augment" and isinstance(value.value, Mapping):
            return Augment.load(value)
        return super().load_option(name, value)

    def to_json(self) -> dict[str, Any]:
        """Return options and fitted state as dicts, lists and scalars."""
        form = super().to_json()
        return {**form, "augment": self.augment.to_json()} if isinstance(self.augment, Augment) else form

    def fit(self, name: str, field: Field, source: FitSource) -> Image:
        """Return the transform for a field."""
        derived = self.derive(name, field)
        self._check_formats(name, derived["formats"], source)
        if derived["can_lack"] and self.missing == "error":
            refuse_gaps(self, name, source, "Say what they get: Image(missing='fill').")
        size = self.size if self.size is not None else _common_size(name, source, orient=self.orient)
        return replace(self, fitted=ImageFit(size, **derived))  # type: ignore[arg-type]  # a pair, once checked

    def derive(self, name: str, field: Field) -> dict[str, Any]:
        """Return what of the fitted state the field alone decides."""
        if not isinstance(field, ImageField):
            raise misfit(self, name, field, "encoded images", "Arrays of pixels are tensors: say Keep().")
        formats = self.formats
        if formats is None:
            declared = () if field.format is None else (field.format,)
            formats = tuple(each for each in FORMATS if each in (*_SAFE_FORMATS, *declared))
        return {"formats": formats, "can_lack": field.optional and field.default is None}

    def is_measured(self, field: Field) -> bool:
        """Whether fitting to such a field asks for its statistics."""
        return self.size is None or (field.optional and field.default is None and self.missing == "error")

    @property
    def takes_missing(self) -> bool:
        """Whether records may lack the field."""
        return self.missing == "fill"

    @property
    def augments(self) -> bool:
        """Whether something is random while training."""
        return self.resize == "random" or (isinstance(self.augment, Augment) and self.augment.changes)

    @property
    def drafts(self) -> bool:
        """Whether JPEGs are decoded at a part of their size, where that is enough.

        Not without antialiasing, whose pixels are then those of others. Nor where parts are drawn at random:
        a cache holds the whole image there, so that it is whole without one, too.
        """
        return self.draft and self.antialias and self.resize != "random"

    @property
    def prepares(self) -> bool:
        """Whether `prepare` has work to do: it decodes."""
        return True

    def outputs(self, name: str) -> tuple[Output, ...]:
        """Return what `apply` will give."""
        fitted = need_fitted(self, name, self.fitted)
        return (Output(name, self.dtype, (*fitted.size, self.channels)),)

    def prepare(self, name: str, column: CodedColumn, draws: Draws | None) -> Prepared:
        """Return the pixels of a batch in their size, and the images that have none."""
        if isinstance(column, Dense):
            return Prepared(column, {})
        drawn = draws.within(name) if draws is not None and draws.augments else None
        return self._fitted_drawing(name).draw(name, column, self._present(column), drawn)

    def prepare_to_keep(self, name: str, column: CodedColumn, *, augments: bool, room_bytes: int) -> Prepared:
        """Return what a cache holds: pixels in their size, or whole images where parts of them are drawn."""
        column = Bytes.of(column)
        is_whole = self.resize == "random" and augments
        drawing, present = self._fitted_drawing(name), self._present(column)
        return drawing.hold(name, column, present, room_bytes, is_whole=is_whole)

    def apply(self, name: str, column: CodedColumn, draws: Draws | None) -> Arrays:
        """Return the pixels of a batch."""
        column, faults = self.prepare(name, column, draws)
        if faults:
            raise faults[min(faults)]
        drawn = Dense.of(column)
        present = self._present(drawn)
        if present is not None and self.missing == "error" and not all(present):
            raise self._refuse_missing(name, present.index(False))
        pixels: NDArray[Any] = drawn.values
        if draws is not None and draws.augments and isinstance(self.augment, Augment):
            pixels = self.augment.apply(pixels, self.__dict__["_fill"], draws.within(name))
        if self.dtype == "float32":
            return {name: _native.scale_pixels(pixels, *self.__dict__["_scaling"])}
        return {name: align(pixels)}

    def _fitted_drawing(self, name: str) -> Drawing:
        need_fitted(self, name, self.fitted)
        drawing: Drawing = self.__dict__["_drawing"]
        return drawing

    def _present(self, column: CodedColumn) -> list[bool] | None:
        """Return which rows have an image; None if all do, be it the field's default."""
        can_lack = self.fitted is not None and self.fitted.can_lack
        return column.present.tolist() if can_lack and column.present is not None else None

    def _check_scaling(self) -> None:
        for name in ("scale", "mean", "deviation"):
            if getattr(self, name) is not None and self.dtype != "float32":
                raise refuse_option(
                    "Image", name, 'dtype="float32" beside it', f"dtype={self.dtype!r}", "Say so."
                )
        scale = 1.0
        if self.scale is not None:
            scale = check_real("Image", "scale", self.scale)
            if scale == 0:
                raise refuse_option("Image", "scale", "a number other than 0", show(self.scale))
            self._keep(scale=scale)
        means = self._check_channels("mean", 0.0 if self.mean is None else self.mean)
        deviations = self._check_channels("deviation", 1.0 if self.deviation is None else self.deviation)
        if not all(each > 0 for each in deviations):
            raise refuse_option("Image", "deviation", "numbers above 0", show(self.deviation))
        factor = np.array([scale / each for each in deviations], np.float32)
        offset = np.array([-mean / each for mean, each in zip(means, deviations, strict=True)], np.float32)
        self._keep(_scaling=(factor, offset))

    def _check_channels(self, name: str, value: object) -> tuple[float, ...]:
        """Return a number for each channel, of one for all or as many as there are."""
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if not isinstance(value, tuple | list):
            number = check_real("Image", name, value)
            if getattr(self, name) is not None:
                self._keep(**{name: number})
            return (float(number),) * self.channels
        if len(value) != self.channels:
            raise refuse_option("Image", name, f"a number, or {self.channels}, one a channel", show(value))
        numbers = tuple(check_real("Image", name, each) for each in value)
        self._keep(**{name: numbers})
        return tuple(map(float, numbers))

    def _make_drawing(self, fitted: ImageFit) -> Drawing:
        if len(fitted.size) != 2 or not all(1 <= side <= _LARGEST_SIDE for side in fitted.size):
            raise refuse_option("Image", "fitted.size", "height and width", show(fitted.size))
        if self.size not in (None, tuple(fitted.size)):
            raise refuse_option("Image", "fitted.size", f"{self.size}, as size says", show(fitted.size))
        formats = _check_formats(fitted.formats)
        chosen = self.augment if isinstance(self.augment, Augment) else Augment()
        return Drawing(
            rules=PixelRules(self.channels, formats, self.max_pixels, self.orient),
            size=(fitted.size[0], fitted.size[1]),
            resize=self.resize,
            antialias=self.antialias,
            draft=self.drafts,
            fill=self.__dict__["_fill"],
            area=chosen.area,
            aspect=chosen.aspect,
        )

    def _check_formats(self, name: str, formats: tuple[str, ...], source: FitSource) -> None:
        """Refuse data that is known to hold formats which are not decoded, before the first batch does."""
        found = source.statistics(name).formats if source.knows(name) else None
        counts = {} if found is None else dict(zip(map(str, found.values), found.counts, strict=True))
        others = {each: n for each, n in counts.items() if each not in formats}
        if others:
            wanted = tuple(each for each in FORMATS if each in (*formats, *others))
            raise OptionError(
                f"Image for field {name!r}",
                field=name,
                expected=" or ".join(formats),
                got=", ".join(f"{n} {each}" for each, n in others.items()),
                advice=f"Say Image(formats={wanted}).",
            )

    def _refuse_missing(self, name: str, row: int) -> FieldError:
        advice = "Say what it gets: Image(missing='fill')."
        return FieldError(
            f"image of field {name!r}", field=name, record=row, expected="one", got="none", advice=advice
        )


def _check_size(given: object) -> Size:
    sides = tuple(given) if isinstance(given, tuple | list) else (given, given)
    if len(sides) != 2 or any(isinstance(side, str) for side in sides):
        raise refuse_option("Image", "size", "(height, width), or one number for both", show(given))
    height, width = (check_count("Image", "size", side, 1, _LARGEST_SIDE) for side in sides)
    return height, width


def _check_formats(given: object) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, tuple | list) or not names or not all(each in FORMATS for each in names):
        advice = advise_nearest(names, FORMATS)
        raise refuse_option("Image", "formats", f"some of {list_choices(FORMATS)}", show(given), advice)
    return tuple(each for each in FORMATS if each in names)


def _common_size(name: str, source: FitSource, *, orient: bool) -> Size:
    statistics = source.statistics(name)
    size = []
    for sides in (statistics.heights, statistics.widths):
        if sides is None or sides.min is None or sides.min != sides.max or sides.min > _LARGEST_USUAL:
            return _USUAL_SIZE, _USUAL_SIZE
        size.append(int(sides.min))
    # Statistics are of images as they are stored; of one camera, upright and lying ones have no common size.
    if orient and size[0] != size[1] and any(map(has_turned, source.columns(name))):
        return _USUAL_SIZE, _USUAL_SIZE
    return size[0], size[1]
