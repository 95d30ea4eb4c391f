"""Makes the sources on disk for conversions: CSV, Parquet, a folder of images, one large CSV.

In: what to make, on the command line. Out: its folder, the stamp of its parameters written last.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from PIL import Image

from datasets import NUM_SHARDS, SEED, DatasetSpec, list_datasets
from sources import NUM_CLASSES, RawSource, list_all_sources, stamp_of
from values import make_columns

NUM_PICTURES = 8
# Noise at this quality makes about 100 KB of a picture of 384 x 304 pixels.
QUALITY = 85
SHORTEST_COMMENT, LONGEST_COMMENT = 16, 4_096


def make_table(spec: DatasetSpec, shard: int) -> pa.Table:
    """Draw the rows of one shard; the words are text, as they are in a CSV."""
    columns = make_columns(spec, shard)
    arrays = {
        field.name: pa.array(
            [word.decode() for word in columns[field.name]] if field.kind == "bytes" else columns[field.name]
        )
        for field in spec.fields
    }
    return pa.table(arrays)


def write_csv(path: Path, spec: DatasetSpec, least_bytes: int | None = None) -> int:
    """Write all shards, or as many as fill so many bytes; return the number of rows."""
    # No word of this data needs quotes, and no common CSV writer would add any.
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
    num_rows = shard = 0
    with path.open("wb") as file:
        file.write((",".join(field.name for field in spec.fields) + "\n").encode())
        while shard < NUM_SHARDS if least_bytes is None else file.tell() < least_bytes:
            table = make_table(spec, shard)
            pyarrow.csv.write_csv(table, file, options)
            num_rows += table.num_rows
            shard += 1
    return num_rows


def write_parquet(path: Path, spec: DatasetSpec) -> None:
    """Write one file as pandas and pyarrow write it if nothing is said."""
    pq.write_table(pa.concat_tables([make_table(spec, shard) for shard in range(NUM_SHARDS)]), path)


def write_images(folder: Path, num_images: int, pixels: tuple[int, int]) -> None:
    """Write JPEGs: a few pictures, each file with its own comment, so that all differ."""
    rng = np.random.default_rng(SEED)
    pictures = [_draw_picture(rng, number, pixels) for number in range(NUM_PICTURES)]
    for number in range(num_images):
        target = folder / f"class-{number % NUM_CLASSES:02d}"
        target.mkdir(parents=True, exist_ok=True)
        comment = rng.bytes(int(rng.integers(SHORTEST_COMMENT, LONGEST_COMMENT)))
        picture = pictures[int(rng.integers(NUM_PICTURES))]
        (target / f"{number:06d}.jpg").write_bytes(_comment_on(picture, comment))


def _draw_picture(rng: np.random.Generator, number: int, pixels: tuple[int, int]) -> bytes:
    width, height = pixels
    noise = rng.integers(0, 256, (height, width + 8 * number, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, "JPEG", quality=QUALITY)
    return file.getvalue()


def _comment_on(jpeg: bytes, comment: bytes) -> bytes:
    """Put a comment segment after the first one, where a camera's program would put it."""
    (size,) = struct.unpack(">H", jpeg[4:6])
    first_end = 4 + size
    return jpeg[:first_end] + b"\xff\xfe" + struct.pack(">H", len(comment) + 2) + comment + jpeg[first_end:]


def produce(raw: RawSource, is_quick: bool) -> None:
    """Make one source into a fresh folder."""
    if raw.source is None:
        raise ValueError(f"{raw.name} is made in memory")
    shutil.rmtree(raw.source.parent, ignore_errors=True)
    raw.source.parent.mkdir(parents=True)
    if raw.dataset is None:
        write_images(raw.source, raw.num_records, raw.pixels)
    else:
        spec = replace(list_datasets(is_quick)[raw.dataset], num_records=raw.num_records)
        if raw.source.suffix == ".csv":
            write_csv(raw.source, spec)
        else:
            write_parquet(raw.source, spec)
        labels = [make_columns(spec, shard)["label"] for shard in range(NUM_SHARDS)]
        np.save(raw.source.parent / "labels.npy", np.concatenate(labels))
    stamp_of(raw.source).write_text(json.dumps(raw.parameters, indent=1) + "\n")


def main() -> None:
    """Make one source, or a CSV of so many bytes at a path."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="csv, parquet, images or large")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--path", type=Path, help="of a large CSV")
    parser.add_argument("--bytes", type=int, help="of a large CSV")
    arguments = parser.parse_args()
    if arguments.name == "large":
        unfinished = arguments.path.with_suffix(".part")
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        write_csv(unfinished, list_datasets(False)["T"], arguments.bytes)
        unfinished.rename(arguments.path)
    else:
        produce(list_all_sources(arguments.quick)[arguments.name], arguments.quick)


if __name__ == "__main__":
    main()
