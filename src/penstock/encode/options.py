"""Options of the encode stage, checked when they are created."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.foundation.option_checks import OptionChecks


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
        checks = OptionChecks(self)
        checks.integers("resize", least=1, most=65_535)
        checks.integers("max_pixels", least=1, most=1 << 40)
        checks.integers("png_level", least=0, most=9)
