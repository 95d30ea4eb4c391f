"""Permutation importance: how much the main score drops when a field is permuted among the records.

In: predictions, a pipeline, a sample of a split. Out: `Importance`, by field and by modality.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.batch.build import LoadedSplit
from penstock.columns import CodedColumn, concat_rows, take_rows
from penstock.model.task import Task
from penstock.score.evaluation_batches import (
    EvaluationPipeline,
    Inputs,
    Predict,
    predict_each,
    read_batches,
)
from penstock.score.scores import Number, score_main
from penstock.settings.loading import LoadOptions
from penstock.settings.prediction import EvaluateOptions
from penstock.settings.training import PARTS
from penstock.transform.draws import Draws
from penstock.transform.pipeline import Pipeline

_MODALITIES: Final = {"number": "numbers", "category": "categories", "date": "dates"}


def find_inputs(pipeline: Pipeline) -> tuple[str, ...]:
    """Return the fields that feed inputs, including those that a group or a map takes."""
    schema = pipeline.schema
    return tuple(name for name in pipeline.fields if schema[name].role in ("input", "id", "unused"))


def find_modalities(pipeline: Pipeline) -> dict[str, tuple[str, ...]]:
    """Return the fields of each modality: numbers, categories, dates, text, image, sequence, tensor."""
    found: dict[str, tuple[str, ...]] = {}
    for name in find_inputs(pipeline):
        kind = pipeline.schema[name].type_name
        kind = _MODALITIES.get(kind, kind)
        found[kind] = (*found.get(kind, ()), name)
    return found


def find_parts(pipeline: Pipeline) -> dict[str, tuple[str, ...]]:
    """Return the fields of each part of the inputs, in the order of `PARTS`.

    The members of a group belong to one part: to the table, if they are of several.
    """
    types = {name: pipeline.schema[name].type_name for name in find_inputs(pipeline)}
    parts = {name: kind if kind in PARTS else "table" for name, kind in types.items()}
    owners = {
        output.name: name for name, each in pipeline.transforms.items() for output in each.outputs(name)
    }
    members: dict[str, set[str]] = {}
    for group in pipeline.to_json()["groups"]:
        fields = set().union(*(members.get(each, {owners.get(each, each)}) for each in group["members"]))
        members[group["name"]] = fields
        if len({parts[name] for name in fields if name in parts}) > 1:
            parts |= dict.fromkeys(fields.intersection(parts), "table")
    return {
        part: tuple(name for name, each in parts.items() if each == part)
        for part in PARTS
        if part in parts.values()
    }


Drops: TypeAlias = dict[str, Number]

NUM_REPEATS: Final = 3
MOST_BYTES: Final = 256 << 20
"""Maximum size of the sample in memory. Concatenating its batches needs twice as much for a moment."""
_MOST_PASSED_BYTES: Final = 4 << 30  # through the model, in all passes together
_LEAST_RECORDS: Final = 200
_READ_RECORDS: Final = 64


@dataclass(frozen=True)
class ImportanceSample:
    """Records of a split in memory, as they are stored, images decoded.

    Attributes:
        rows: Numbers of the records in the split, in any order.
        columns: Values by field; names of columns that `prepare` made begin with the name of the field.
    """

    rows: NDArray[np.int64]
    columns: dict[str, CodedColumn]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Importance:
    """Drop of the main score without a field or a modality.

    Attributes:
        records: Number of records that it was measured on.
        fields: Drop of the main score for each field, by target.
        modalities: Drop of the main score for all fields of a modality at once, by target.
        parts: Drop of the main score for all fields of a part at once, by target; empty for a single part.
    """

    records: int
    fields: dict[str, Drops]
    modalities: dict[str, Drops]
    parts: dict[str, Drops] = field(default_factory=dict)


def draw_sample(
    source: LoadedSplit, pipeline: Pipeline, scored: NDArray[np.int64], most: int, seed: int
) -> ImportanceSample:
    """Return records drawn at random, as many as memory and time allow.

    `scored`: rows that have predictions, ascending; others are not drawn.
    """
    options = LoadOptions(
        batch_size=min(_READ_RECORDS, most),
        shuffle="global",
        seed=seed,
        augment=False,
        prefetch_bytes=8 << 20,
    )
    num_units = len({*_list_units(pipeline)})
    num_passes = 1 + NUM_REPEATS * num_units
    rows: list[NDArray[np.int64]] = []
    pieces: list[dict[str, CodedColumn]] = []
    num_bytes = num_rows = 0
    batches = read_batches(source, EvaluationPipeline(pipeline, is_applied=False), options)
    for batch in batches:
        is_scored = scored[np.searchsorted(scored, batch.rows).clip(max=len(scored) - 1)] == batch.rows
        kept = np.flatnonzero(is_scored)[: most - num_rows]
        # Copies, as the loader reuses its memory.
        pieces.append(dict(take_rows(batch.columns, kept)))
        rows.append(batch.rows[kept])
        num_rows += len(kept)
        num_bytes += sum(column.nbytes for column in pieces[-1].values())
        is_expensive = num_rows >= _LEAST_RECORDS and num_bytes * num_passes > _MOST_PASSED_BYTES
        if num_rows >= most or num_bytes > MOST_BYTES or is_expensive:
            break
    batches.close()
    return ImportanceSample(np.concatenate(rows), concat_rows(pieces))


def measure_importance(
    predict: Predict,
    pipeline: Pipeline,
    sample: ImportanceSample,
    tasks: Mapping[str, Task],
    truths: Mapping[str, NDArray[Any]],
    options: EvaluateOptions,
    on_pass: Callable[[int, int], None] | None = None,
) -> Importance:
    """Permute each field among the records, and then all fields of a modality or a part together.

    Everything made from a field is permuted with it: its mask, its indicator, its part of a group or a map.
    The fields of a modality or a part are permuted together, so that they stay consistent with each other and
    lose only their relation to the record. Three permutations are drawn, the same three for every field.

    `truths`: true values of the records of the sample, by target. `options`: number of records that are
    predicted at once, and random seed of the permutations. `on_pass`: called with the number of finished
    passes and the number of all passes.
    """
    scorer = _SampleScorer(predict, pipeline, sample, tasks, truths, options.batch_size or 1)
    modalities, parts = find_modalities(pipeline), find_parts(pipeline)
    units = _list_units(pipeline)
    orders = [
        np.random.default_rng([options.seed, each]).permutation(len(sample)) for each in range(NUM_REPEATS)
    ]
    base = scorer.score((), None)
    drops: dict[tuple[str, ...], Drops] = {}
    for number, unit in enumerate(units):
        if unit not in drops:  # a modality of one field is that field, a part often one modality
            found = [scorer.score(unit, order) for order in orders]
            drops[unit] = {name: _mean_drop(base[name], [each[name] for each in found]) for name in tasks}
        if on_pass is not None:
            on_pass(number + 1, len(units))

    def select(named: Mapping[str, tuple[str, ...]]) -> dict[str, Drops]:
        return {target: {name: drops[unit][target] for name, unit in named.items()} for target in tasks}

    return Importance(
        len(sample),
        select({name: (name,) for name in find_inputs(pipeline)}),
        select(modalities),
        select(parts) if len(parts) > 1 else {},
    )


def _list_units(pipeline: Pipeline) -> list[tuple[str, ...]]:
    """Return the fields that are permuted together: each one, each modality, and each of several parts."""
    units = [(name,) for name in find_inputs(pipeline)]
    parts = find_parts(pipeline)
    return [*units, *find_modalities(pipeline).values(), *(parts.values() if len(parts) > 1 else ())]


class _SampleScorer:
    """Predicts the sample, with some fields permuted, and scores it."""

    def __init__(
        self,
        predict: Predict,
        pipeline: Pipeline,
        sample: ImportanceSample,
        tasks: Mapping[str, Task],
        truths: Mapping[str, NDArray[Any]],
        batch_size: int,
    ) -> None:
        self._predict = predict
        self._pipeline = pipeline
        self._sample = sample
        self._tasks = tasks
        self._truths = truths
        self._batch_size = batch_size
        self._owners = {key: _find_owner(key, pipeline.fields) for key in sample.columns}

    def score(self, unit: Sequence[str], order: NDArray[np.int64] | None) -> Drops:
        """Return the main scores with the fields of `unit` taken from other records."""
        found = list(predict_each(self._predict, self._make_inputs(unit, order)))
        return {
            name: score_main(task, self._truths[name], np.concatenate([each[name] for each in found]))
            for name, task in self._tasks.items()
        }

    def _make_inputs(self, unit: Sequence[str], order: NDArray[np.int64] | None) -> Iterator[Inputs]:
        sample = self._sample
        for start in range(0, len(sample), self._batch_size):
            at = np.arange(start, min(start + self._batch_size, len(sample)), dtype=np.int64)
            moved = at if order is None else order[at]
            columns = {
                key: column.take(moved if self._owners[key] in unit else at)
                for key, column in sample.columns.items()
            }
            draws = Draws(0, 0, sample.rows[at], augments=False)
            inputs, _, _ = self._pipeline.apply(columns, len(at), draws)
            yield inputs


def _find_owner(key: str, fields: Sequence[str]) -> str:
    """Return the field of a column: the field of that name, or the longest name that it begins with."""
    return key if key in fields else max((name for name in fields if key.startswith(name)), key=len)


def _mean_drop(base: Number, found: Sequence[Number]) -> Number:
    numbers = [each for each in found if each is not None]
    if base is None or len(numbers) < len(found):
        return None
    return base - sum(numbers) / len(numbers)
