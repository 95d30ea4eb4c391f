"""Batches with the row numbers and the stored values of their records, and what predicts them.

In: a fitted pipeline. Out: a pipeline for a loader whose batches are `EvaluationBatch`es. Skipped records
make a batch shorter: its row numbers show which are left.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from math import prod
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.batch.build import LoadedSplit, make_loader
from penstock.columns import CodedColumns, concat_rows, take_rows
from penstock.decode.row_columns import NativeRows
from penstock.errors import OptionError
from penstock.schema.schema import Schema
from penstock.settings.loading import LoadOptions
from penstock.transform.assembly import Assembly, Faults
from penstock.transform.builder import BatchBuilder
from penstock.transform.draws import Draws
from penstock.transform.output import DTYPES, Output
from penstock.transform.pipeline import Pipeline

Inputs: TypeAlias = Mapping[str, NDArray[Any]]
Outputs: TypeAlias = Mapping[str, NDArray[Any]]


@runtime_checkable
class StreamPredictor(Protocol):
    """A model that predicts several batches at the same time."""

    def predict_each(self, batches: Iterable[Inputs]) -> Iterator[Outputs]:
        """Yield the predictions of batches, in order. The arrays of a batch may change after the next one."""


Predict: TypeAlias = Callable[[Inputs], Outputs] | StreamPredictor
"""Predicts a batch, or batches in order: from inputs by name to predictions by target."""


def predict_each(predict: Predict, batches: Iterable[Inputs]) -> Iterator[Outputs]:
    """Yield the predictions of batches, in order."""
    return predict.predict_each(batches) if isinstance(predict, StreamPredictor) else map(predict, batches)


_KEY: Final = "traced"
_LEAST_BATCH, _USUAL_BATCH = 16, 256
_BATCH_BYTES: Final = 16 << 20  # of inputs: activations of the model take a multiple of that
_USUAL_LENGTH: Final = 256  # assumed for texts and lists of any length


@dataclass(frozen=True)
class EvaluationBatch:
    """A batch with the row numbers and the stored values of its records.

    Inputs and targets are empty if they were not requested. The columns are the requested fields, or all that
    the pipeline reads.
    """

    rows: NDArray[np.int64]
    inputs: dict[str, Any]
    targets: dict[str, Any]
    columns: CodedColumns

    def arrays(self) -> list[NDArray[Any]]:
        """Return all arrays of the batch: loaders limit prefetching by their memory."""
        values = [*self.inputs.values(), *self.targets.values(), *self.columns.values()]
        return [
            array
            for value in values
            for array in ([value] if isinstance(value, np.ndarray) else value.arrays())
        ]


class EvaluationPipeline:
    """A pipeline for evaluation: without weights, with row numbers, and with stored values of some fields.

    A pipeline that is not applied makes batches of all stored values, without inputs and targets.
    """

    def __init__(self, pipeline: Pipeline, stored: Iterable[str] = (), *, is_applied: bool = True) -> None:
        self._pipeline = pipeline.assembly
        self._stored = tuple(stored)
        self._is_applied = is_applied
        self.fields = tuple(dict.fromkeys((*pipeline.fields, *self._stored)))
        self.inputs = pipeline.inputs
        self.targets = pipeline.targets
        self.weights: dict[str, Output] = {}
        self.augments = pipeline.assembly.augments
        self.prepares = pipeline.assembly.prepares
        self.prepare_to_keep = self._pipeline.prepare_to_keep
        self.measure = self._pipeline.measure
        # Fields whose stored values are requested keep their strings.
        tables = self._pipeline.dictionaries
        self.dictionaries = {name: table for name, table in tables.items() if name not in self._stored}

    def fingerprint(self) -> str:
        """Return the fingerprint of the pipeline."""
        return self._pipeline.fingerprint()

    def check_schema(self, schema: Schema) -> None:
        """Raise an error for data whose fields do not fit the pipeline."""
        self._pipeline.check_schema(schema)

    def begin(self, num_rows: int, num_parts: int) -> BatchBuilder:
        """Return a batch in the making, whose rows come in parts."""
        inner = self._pipeline.begin(num_rows, num_parts) if self._is_applied else None
        return _EvaluationBuilder(self._pipeline, inner, self._stored, num_parts)


class _EvaluationBuilder:
    """A batch for evaluation in the making; `inner` is the batch of the pipeline, if it is applied."""

    def __init__(
        self, pipeline: Assembly, inner: BatchBuilder | None, stored: tuple[str, ...], num_parts: int
    ) -> None:
        self._pipeline = pipeline
        self._inner = inner
        self._stored = stored
        self._columns: list[CodedColumns] = [{}] * num_parts

    def begin_native(self, source: NativeRows, num_parts: int) -> _native.BatchSlices | None:
        """Return the parts of the batch for the core to make, unless stored values are requested."""
        return None if self._inner is None or self._stored else self._inner.begin_native(source, num_parts)

    def prepare(self, first: int, columns: CodedColumns, draws: Draws | None) -> tuple[CodedColumns, Faults]:
        """Run the expensive part of the pipeline."""
        if self._inner is None:
            return self._pipeline.prepare(columns, draws)
        return self._inner.prepare(first, columns, draws)

    def fill(self, part: int, first: int, columns: CodedColumns, num_rows: int, draws: Draws | None) -> None:
        """Transform the rows of a part, and keep their stored values."""
        if self._inner is None:
            self._columns[part] = columns
            return
        self._inner.fill(part, first, columns, num_rows, draws)
        self._columns[part] = {name: columns[name] for name in self._stored}

    def finish(
        self, draws: Draws | None, chosen: NDArray[np.int64] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Return the batch as a single input."""
        if draws is None:
            raise OptionError("draws", expected="the draws of a loader", got="None")
        inputs, targets = ({}, {}) if self._inner is None else self._inner.finish(draws, chosen)[:2]
        columns: CodedColumns = concat_rows(self._columns)
        if chosen is not None:
            columns = take_rows(columns, chosen)
        return {_KEY: EvaluationBatch(draws.records, inputs, targets, columns)}, {}, {}


def fit_batch_size(pipeline: Pipeline) -> int:
    """Return the number of records to predict at once: up to 256 that fit into 16 MiB, at least 16."""
    num_bytes = sum(
        np.dtype(each.dtype).itemsize * prod(dim or _USUAL_LENGTH for dim in each.shape)
        for each in pipeline.inputs.values()
        if each.dtype in DTYPES
    )
    return max(_LEAST_BATCH, min(_USUAL_BATCH, _BATCH_BYTES // max(1, num_bytes)))


def read_batches(
    source: LoadedSplit, pipeline: EvaluationPipeline, options: LoadOptions
) -> Generator[EvaluationBatch]:
    """Yield the batches of one epoch of a split."""
    loader = make_loader([source], pipeline, options)
    with closing(iter(loader)) as batches:
        for batch in batches:
            yield batch[0][_KEY]
