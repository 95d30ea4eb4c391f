"""Measures decoders and resizes alone, one picture at a time: the table of docs/design/0014-which-decoder.md.

In: the pictures of photos.py. Out: µs of CPU per picture, the smallest of some interleaved turns. All in one
process, on one core: these are functions that compute, and no feeds.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # before anything starts threads

import cv2  # noqa: E402
import numpy as np  # noqa: E402
import simplejpeg  # noqa: E402
from PIL import Image  # noqa: E402

from penstock import _native  # noqa: E402
from photos import ensure_photos, list_photos  # noqa: E402

NUM_TURNS, NUM_PICTURES = 9, 64
SIDE = 224
Work = Callable[[Any], Any]


def load(name: str) -> list[bytes]:
    """Return some of the pictures of a set, as files."""
    spec = list_photos(is_quick=False)[name]
    pictures, offsets = np.load(spec.pictures, mmap_mode="r"), np.load(spec.offsets).tolist()
    pairs = list(pairwise(offsets))[:NUM_PICTURES]
    return [pictures[start:stop].tobytes() for start, stop in pairs]


def measure(competitors: dict[str, Work], items: Iterable[Any]) -> dict[str, float]:
    """Return the µs of CPU that each takes an item, at best."""
    items = list(items)
    best = dict.fromkeys(competitors, float("inf"))
    for _ in range(NUM_TURNS):
        for name, work in competitors.items():
            start = time.process_time()
            for item in items:
                work(item)
            best[name] = min(best[name], (time.process_time() - start) / len(items) * 1e6)
    return best


def open_pillow(data: bytes) -> Any:
    """Decode by Pillow."""
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image)


def open_opencv(data: bytes) -> Any:
    """Decode by OpenCV."""
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB)


def measure_jpeg(name: str) -> dict[str, float]:
    """Measure decoding of JPEGs."""
    files = load(name)
    height, width, _ = open_pillow(files[0]).shape
    count = height * width * 3
    # Half a vector off: see decode/jpeg.py.
    buffer = np.empty(count + 32, np.uint8)[16:][:count].reshape(height, width, 3)
    half = {"min_height": -(-height // 2), "min_width": -(-width // 2), "min_factor": 2}
    competitors: dict[str, Work] = {
        "simplejpeg": lambda data: simplejpeg.decode_jpeg(data, buffer=buffer),
        "OpenCV": open_opencv,
        "Pillow": open_pillow,
        "simplejpeg, half": lambda data: simplejpeg.decode_jpeg(data, **half),
    }
    try:
        import imagecodecs  # noqa: PLC0415 - a peer, where it is installed

        competitors["imagecodecs"] = lambda data: imagecodecs.jpeg8_decode(data, out=buffer)
    except ModuleNotFoundError:
        pass
    for data in files[:8]:
        assert np.array_equal(simplejpeg.decode_jpeg(data), open_pillow(data))
    return measure(competitors, files)


def measure_png(name: str) -> dict[str, float]:
    """Measure decoding of PNGs."""
    files = load(name)
    assert np.array_equal(_native.read_png(files[0], None, 3, 10**8), open_pillow(files[0]))
    read: Work = lambda data: _native.read_png(data, None, 3, 10**8)  # noqa: E731
    return measure({"core": read, "OpenCV": open_opencv, "Pillow": open_pillow}, files)


def measure_resize(name: str) -> dict[str, float]:
    """Measure resizing of pixels."""
    images = [open_pillow(data) for data in load(name)[:16]]
    height, width, _ = images[0].shape
    out, box = np.empty((SIDE, SIDE, 3), np.uint8), (0.0, 0.0, float(height), float(width))
    competitors: dict[str, Work] = {
        "core, antialiased": lambda image: _native.resize(image, out, box, True),
        "core, plain": lambda image: _native.resize(image, out, box, False),
        "OpenCV linear": lambda image: cv2.resize(image, (SIDE, SIDE), dst=out),
        "OpenCV area": lambda image: cv2.resize(image, (SIDE, SIDE), dst=out, interpolation=cv2.INTER_AREA),
        "Pillow bilinear": lambda image: Image.fromarray(image).resize(
            (SIDE, SIDE), Image.Resampling.BILINEAR
        ),
    }
    return measure(competitors, images)


def main() -> None:
    """Measure everything, and print it."""
    cv2.setNumThreads(1)
    ensure_photos(["500x375", "1024x768", "224x224", "64x64"], is_quick=False)
    parts = [("decode", name, measure_jpeg) for name in ("500x375", "1024x768", "224x224")]
    parts += [("decode", "64x64", measure_png)]
    parts += [("resize", name, measure_resize) for name in ("500x375", "1024x768")]
    for what, name, run in parts:
        figures = ", ".join(f"{who} {micros:.0f}" for who, micros in run(name).items())
        print(f"{what} {name}, µs: {figures}", flush=True)


if __name__ == "__main__":
    main()
