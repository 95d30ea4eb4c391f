"""Surveys made of the few counts that matter to a test."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.schema.survey import Survey

# What the core reports of a key under which it has counted nothing.
NOTHING: dict[str, Any] = {
    "int64": 0,
    "float": 0,
    "bytes": 0,
    "unset": 0,
    "min_len": 2**63 - 1,
    "max_len": 0,
    "int_min": 2**63 - 1,
    "int_max": -(2**63),
    "int_values": [],
    "min_bytes": 2**63 - 1,
    "max_bytes": 0,
    "num_values": 0,
    "utf8": 0,
    "jpeg": 0,
    "png": 0,
    "webp": 0,
    "gif": 0,
    "bmp": 0,
    "strings": [],
    "distinct": 0,
    "mean_words": 1.0,
}

Counts = dict[str, dict[str, Any]]
MakeSurvey = Callable[..., Survey]


def count_fields(fields: Counts | None) -> Counts:
    return {key: {**NOTHING, **counts} for key, counts in (fields or {}).items()}


def survey_of(
    fields: Counts | None = None, lists: Counts | None = None, records: int = 100, **totals: int
) -> Survey:
    """Survey `records` records; each field is given by its counts above 0."""
    counts = {
        "records": records,
        "unparsable": 0,
        "featureless": 0,
        "empty": 0,
        "with_lists": records if lists else 0,
        "fields": count_fields(fields),
        "lists": {key: {"min_steps": 0, "max_steps": 9, **c} for key, c in count_fields(lists).items()},
        **totals,
    }
    return Survey.from_counts(counts)


@pytest.fixture
def survey() -> MakeSurvey:
    return survey_of


ONE = {"min_len": 1, "max_len": 1}


def blobs(min_bytes: int, max_bytes: int, **counts: Any) -> dict[str, Any]:
    """Count one byte string in each of 100 records."""
    lengths = {"min_bytes": min_bytes, "max_bytes": max_bytes}
    return {"bytes": 100, **ONE, "num_values": 100, **lengths, "strings": None, **counts}


FIELDS: Counts = {
    "age": {"int64": 100, **ONE, "int_values": None},
    "label": {"int64": 100, **ONE, "int_values": [0, 1]},
    "price": {"float": 90, **ONE},
    "photo": blobs(500, 900, jpeg=100),
    "pictures": blobs(500, 900, jpeg=60, png=39),
    "raw": blobs(16, 16),
    "ragged_raw": blobs(16, 20),
    "breed": blobs(3, 3, utf8=100, strings=[b"cat", b"dog"]),
    "grid": {"float": 100, "min_len": 4, "max_len": 4},
    "flags": {"int64": 100, "min_len": 4, "max_len": 4, "int_values": [0, 1]},
    "few": {"int64": 100, "min_len": 1, "max_len": 3, "int_values": [0, 1]},
    "mixed": {"int64": 10, "float": 90, **ONE},
    "either": blobs(16, 16, bytes=10, float=90, max_len=4, num_values=10),
    "never": {"unset": 100},
    "": {"float": 100, **ONE},
}

LISTS: Counts = {
    "steps": {"records": 100, "int64": 300, **ONE},
    "boxes": {"records": 80, "float": 300, "min_len": 4, "max_len": 4},
    "age": {"records": 100, "int64": 300, **ONE},
}


@pytest.fixture
def pets() -> Survey:
    """A hundred Examples."""
    return survey_of(FIELDS)


@pytest.fixture
def series() -> Survey:
    """A hundred SequenceExamples."""
    return survey_of(FIELDS, LISTS)
