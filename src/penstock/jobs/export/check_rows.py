"""The rows of a check: stored once as records, so that both forms of a model read the same values.

In: data of any kind. Out: a TFRecord file of at most 256 rows; for images also rows with files of every kind,
which an export must decode to the same pixels as the run. `python -m penstock.jobs.export.check_rows EXPORT
ROWS [FILE:FUNCTION]` opens an export in a new process, with a user's own model, and writes what it makes of
the rows to `answers.npz` in their folder.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Columns, take_rows
from penstock.dataset import USUAL_SPLITS, Dataset, Split
from penstock.dataset import open as open_dataset
from penstock.decode.sample import Sample
from penstock.encode.records import RecordEncoder
from penstock.encode.strings import join_bytes
from penstock.errors import ExportError, MissingPackageError, OptionError, PenstockError
from penstock.export.manifest import open_export
from penstock.jobs.evaluate.labelled import frame_records, name_fields
from penstock.jobs.export.image_files import make_jpegs, make_pngs
from penstock.jobs.given_dataset import open_as_trained
from penstock.jobs.model_file import load_model
from penstock.jobs.predict.new_data import open_new_data
from penstock.jobs.predict.new_rows import DataBlock, choose_batch_size
from penstock.jobs.predict.raw_layout import Recipe
from penstock.model.batch_predictor import BatchPredictor
from penstock.model.usable_records import find_faults
from penstock.schema.schema import Schema
from penstock.settings.prediction import CHECKED_ROWS, PredictOptions
from penstock.source.recognition import is_dataset
from penstock.training.run import Run
from penstock.transform.base import need_fitted
from penstock.transform.image import Image
from penstock.transform.pipeline import Pipeline, without_targets

FILE: Final = "rows.tfrecord"
"""Name of the file of rows."""
ANSWERS: Final = "answers.npz"
_SCHEMA: Final = "schema.json"
_ADVICE: Final = "Pass other data: `check_data=DATA`; or leave out the check: `check=False`."
IMAGES: Final = "images.tfrecord"
"""Name of the file of rows with images."""

_REDUCED: Final = 3  # an image this many times as large as the output is decoded at a reduced size
_MOST_PIXELS: Final = 4_000_000  # of a made image


@dataclass(frozen=True)
class CheckRows:
    """Stored rows, and the number of rows per batch."""

    split: Split
    batch_size: int

    def samples(self) -> Iterator[list[Sample]]:
        """Yield the rows of each batch as dicts of Python values."""
        for start in range(0, len(self.split), self.batch_size):
            yield self.split[start : start + self.batch_size]

    def batches(self, pipeline: Pipeline) -> Iterator[tuple[Columns, dict[str, NDArray[Any]]]]:
        """Yield the stored columns of each batch, and the inputs that a pipeline without targets makes."""
        for start in range(0, len(self.split), self.batch_size):
            columns = self.split.columns(start, start + self.batch_size, pipeline.fields)
            num_rows = min(self.batch_size, len(self.split) - start)
            yield columns, pipeline.apply(columns, num_rows)[0]


def store_rows(run: Run, recipe: Recipe, data: object, folder: Path) -> CheckRows:
    """Write rows as records: the first ones of the data that the pipeline of the run accepts.

    `data`: data as for `penstock.predict`; None for the data of the run.
    """
    inputs = without_targets(run.pipeline)
    encoder: RecordEncoder | None = None
    num_rows = 0
    with (folder / FILE).open("wb") as file:
        for block in _read_blocks(_choose_data(run, recipe, data), inputs, recipe):
            chosen = np.arange(min(len(block), CHECKED_ROWS - num_rows))
            if len(chosen):
                columns = take_rows({name: block.columns[name] for name in inputs.fields}, chosen)
                encoder = encoder or RecordEncoder(name_fields(columns, inputs, recipe.schema))
                file.write(frame_records(encoder, columns, len(chosen)))
                num_rows += len(chosen)
            if num_rows == CHECKED_ROWS:
                break
    if encoder is None:
        expected = "at least one row that the model accepts"
        raise ExportError("data of the check", expected=expected, got="none", advice=_ADVICE)
    (folder / _SCHEMA).write_text(json.dumps(encoder.schema.to_json()))
    return open_rows(folder, inputs)


def open_rows(folder: Path, pipeline: Pipeline, name: str = FILE) -> CheckRows:
    """Return the rows of a file in the folder that `store_rows` wrote to."""
    schema = Schema.from_json(json.loads((folder / _SCHEMA).read_bytes()))
    split = open_dataset(folder / name, schema=schema)["all"]
    return CheckRows(split, choose_batch_size(pipeline))


def _read_blocks(several: Sequence[object], inputs: Pipeline, recipe: Recipe) -> Iterator[DataBlock]:
    """Yield the rows of data that the pipeline accepts."""
    for data in several:
        rows = open_new_data(data, inputs, recipe, PredictOptions(), choose_batch_size(inputs))
        for make in rows.blocks():
            block = make()
            block = block.without(find_faults(block.columns, inputs))
            yield block.without(inputs.assembly.prepare(block.columns, None)[1])


def _choose_data(run: Run, recipe: Recipe, data: object) -> Sequence[object]:
    """Return raw data, or the splits of stored data; first those that were not trained on."""
    if isinstance(data, Split) or (data is not None and not is_dataset(data)):
        return [data]
    try:
        given: Any = run.data if data is None else data
        dataset = given if isinstance(given, Dataset) else open_as_trained(given, recipe.schema)
    except PenstockError as error:
        if data is not None:
            raise
        raise OptionError(
            "data of the check",
            path=error.path,
            expected="the data that the run was trained on",
            got=f"an error: {error.what}",
            advice=_ADVICE,
        ) from error
    names = dict.fromkeys((*USUAL_SPLITS, "train", *dataset.splits))
    return [dataset[name] for name in names if name in dataset and len(dataset[name])]


@dataclass(frozen=True)
class CheckImages:
    """Rows with images of every kind, and the description of the image in each row, by field."""

    rows: CheckRows
    kinds: Mapping[str, Sequence[str]]

    def find_worst(
        self, name: str, expected: Sequence[NDArray[Any]], found: Sequence[NDArray[Any]], step: Any
    ) -> tuple[str, float]:
        """Return the kind of image whose pixels differ most, and by how much, in units of `step`."""
        one, other = (np.concatenate(list(each)).astype(np.float64) / step for each in (expected, found))
        if one.shape != other.shape:
            return self.kinds[name][0], float("inf")
        gaps = np.abs(one - other).reshape(len(one), -1).max(axis=1)
        worst = int(np.argmax(gaps))
        return self.kinds[name][worst], float(gaps[worst])


def store_images(rows: CheckRows, inputs: Pipeline, folder: Path) -> CheckImages | None:
    """Write rows whose images are files of every kind that the pipeline accepts; None if there is no image.

    Their other values come from the rows of the check.
    """
    made = {
        name: _make_files(name, transform)
        for name, transform in inputs.transforms.items()
        if isinstance(transform, Image) and name in inputs.inputs
    }
    num_rows = max((len(files) for files in made.values()), default=0)
    if not num_rows:
        return None
    stored = rows.split.columns(0, len(rows.split), inputs.fields)
    columns = dict(take_rows(stored, np.arange(num_rows) % len(rows.split)))
    chosen = {
        name: [files[row % len(files)] for row in range(num_rows)] for name, files in made.items() if files
    }
    columns |= {name: join_bytes(data for _, data in files) for name, files in chosen.items()}
    # A file that the pipeline refuses, as it is larger than `max_pixels`, is not compared.
    kept = np.delete(np.arange(num_rows), sorted(inputs.assembly.prepare(columns, None)[1]))
    if not len(kept):
        return None
    columns = dict(take_rows(columns, kept))
    (folder / IMAGES).write_bytes(frame_records(RecordEncoder(rows.split.schema), columns, len(kept)))
    kinds = {name: [files[row][0] for row in kept.tolist()] for name, files in chosen.items()}
    return CheckImages(open_rows(folder, inputs, IMAGES), kinds)


def _make_files(name: str, transform: Image) -> list[tuple[str, bytes]]:
    """Return files of the formats that a transform accepts, with their descriptions."""
    fitted = need_fitted(transform, name, transform.fitted)
    files = list(make_pngs()) if "png" in fitted.formats else []
    if "jpeg" in fitted.formats:
        # Odd sides: the last block of a reduced image is not whole.
        height, width = (_REDUCED * side + 5 for side in fitted.size)
        is_large = transform.drafts and height * width <= _MOST_PIXELS
        with suppress(MissingPackageError):  # the run cannot decode JPEGs here either
            files += make_jpegs((height, width) if is_large else None)
    return files


def ask_model(predictor: BatchPredictor, pipeline: Pipeline, folder: Path) -> dict[str, list[NDArray[Any]]]:
    """Return what a pipeline without targets and its model make of stored rows, one array per batch.

    Predictions are `output/NAME`, by target; inputs of the model `input/NAME`; and inputs made of the files
    of every kind `image/NAME`.
    """
    found: dict[str, list[NDArray[Any]]] = {}

    def add(kind: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        for name, array in arrays.items():
            found.setdefault(f"{kind}/{name}", []).append(np.asarray(array))

    for _, inputs in open_rows(folder, pipeline).batches(pipeline):
        add("input", inputs)
        add("output", predictor(inputs))
    if (folder / IMAGES).exists():
        for _, inputs in open_rows(folder, pipeline, IMAGES).batches(pipeline):
            images = (name for name in inputs if isinstance(pipeline.transforms.get(name), Image))
            add("image", {name: inputs[name] for name in images})
    return found


def _write_answers(path: Path, answers: Mapping[str, list[NDArray[Any]]]) -> None:
    """Write arrays by name and batch."""
    arrays = {f"{number}/{name}": each for name, all_ in answers.items() for number, each in enumerate(all_)}
    np.savez(path, **arrays)  # type: ignore[arg-type]


def read_answers(path: Path) -> dict[str, list[NDArray[Any]]]:
    """Return what `_write_answers` wrote."""
    found: dict[str, list[NDArray[Any]]] = {}
    with np.load(path) as stored:
        for key in sorted(stored, key=lambda each: int(each.partition("/")[0])):
            found.setdefault(key.partition("/")[2], []).append(stored[key])
    return found


def main(export: str, rows: str, model_file: str | None = None) -> None:
    """Open an export, predict the rows, and write the answers."""
    folder = Path(rows)
    opened = open_export(Path(export), None if model_file is None else partial(load_model, model_file))
    inputs = without_targets(opened.pipeline)
    _write_answers(folder / ANSWERS, ask_model(opened.predictor(), inputs, folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
