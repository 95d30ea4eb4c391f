"""SequenceExamples and the ways to open a file of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from penstock.schema.schema import Schema
from record_files import open_split
from wire.example import Feature, SequenceExample, write_sequence_example
from wire.fields import write_delimited as delimited

STEPS = ps.fields.Sequence("int64", None, "feature_list")


def record(context: dict[str, Feature] | None = None, **lists: list[Feature]) -> bytes:
    """Return a SequenceExample."""
    return write_sequence_example(SequenceExample(context or {}, lists))


def feature_lists(*entries: bytes) -> bytes:
    """Return field 2 of a SequenceExample with these map entries."""
    return delimited(2, b"".join(delimited(1, each) for each in entries))


def steps_of(split: Any, name: str) -> list[list[list[Any]]]:
    """Return the steps of a feature list, record by record."""
    return [[np.asarray(step).tolist() for step in sample[name]] for sample in split]


def open_each_way(path: Path, **declared: ps.fields.Field) -> Iterator[Any]:
    """Yield the split with an inferred schema, with declared fields, and with a declared schema."""
    yield open_split(path)
    yield open_split(path, fields=declared)
    yield open_split(path, schema=Schema(declared))
