"""Makes one set of pictures: TFRecord shards by Penstock, and the same bytes for the other competitors.

In: the name of the set on the command line. Out: its folder, with the parameters written last.
"""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import struct
import sys
import tarfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

import penstock as ps
from photos import NUM_SHARDS, SEED, PhotoSpec, list_photos

# Amplitudes of photos fall with 1 / frequency; a little steeper, because leaves add more edges.
TEXTURE_SLOPE = 1.15
NUM_LEAVES = 60
# Shares of the shorter side.
LEAST_RADIUS, MOST_RADIUS = 0.015, 0.4
# What a lens and the interpolation of a sensor's colours leave of an edge.
SOFTNESS = 0.22
GRAIN = 1.2

Floats = npt.NDArray[np.float32]


def draw_scene(rng: np.random.Generator, height: int, width: int, roughness: float) -> npt.NDArray[np.uint8]:
    """Draw one picture; the rougher, the more bytes it takes."""
    texture = _draw_texture(rng, height + 2, width + 2) * roughness
    scene = _draw_background(rng, height + 2, width + 2)
    scene += 6 * texture[..., None]
    for radius in _draw_radii(rng, min(height, width)).tolist():
        _draw_leaf(rng, scene, texture, radius)
    for axis in (0, 1):
        scene = _soften(scene, axis)
    scene += rng.standard_normal((height, width, 1), np.float32) * GRAIN
    return np.clip(np.rint(scene), 0, 255).astype(np.uint8)


def _draw_texture(rng: np.random.Generator, height: int, width: int) -> Floats:
    """Draw noise of mean 0 and deviation 1 whose amplitudes fall with the frequency."""
    rows, columns = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :]
    frequency = np.hypot(rows, columns).astype(np.float32)
    frequency[0, 0] = 1.0
    spectrum = np.fft.rfft2(rng.standard_normal((height, width), np.float32)) / frequency**TEXTURE_SLOPE
    spectrum[0, 0] = 0.0
    texture = np.fft.irfft2(spectrum, s=(height, width)).astype(np.float32)
    scaled: Floats = texture / texture.std()
    return scaled


def _draw_background(rng: np.random.Generator, height: int, width: int) -> Floats:
    """Blend two colours from the top to the bottom, and light to one side."""
    top, bottom = _draw_colour(rng), _draw_colour(rng)
    down = np.linspace(0, 1, height, dtype=np.float32)[:, None, None]
    light = np.linspace(-1, 1, width, dtype=np.float32)[None, :, None] * rng.uniform(-25, 25)
    return top * (1 - down) + bottom * down + light


def _draw_colour(rng: np.random.Generator) -> Floats:
    """Draw a colour that is not strong, like the colours of most things."""
    colour = rng.uniform(20, 235, 3).astype(np.float32)
    mixed: Floats = colour + 0.6 * (colour.mean() - colour)
    return mixed


def _draw_radii(rng: np.random.Generator, side: int) -> npt.NDArray[np.float64]:
    """Draw the sizes, as many of each order; largest first, so that the small ones are not covered."""
    shares = LEAST_RADIUS * (MOST_RADIUS / LEAST_RADIUS) ** rng.random(NUM_LEAVES)
    return np.sort(shares)[::-1] * side


def _draw_leaf(rng: np.random.Generator, scene: Floats, texture: Floats, radius: float) -> None:
    """Lay an ellipse over the scene, with its own colour, shade and roughness."""
    height, width, _ = scene.shape
    middle = rng.random(2) * (height, width)
    short = radius * rng.uniform(0.35, 1.0)
    angle = rng.uniform(0, math.pi)
    top, left = np.maximum(np.floor(middle - radius - 1), 0).astype(int)
    bottom, right = np.minimum(np.ceil(middle + radius + 1), (height, width)).astype(int)
    if bottom <= top or right <= left:
        return
    down = np.arange(top, bottom, dtype=np.float32)[:, None] - np.float32(middle[0])
    across = np.arange(left, right, dtype=np.float32)[None, :] - np.float32(middle[1])
    along = (across * math.cos(angle) + down * math.sin(angle)) / radius
    beside = (down * math.cos(angle) - across * math.sin(angle)) / short
    cover = np.clip((1 - np.hypot(along, beside)) * short + 0.5, 0, 1)[..., None]
    colour = _draw_colour(rng)
    rough = texture[height - bottom : height - top, width - right : width - left] * rng.uniform(0, 14)
    shade = along * rng.uniform(-20, 20)
    window = scene[top:bottom, left:right]
    window += cover * (colour + (rough + shade)[..., None] - window)


