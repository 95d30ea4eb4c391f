"""How raw values are encoded where there is a choice; checked when made."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import OptionError
from penstock.foundation.wording import show


@dataclass(frozen=True, kw_only=True)
class EncodeOptions:
    """Choices of encoding.

    Attributes:
        resize: Shrink images so that their shorter side has this many pixels, which leaves room for crops of
            that size; the ratio of the sides is kept. They are encoded again in their own format (JPEG and
            WebP at quality 95), upright, and with the first frame alone. Images that are no larger are kept
            byte for byte. None keeps all.
        max_pixels: An image of more is not decoded. 50 million are 150 MB of memory; what claims to be larger
            is more often an attack than a photograph.
        png_level: How hard pixels given as arrays are compressed, 0 to 9. Level 1 is five times faster than
            the usual 6, for files a tenth larger.

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
                advice=f"Leave it out for {type(self).__dict__[name]}.",
            )
