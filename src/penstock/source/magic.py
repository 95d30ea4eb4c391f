"""What a byte string begins as: the formats of images that a field can name.

In: the first bytes of a value or of a file. Out: the name of the format, or None.
"""

from __future__ import annotations

from typing import Final

from penstock.schema.scalar import ImageFormat

MAGIC_BYTES: Final = 12
"""How many bytes tell."""

_MAGICS: Final[tuple[tuple[bytes, ImageFormat], ...]] = (
    (b"\xff\xd8\xff", "jpeg"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"BM", "bmp"),
)


def name_format(start: bytes) -> ImageFormat | None:
    """Return the format of an image that begins so.

    Example:
        >>> name_format(b"GIF89a")
        'gif'
    """
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "webp"
    return next((name for magic, name in _MAGICS if start.startswith(magic)), None)
