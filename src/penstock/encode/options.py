"""Options of the encode stage, checked when they are created."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import OptionError
from penstock.foundation.wording import show


@dataclass(frozen=True, kw_only=True)
class EncodeOptions:
    """Options of encoding.

    Attributes:
        resize: Number of pixels of the shorter side of images; larger images are shrunk to it, with the same
            aspect ratio, which leaves room for crops of that size. They are encoded again in their own format
            (JPEG and WebP at quality 95), upright, and with the first frame only. Smaller images are stored
            unchanged. None stores all images unchanged.
        max_pixels: Maximum number of pixels of an image that is decoded. 50 million pixels take 150 MB of
            memory; larger sizes in a header are more often an attack than a photograph.
        png_level: PNG compression level of pixel arrays, 0 to 9. Level 1 is five times as fast as the usual
            6, for files that are 10 % larger.

    Example:
        >>> EncodeOptions(resize=256).resize
        256
    """

    resize: int | None = None
    max_pixels: int = 50_000_000
    png_level: int = 1

    def __post_init__(self) -> None:
        if self.resize is not None:
            self._check_number("resize", 1, 65_535)
        self._check_number("max_pixels", 1, 1 << 40)
        self._check_number("png_level", 0, 9)

    def _check_number(self, name: str, least: int, most: int) -> None:
        value = getattr(self, name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise OptionError(
                name,
                expected=f"a whole number from {least} to {most}",
                got=show(value),
                advice=f"The default is {type(self).__dict__[name]}.",
            )
