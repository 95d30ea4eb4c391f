"""A small data set with inputs of several kinds, its pipelines, and models that take them, for the tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from penstock.transform.pipeline import Pipeline

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

NUM_RECORDS = 24
INPUTS = ("left", "right", "breed", "note", "photo")
TARGETS = ("adopted", "kind", "tags", "price", "stars")


def write_table(folder: Path) -> ps.Dataset:
    """Write records with five inputs and five targets: binary, three classes, sets, floats and ints."""
    rows = np.arange(NUM_RECORDS)
    columns: dict[str, Any] = {
        "left": rows / 8,
        "right": rows % 5 - 2.0,
        "breed": [("cat", "dog", "eel", "fox")[i % 4] for i in rows],
        "note": [" ".join(["word", "other", "third"][: 1 + i % 3]) for i in rows],
        "photo": [np.full((4, 4, 1), i % 3, np.float32) for i in rows],
        "adopted": [("no", "yes")[i % 2] for i in rows],
        "kind": [("a", "b", "c")[i % 3] for i in rows],
        "tags": [["x", "y", "z"][: i % 4] for i in rows],
        "price": 100 + 10 * (rows % 7).astype(np.float64),
        "stars": (rows % 3).astype(np.int64),
        "gain": 1.0 + rows % 2,
    }
    fields = {
        "note": ps.fields.Text(),
        "photo": ps.fields.Tensor((4, 4, 1), "float32"),
        "tags": ps.fields.Sequence("string"),
        "stars": ps.fields.Number("int64"),
        "gain": ps.fields.Number("float64"),
    }
    return ps.convert(columns, folder, fields=fields, target=list(TARGETS), split="train=1.0", seed=1)


def fit(table: ps.Dataset, inputs: tuple[str, ...], targets: tuple[str, ...], **overrides: Any) -> Pipeline:
    """Fit a pipeline with these inputs and targets alone."""
    chosen = {*inputs, *targets, *overrides}
    return Pipeline.fit(table, **{name: None for name in table.schema if name not in chosen}, **overrides)
