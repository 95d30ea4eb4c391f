"""WebP, GIF and BMP into pixels, by Pillow.

In: the bytes of a file. Out: uint8 pixels; of an animation, the first frame. A damaged file is a
`ValueError`.
"""

from __future__ import annotations

import io
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile, UnidentifiedImageError

_MODES: Final = {1: "L", 3: "RGB", 4: "RGBA"}


def read_raster(data: memoryview, format: str, size: tuple[int, int], channels: int) -> NDArray[np.uint8]:
    """Return the pixels of an image: 1 channel for grey, 3 for RGB, 4 for RGBA; other formats are refused."""
    if ImageFile.LOAD_TRUNCATED_IMAGES:
        raise ValueError("not decoded while PIL.ImageFile.LOAD_TRUNCATED_IMAGES is on: it hides damage")
    try:
        with Image.open(io.BytesIO(data), formats=(format.upper(),)) as image:
            if image.size != size[::-1]:
                # The decoder may use another header of the file than the core did.
                raise ValueError(f"{image.width} x {image.height} pixels differ from the size in its header")
            drawn = image.convert("RGBA" if _has_alpha(image) else "RGB")
    except UnidentifiedImageError:
        raise ValueError(f"not a valid {format}") from None
    except ValueError:
        raise
    except Exception as error:  # decoders raise any class of error for damaged files
        raise ValueError(str(error) or type(error).__name__) from error
    if channels == 1 and drawn.mode == "RGBA":
        drawn = drawn.convert("RGB")  # drops alpha: hidden colours count, as in other formats
    pixels = np.asarray(drawn.convert(_MODES[channels]))
    return pixels.reshape(*pixels.shape[:2], channels)


def _has_alpha(image: Image.Image) -> bool:
    return image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
