"""The rows of a check: stored once as records, so that both forms of a model read the same values.

In: data of any kind. Out: a TFRecord file of at most 256 rows, and the inputs of a model for each batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Columns, take_rows
from penstock.dataset import USUAL_SPLITS, Dataset, Split
from penstock.dataset import open as open_dataset
from penstock.decode.sample import Sample
from penstock.encode.records import RecordEncoder
from penstock.errors import ExportError, OptionError, PenstockError
from penstock.jobs.evaluate.labelled import frame_records, name_fields
from penstock.jobs.given_dataset import open_as_trained
from penstock.jobs.predict.new_data import open_new_data
from penstock.jobs.predict.new_rows import DataBlock, choose_batch_size
from penstock.jobs.predict.raw_layout import Recipe
from penstock.model.finite_values import find_faults
from penstock.schema.schema import Schema
from penstock.settings.prediction import CHECKED_ROWS, PredictOptions
from penstock.source.recognition import is_dataset
from penstock.training.run import Run
from penstock.transform.pipeline import Pipeline
from penstock.transform.pipeline_parts import without_targets

FILE: Final = "rows.tfrecord"
_SCHEMA: Final = "schema.json"
_ADVICE: Final = "Pass other data: `check_data=DATA`; or leave out the check: `check=False`."


@dataclass(frozen=True)
class CheckRows:
    """Stored rows.

    Attributes:
        split: Split of the stored records.
        batch_size: Number of rows per batch.
    """

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
