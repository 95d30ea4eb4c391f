"""Headers of images in plain Python: format and size. The tests compare the reader of the core with it."""

from __future__ import annotations

from penstock.schema.picture import Picture
from penstock.schema.scalar import ImageFormat

# A JPEG has a few dozen segments before its pixels: EXIF and colour profiles come in pieces of 64 KB.
_MAX_SEGMENTS = 4096
_BMP_HEADERS = (12, 40, 52, 56, 64, 108, 124)


def read_picture(data: bytes) -> Picture | None:
    """Return format and size of an image, or None where the bytes are no image."""
    if data.startswith(b"\xff\xd8\xff"):
        return _read_jpeg(data)
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return _read_png(data)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _read_webp(data)
    if data.startswith((b"GIF87a", b"GIF89a")):
        return _picture("gif", _little(data, 6, 2), _little(data, 8, 2))
    if data.startswith(b"BM"):
        return _read_bmp(data)
    return None


def _picture(format: ImageFormat, width: int, height: int) -> Picture:
    """Return a picture whose size is known as a whole or not at all."""
    return Picture(format, width, height) if width > 0 and height > 0 else Picture(format)


def _big(data: bytes, start: int, size: int) -> int:
    """Return an unsigned number, most significant byte first; 0 where the bytes end before it."""
    return int.from_bytes(data[start : start + size], "big") if start + size <= len(data) else 0


def _little(data: bytes, start: int, size: int) -> int:
    return int.from_bytes(data[start : start + size], "little") if start + size <= len(data) else 0


def _read_jpeg(data: bytes) -> Picture:
    at = 2
    for _ in range(_MAX_SEGMENTS):
        # Decoders pass over stray bytes between segments, and over any number of 0xFF before a marker.
        at = data.find(b"\xff", at)
        if at < 0:
            break
        while at < len(data) and data[at] == 0xFF:
            at += 1
        marker = data[at] if at < len(data) else 0xD9
        at += 1
        if marker in (0xD9, 0xDA):  # the end, or the pixels: no frame header was before them
            break
        if marker in (0x00, 0x01) or 0xD0 <= marker <= 0xD8:  # these stand alone
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return _picture("jpeg", _big(data, at + 5, 2), _big(data, at + 3, 2))
        at += max(_big(data, at, 2), 2)
    return Picture("jpeg")


def _read_png(data: bytes) -> Picture:
    if data[12:16] != b"IHDR":
        return Picture("png")
    return _picture("png", _big(data, 16, 4), _big(data, 20, 4))


def _read_webp(data: bytes) -> Picture:
    chunk = data[12:16]
    if chunk == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        return _picture("webp", _little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF)
    if chunk == b"VP8L" and data[20:21] == b"\x2f" and len(data) >= 25:
        bits = _little(data, 21, 4)
        return Picture("webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if chunk == b"VP8X" and len(data) >= 30:
        return Picture("webp", _little(data, 24, 3) + 1, _little(data, 27, 3) + 1)
    return Picture("webp")


def _read_bmp(data: bytes) -> Picture | None:
    header_bytes = _little(data, 14, 4)
    if header_bytes not in _BMP_HEADERS:
        return None  # a text may begin with BM, too
    if header_bytes == 12:
        return _picture("bmp", _little(data, 18, 2), _little(data, 20, 2))
    # The height is signed: a negative one says that the rows run from top to bottom.
    height = int.from_bytes(data[22:26], "little", signed=True) if len(data) >= 26 else 0
    width = int.from_bytes(data[18:22], "little", signed=True) if len(data) >= 26 else 0
    return _picture("bmp", width, abs(height))