def _soften(scene: Floats, axis: int) -> Floats:
    """Average each pixel with its neighbours along one axis; pixels at the edges are lost."""
    before, middle, after = (_shift(scene, axis, i) for i in (-1, 0, 1))
    softened: Floats = (before + after) * SOFTNESS + middle * (1 - 2 * SOFTNESS)
    return softened


def _shift(scene: Floats, axis: int, offset: int) -> Floats:
    """Return the neighbours of all pixels except at the edges."""
    stop = scene.shape[axis] - 1
    cut = slice(1 + offset, stop + offset)
    return scene[cut] if axis == 0 else scene[:, cut]


LEAST_QUALITY, MOST_QUALITY = 85, 90
HALF_BOTH_WAYS = 2  # Pillow's number of 4:2:0


def make_picture(spec: PhotoSpec, label: int) -> bytes:
    """Draw and encode one picture; its label is its number."""
    rng = np.random.default_rng((SEED, spec.height, spec.width, label))
    scene = Image.fromarray(draw_scene(rng, spec.height, spec.width, spec.roughness))
    file = io.BytesIO()
    if spec.format == "png":
        scene.save(file, "PNG")
    else:
        quality = int(rng.integers(LEAST_QUALITY, MOST_QUALITY, endpoint=True))
        scene.save(file, "JPEG", quality=quality, subsampling=HALF_BOTH_WAYS)
    return file.getvalue()


def write_shards(spec: PhotoSpec, pictures: Sequence[bytes]) -> None:
    """Write them by Penstock, shuffled."""
    fields = {"image": ps.fields.Image(spec.format), "label": ps.fields.Number("int64", role="target")}
    ps.convert(
        [{"image": data, "label": label} for label, data in enumerate(pictures)],
        spec.folder / "shards",
        fields=fields,
        split={"train": 1.0},
        num_shards=NUM_SHARDS,
    )


def write_tars(spec: PhotoSpec, pictures: Sequence[bytes], order: Sequence[int]) -> None:
    """Write them as webdataset wants it: a picture and a label next to it, shuffled."""
    for i in range(NUM_SHARDS):
        with tarfile.open(spec.folder / f"train-{i:05d}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for label in order[i::NUM_SHARDS]:
                for suffix, data in ((spec.format, pictures[label]), ("cls", str(label).encode())):
                    member = tarfile.TarInfo(f"{label:06d}.{suffix}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))


def write_arrays(spec: PhotoSpec, pictures: Sequence[bytes], order: Sequence[int]) -> None:
    """Write them as Grain likes it best: eight bytes of label before each picture, no message around it."""
    try:
        from array_record.python.array_record_module import ArrayRecordWriter  # noqa: PLC0415
    except ImportError:
        return
    for i in range(NUM_SHARDS):
        # One record a group, for each is read alone; JPEG and PNG do not get smaller.
        path = spec.folder / f"train-{i:05d}.array_record"
        writer = ArrayRecordWriter(str(path), "group_size:1,uncompressed")
        for label in order[i::NUM_SHARDS]:
            writer.write(struct.pack("<q", label) + pictures[label])
        writer.close()


def write_set(spec: PhotoSpec) -> None:
    """Make all files of a set; the parameters come last."""
    shutil.rmtree(spec.folder, ignore_errors=True)
    spec.folder.mkdir(parents=True)
    make: Callable[[int], bytes] = partial(make_picture, spec)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        pictures = list(pool.map(make, range(spec.num_images), chunksize=4))
    np.save(spec.pictures, np.frombuffer(b"".join(pictures), np.uint8))
    np.save(spec.offsets, np.cumsum([0, *map(len, pictures)]))
    order = np.random.default_rng(SEED).permutation(spec.num_images).tolist()
    write_shards(spec, pictures)
    write_tars(spec, pictures, order)
    write_arrays(spec, pictures, order)
    spec.stamp.write_text(json.dumps(spec.parameters))


def main() -> None:
    """Make the set that the command line names."""
    os.environ["OMP_NUM_THREADS"] = "1"
    write_set(list_photos("--quick" in sys.argv)[Path(sys.argv[1]).name])


if __name__ == "__main__":
    main()
