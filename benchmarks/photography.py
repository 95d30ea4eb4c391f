"""Makes one set of pictures: TFRecord shards by Penstock, and the same bytes for the other contestants.

In: the name of the set on the command line. Out: its folder, with the parameters written last.
"""

from __future__ import annotations

import io
import json
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
from PIL import Image

import penstock as ps
from photos import NUM_SHARDS, SEED, PhotoSpec, list_photos
from scenery import draw_scene

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
    """Write them as webdataset wants it: a picture and a label beside it, shuffled."""
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
