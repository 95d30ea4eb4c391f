"""`Image`: encoded images as arrays of pixels of one size.

In: encoded images. Out: uint8 or float32 arrays (rows, height, width, channels). Decoded and resized images
depend only on the image and can be cached; augmentation follows, or crops in between for `resize="random"`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Bytes, CodedColumn, Dense, Mask
from penstock.decode.pixels import FORMATS, MAX_PIXELS, PixelRules, Resizing, Size
from penstock.errors import FieldError, OptionError
from penstock.foundation.json_form import JsonValue, Load, list_of
from penstock.foundation.option_checks import (
    advise_nearest,
    check_choice,
    check_count,
    check_flag,
    check_number,
    check_real,
    refuse_option,
)
from penstock.foundation.wording import list_choices, override, show
from penstock.schema.field import Field
from penstock.schema.scalar import Image as ImageField
from penstock.transform.augment import Augment, load_augment
from penstock.transform.base import (
    Arrays,
    FitSource,
    Fitted,
    Prepared,
    Transform,
    check_dtype_name,
    misfit,
    need_fitted,
    refuse_gaps,
)
from penstock.transform.draws import Draws
from penstock.transform.image_size import ImageResizer, choose_size
from penstock.transform.output import Output

_MAX_SIDE: Final = 1 << 14
_SAFE_FORMATS: Final = ("jpeg", "png")  # others must be requested: each is one more decoder to trust


@dataclass(frozen=True)
class ImageFit(Fitted):
    """Fitted state of `Image`; with `can_lack`, records may have neither an image nor a default."""

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
    """Decode images and resize them to one size.

    The output has the shape (rows, height, width, channels). Images are decoded to 8 bits per channel,
    resized with bilinear interpolation and, with `dtype="float32"`, normalized to
    `(pixel * scale - mean) / deviation`.

    Attributes:
        size: Height and width of the output, or one number for both. By default the common size of all
            images of the train split if no side is above 160; otherwise the median of their heights and of
            their widths, each rounded down to a multiple of 32, from 32 to 160.
        resize: How to resize an image whose aspect ratio differs from the output.

            - "stretch": resize the whole image, which changes its aspect ratio.
            - "pad": keep the aspect ratio, and pad two sides with `fill`.
            - "crop": keep the aspect ratio, and crop the center of the image.
            - "random": in training, crop a part of random size, aspect ratio and position (see `Augment`);
              else like "crop".
        channels: Number of channels: 3 for RGB, 1 for grayscale, 4 for RGB and alpha.
        dtype: Element type of the output: "uint8", or "float32", which takes four times the memory.
        scale: Factor for pixels, only with float32: 1/255 scales them to between 0 and 1.
        mean: Subtracted from the scaled pixels, only with float32: a number, or one number per channel.
        deviation: Divisor after the subtraction, only with float32: a number, or one number per channel.
        antialias: Whether to average all pixels of an image when it is reduced. Without it some pixels are
            skipped, as OpenCV and TensorFlow do by default.
        draft: Whether to decode a JPEG that is much larger than the output at 1/2, 1/4 or 1/8 of its size,
            and to resize it from there. This is faster, with almost the same result. It has no effect without
            `antialias` or with `resize="random"`.
        orient: Whether to rotate photos upright, as their EXIF orientation specifies.
        fill: Pixel value for padding and missing images: a number from 0 to 255, or one number per channel.
        missing: What to do with records without an image: raise an "error", or "fill" the image with `fill`.
        augment: Random augmentation in training: an `Augment`, a mapping of its options, or True for
            `Augment.usual()`.
        formats: Formats to decode, out of "jpeg", "png", "webp", "gif" (first frame only) and "bmp". By
            default "jpeg", "png" and the format that the field declares.
        max_pixels: Maximum number of pixels of an image, according to its header. A larger image is an error.
        fitted: Fitted state, or None. Set by `Pipeline.fit`.

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
            self._keep(_resizer=self._make_resizer(self.fitted))

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
        """Return the transform fitted to a field."""
        derived = self.derive(name, field)
        self._check_formats(name, derived["formats"], source)
        if derived["can_lack"] and self.missing == "error":
            refuse_gaps(self, name, source, _advise_fill(name))
        size = self.size if self.size is not None else choose_size(name, source, orient=self.orient)
        return replace(self, fitted=ImageFit(size, **derived))  # type: ignore[arg-type]  # a pair, once checked

    def derive(self, name: str, field: Field) -> dict[str, Any]:
        """Return the part of the fitted state that depends only on the field."""
        if not isinstance(field, ImageField):
            raise misfit(self, name, field, "encoded images", "For tensors of pixels, use Keep().")
        formats = self.formats
        if formats is None:
            declared = () if field.format is None else (field.format,)
            formats = tuple(each for each in FORMATS if each in (*_SAFE_FORMATS, *declared))
        return {"formats": formats, "can_lack": field.optional and field.default is None}

    def is_measured(self, field: Field) -> bool:
        """Whether fitting to a field needs its statistics."""
        return field.optional and field.default is None and self.missing == "error"

    @property
    def takes_missing(self) -> bool:
        """Whether records without a value are accepted."""
        return self.missing == "fill"

    @property
    def augments(self) -> bool:
        """Whether training batches are augmented."""
        return self.resize == "random" or (isinstance(self.augment, Augment) and self.augment.changes)

    def describe_augmentation(self) -> str:
        """Return the random changes in training, as they are written in Python; empty without any."""
        found = ["resize='random'"] if self.resize == "random" else []
        if isinstance(self.augment, Augment) and self.augment.changes:
            found.append(f"augment={self.augment!r}")
        return ", ".join(found)

    @property
    def drafts(self) -> bool:
        """Whether large JPEGs are decoded at a reduced size.

        Not without antialiasing, where the result would differ visibly. Not with random crops either: a cache
        holds whole images for them, and the result must not depend on the cache.
        """
        return self.draft and self.antialias and self.resize != "random"

    @property
    def prepares(self) -> bool:
        """Whether `prepare` does anything: it decodes images."""
        return True

    def outputs(self, name: str) -> tuple[Output, ...]:
        """Return the outputs of `apply`."""
        fitted = need_fitted(self, name, self.fitted)
        return (Output(name, self.dtype, (*fitted.size, self.channels)),)

    def prepare(
        self, name: str, column: CodedColumn, draws: Draws | None, out: NDArray[Any] | None = None
    ) -> Prepared:
        """Return the resized and augmented pixels of some rows, and the errors of bad images.

        With `out` the pixels are written there, also as float32.
        """
        if isinstance(column, Dense):
            return Prepared(column, {})
        drawn = draws.within(name) if draws is not None and draws.augments else None
        resizer, present = self._fitted_resizer(name), self._present(column)
        pixels_out = out if self.dtype == "uint8" else None
        prepared = resizer.resize_batch(name, column, present, drawn, pixels_out)
        pixels = Dense.of(prepared.column).values
        if drawn is not None and isinstance(self.augment, Augment):
            self.augment.apply(pixels, self.__dict__["_fill"], drawn)
        if self.dtype == "uint8" or out is None:
            return prepared
        factor, offset = self.__dict__["_scaling"]
        _native.scale_pixels(pixels, factor, offset, out)
        return Prepared(Dense(out, column.present), prepared.faults)

    def prepare_to_keep(self, name: str, column: CodedColumn, *, augments: bool, room_bytes: int) -> Prepared:
        """Return images for a cache: resized, or whole where random crops follow."""
        column = Bytes.of(column)
        is_whole = self.resize == "random" and augments
        resizer, present = self._fitted_resizer(name), self._present(column)
        return resizer.resize_for_cache(name, column, present, room_bytes, is_whole=is_whole)

    def apply(self, name: str, column: CodedColumn, draws: Draws | None) -> Arrays:
        """Return the pixels of a batch."""
        column, faults = self.prepare(name, column, draws)
        if faults:
            raise faults[min(faults)]
        drawn = Dense.of(column)
        present = self._present(drawn)
        if present is not None and self.missing == "error" and not present.all():
            raise self._refuse_missing(name, int(np.argmin(present)))
        if self.dtype == "float32" and drawn.values.dtype != np.float32:
            return {name: _native.scale_pixels(drawn.values, *self.__dict__["_scaling"])}
        return {name: drawn.values}

    def _fitted_resizer(self, name: str) -> ImageResizer:
        need_fitted(self, name, self.fitted)
        resizer: ImageResizer = self.__dict__["_resizer"]
        return resizer

    def _present(self, column: CodedColumn) -> Mask | None:
        """Return which rows have an image; None if all have one or get the default of the field."""
        can_lack = self.fitted is not None and self.fitted.can_lack
        return column.present if can_lack else None

    def _check_scaling(self) -> None:
        for name in ("scale", "mean", "deviation"):
            if getattr(self, name) is not None and self.dtype != "float32":
                raise refuse_option(
                    "Image", name, 'dtype="float32"', f"dtype={self.dtype!r}", 'Add dtype="float32".'
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
        """Return one number per channel, from a single number or one per channel."""
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if not isinstance(value, tuple | list):
            number = check_real("Image", name, value)
            if getattr(self, name) is not None:
                self._keep(**{name: number})
            return (float(number),) * self.channels
        if len(value) != self.channels:
            raise refuse_option(
                "Image", name, f"a number, or {self.channels} numbers, one per channel", show(value)
            )
        numbers = tuple(check_real("Image", name, each) for each in value)
        self._keep(**{name: numbers})
        return tuple(map(float, numbers))

    def _make_resizer(self, fitted: ImageFit) -> ImageResizer:
        if len(fitted.size) != 2 or not all(1 <= side <= _MAX_SIDE for side in fitted.size):
            raise refuse_option("Image", "fitted.size", "height and width", show(fitted.size))
        if self.size not in (None, tuple(fitted.size)):
            raise refuse_option("Image", "fitted.size", f"{self.size}, the option size", show(fitted.size))
        formats = _check_formats(fitted.formats)
        chosen = self.augment if isinstance(self.augment, Augment) else Augment()
        rules = PixelRules(
            self.channels,
            formats,
            self.max_pixels,
            self.orient,
            size=(fitted.size[0], fitted.size[1]),
            resize=self.resize,
            antialias=self.antialias,
            draft=self.drafts,
            fill=self.__dict__["_fill"],
        )
        return ImageResizer(rules, chosen.area, chosen.aspect)

    def _check_formats(self, name: str, formats: tuple[str, ...], source: FitSource) -> None:
        """Refuse data that is known to have images of other formats, before the first batch fails."""
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
                advice=f"Allow them: {override(name, f'Image(formats={wanted})')}.",
            )

    def _refuse_missing(self, name: str, row: int) -> FieldError:
        return FieldError(
            f"image of field {name!r}",
            field=name,
            record=row,
            expected="an image",
            got="nothing",
            advice=_advise_fill(name),
        )


def _advise_fill(name: str) -> str:
    filled = override(name, "Image(missing='fill')")
    return f"Fill missing images with a color: {filled}."


def _check_size(given: object) -> Size:
    sides = tuple(given) if isinstance(given, tuple | list) else (given, given)
    if len(sides) != 2 or any(isinstance(side, str) for side in sides):
        raise refuse_option("Image", "size", "(height, width), or one number for both", show(given))
    height, width = (check_count("Image", "size", side, 1, _MAX_SIDE) for side in sides)
    return height, width


def _check_formats(given: object) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, tuple | list) or not names or not all(each in FORMATS for each in names):
        advice = advise_nearest(names, FORMATS)
        raise refuse_option("Image", "formats", f"some of {list_choices(FORMATS)}", show(given), advice)
    return tuple(each for each in FORMATS if each in names)
