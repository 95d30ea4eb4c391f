"""The data of `scaling.py`: JPEGs, a table and texts as TFRecords, made by one process per shard.

In: a folder, and whether a smoke test is enough. Out: `ScalingData` whose files exist. It needs NumPy, Pillow
and Penstock's core: neither TensorFlow nor pyarrow.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import shutil
import sys
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from datasets import R_FIELDS, T_FIELDS, Field
from fitted import Fitted
from photos import PhotoSpec

SEED = 20_240_817
NUM_SHARDS = 16
HEIGHT, WIDTH, SIDE = 375, 500, 224
NUM_CLASSES = 10
NUM_PHOTOS = 256  # that records repeat
NUM_CATEGORIES = 300
LARGEST_INT = 100_000
NUM_WORDS = 30_000
MEAN_WORDS = 230
SENTENCE_WORDS = 17
IMAGE_FIELDS = (Field("image", "bytes"), Field("label", "int64"))
# Increase it when this module makes something else from the same parameters.
GENERATION = 1


@dataclass(frozen=True)
class ScalingData:
    """One kind of data.

    Attributes:
        name: "images", "table" or "text".
        fields: Fields of a record.
        num_records: Number of records; a multiple of the largest batch, so that all batches are full.
        num_distinct: Number of distinct images.
        folder: Folder of the files.
    """

    name: str
    fields: tuple[Field, ...]
    num_records: int
    num_distinct: int
    folder: Path

    @property
    def files(self) -> list[str]:
        """Paths of the TFRecord files."""
        return [str(self.shard(number)) for number in range(NUM_SHARDS)]

    @property
    def pipeline(self) -> Path:
        """File of the fitted pipeline."""
        return self.folder / "pipeline.json"

    @property
    def photos(self) -> PhotoSpec:
        """Images for one batch of the largest size, as the feeds of `image_feeds` expect them."""
        return PhotoSpec(self.name, HEIGHT, WIDTH, "jpeg", NUM_PHOTOS, 0.0, self.folder)

    @cached_property
    def fitted(self) -> Fitted:
        """Vocabularies, means and variances of the pipeline, for feeds other than Penstock's."""
        import penstock as ps  # noqa: PLC0415 - only workers need it

        vocabularies, means, variances = {}, {}, {}
        for name, transform in ps.Pipeline.load(self.pipeline).transforms.items():
            if name in ("label", "image"):
                continue
            found: Any = transform.fitted
            if isinstance(transform, ps.transform.Scale):
                means[name], variances[name] = float(found.shift[0]), float(found.factor[0]) ** -2
            else:
                words = found.vocabulary if isinstance(transform, ps.transform.Tokenize) else found.values
                vocabularies[name] = [str(word) for word in words]
        return Fitted(vocabularies, means, variances, [])

    def shard(self, number: int) -> Path:
        return self.folder / "shards" / f"{self.name}-{number:05d}-of-{NUM_SHARDS:05d}.tfrecord"

    @property
    def parameters(self) -> dict[str, object]:
        """Everything that the files depend on; written last."""
        return {
            "name": self.name,
            "num_records": self.num_records,
            "num_distinct": self.num_distinct,
            "generation": GENERATION,
        }

    def is_complete(self) -> bool:
        """Whether the files were made from these parameters, to the end."""
        try:
            return bool(json.loads((self.folder / "parameters.json").read_text()) == self.parameters)
        except (OSError, ValueError):
            return False


def list_data(folder: Path, is_quick: bool) -> dict[str, ScalingData]:
    """Describe all data at its full size, or at one that a smoke test can afford."""
    images, distinct, rows, texts = (256, 16, 16_384, 1_024) if is_quick else (8_192, 256, 262_144, 32_768)
    folder = folder / "quick" if is_quick else folder
    kinds = (
        ScalingData("images", IMAGE_FIELDS, images, distinct, folder / "images"),
        ScalingData("table", T_FIELDS, rows, 0, folder / "table"),
        ScalingData("text", R_FIELDS, texts, 0, folder / "text"),
    )
    return {data.name: data for data in kinds}


def ensure_data(data: ScalingData) -> None:
    """Make the files unless they exist."""
    if data.is_complete():
        return
    print(f"making {data.num_records:,} records ({data.name}) in {data.folder}", file=sys.stderr, flush=True)
    shutil.rmtree(data.folder, ignore_errors=True)
    (data.folder / "shards").mkdir(parents=True)
    # The parent has no threads, so that processes can be forked; they inherit what it has imported.
    with multiprocessing.get_context("fork").Pool(len(os.sched_getaffinity(0))) as pool:
        if data.name == "images":
            drawn = pool.map(make_photo, range(data.num_distinct), chunksize=1)
            files = [drawn[number % data.num_distinct] for number in range(NUM_PHOTOS)]
            np.save(data.photos.pictures, np.frombuffer(b"".join(files), np.uint8))
            np.save(data.photos.offsets, np.cumsum([0, *map(len, files)]))
        pool.map(partial(_write_shard, data), range(NUM_SHARDS), chunksize=1)
        # In a separate process as well: fitting starts threads.
        pool.apply(_fit, (data,))
    (data.folder / "parameters.json").write_text(json.dumps(data.parameters))


