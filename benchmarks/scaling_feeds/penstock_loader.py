"""Penstock: the files opened, the pipeline that was fitted on them, a loader with its defaults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import penstock as ps
from fitted import NUM_IDS, NUM_TOKENS
from scaling_data import NUM_CLASSES, SIDE, ScalingData

if TYPE_CHECKING:
    from scaling_feeds import Task

SHUFFLE_SEED = 7


def open_split(data: ScalingData) -> Any:
    """Open all files as one split, with every field declared."""
    fields: dict[str, Any] = {}
    for field in data.fields:
        if field.name == "label":
            fields[field.name] = ps.fields.Category("int64", role="target")
        elif field.kind == "bytes":
            kinds = {"image": ps.fields.Image("jpeg"), "text": ps.fields.Text()}
            fields[field.name] = kinds.get(field.name) or ps.fields.Category()
        else:
            fields[field.name] = ps.fields.Number("int64") if field.kind == "int64" else ps.fields.Number()
    dataset = ps.open(data.files, fields=fields)
    return dataset[dataset.splits[0]]


def fit_pipeline(data: ScalingData) -> ps.Pipeline:
    """Fit what all feeds of this data use."""
    overrides: dict[str, Any] = {}
    if data.name == "images":
        overrides["image"] = ps.transform.Image(size=SIDE)
        overrides["label"] = ps.transform.Encode(vocabulary=list(range(NUM_CLASSES)))
    elif data.name == "text":
        overrides["text"] = ps.transform.Tokenize(length=NUM_IDS, vocabulary_size=NUM_TOKENS)
    return ps.Pipeline.fit(open_split(data), **overrides)


class Feed:
    """Makes loaders; their batches are arrays in their final place."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._split = open_split(task.data)
        self._pipeline = ps.Pipeline.load(task.data.pipeline)

    def epochs(self) -> Iterator[Any]:
        """Iterate over one epoch after the other."""
        return iter(
            self._split.loader(
                self._pipeline,
                batch_size=self._task.batch_size,
                shuffle=True,
                seed=SHUFFLE_SEED,
                num_threads=self._task.num_cores,
                repeat=None,
            )
        )