def make_photo(seed: int) -> bytes:
    """Draw a smooth image with noise, and encode it as a JPEG of about 48 KB."""
    from PIL import Image  # noqa: PLC0415 - only images need it

    rng = np.random.default_rng(seed)
    few = Image.fromarray(rng.integers(0, 255, (24, 32, 3), dtype=np.uint8))
    smooth = np.asarray(few.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)).astype(np.int16)
    noisy = np.clip(smooth + rng.integers(-12, 12, smooth.shape), 0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(noisy).save(file, "JPEG", quality=85)
    return file.getvalue()


def _fit(data: ScalingData) -> None:
    from scaling_feeds.penstock_loader import fit_pipeline  # noqa: PLC0415

    fit_pipeline(data).save(data.pipeline)


def _write_shard(data: ScalingData, number: int) -> None:
    """Draw the columns of one shard, and write them as framed records."""
    import penstock as ps  # noqa: PLC0415
    from penstock import _native  # noqa: PLC0415
    from penstock.columns import Bytes, Dense  # noqa: PLC0415
    from penstock.encode.records import RecordEncoder  # noqa: PLC0415 - ps.convert needs pyarrow

    num_rows = data.num_records // NUM_SHARDS
    drawn = _DRAW[data.name](data, number * num_rows, num_rows, np.random.default_rng([SEED, number]))
    kinds = {"float": ps.fields.Number(), "int64": ps.fields.Number("int64"), "bytes": ps.fields.Bytes()}
    schema = ps.Schema({field.name: kinds[field.kind] for field in data.fields})
    columns = {
        name: Bytes.from_values(values) if isinstance(values, list) else Dense(values, None)
        for name, values in drawn.items()
    }
    bodies = RecordEncoder(schema).encode(columns, num_rows)
    arenas, starts, sizes = [bodies.arena], bodies.offsets[:-1], np.diff(bodies.offsets)
    frames, *_ = _native.compose(arenas, np.zeros(num_rows, np.uint32), starts, sizes, [], False)
    data.shard(number).write_bytes(memoryview(frames))


def _draw_images(data: ScalingData, first: int, num_rows: int, _rng: np.random.Generator) -> dict[str, Any]:
    files, offsets = np.load(data.photos.pictures), np.load(data.photos.offsets).tolist()
    numbers = [row % NUM_PHOTOS for row in range(first, first + num_rows)]
    labels = np.arange(first, first + num_rows) % NUM_CLASSES
    return {"image": [files[offsets[i] : offsets[i + 1]].tobytes() for i in numbers], "label": labels}


def _draw_table(data: ScalingData, _first: int, num_rows: int, rng: np.random.Generator) -> dict[str, Any]:
    words = [b"v%d" % number for number in range(NUM_CATEGORIES)]
    columns: dict[str, Any] = {}
    for field in data.fields:
        if field.kind == "float":
            columns[field.name] = rng.normal(size=num_rows).astype(np.float32)
        elif field.kind == "bytes":
            columns[field.name] = [words[i] for i in rng.integers(0, NUM_CATEGORIES, num_rows).tolist()]
        else:
            highest = 2 if field.name == "label" else LARGEST_INT
            columns[field.name] = rng.integers(0, highest, num_rows)
    return columns


def _draw_text(_data: ScalingData, _first: int, num_rows: int, rng: np.random.Generator) -> dict[str, Any]:
    """Draw words by Zipf's law, with a capital and a full stop about every 17 words."""
    letters = np.random.default_rng(SEED).integers(97, 123, (NUM_WORDS, 10), dtype=np.uint8)
    words = [bytes(row[: 2 + number % 9]).decode() for number, row in enumerate(letters)]
    forms = [*words, *(f"{word}. {word.capitalize()}" for word in words)]
    edges = np.cumsum(1 / (np.arange(NUM_WORDS) + 3.7))
    texts = []
    for length in np.maximum(5, rng.exponential(MEAN_WORDS, num_rows)).astype(int).tolist():
        codes = np.searchsorted(edges, rng.random(length) * edges[-1]).clip(max=NUM_WORDS - 1)
        codes += NUM_WORDS * (rng.random(length) < 1 / SENTENCE_WORDS)
        texts.append(" ".join([forms[code] for code in codes.tolist()]).encode())
    return {"text": texts, "label": rng.integers(0, 2, num_rows)}


_DRAW = {"images": _draw_images, "table": _draw_table, "text": _draw_text}
