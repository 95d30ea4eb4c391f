"""Thirty samples with a field of every form, as payloads and as they must come back."""

import numpy as np

from record_files import example
from wire.example import Feature

ROWS = 30


def sample_of(row: int) -> dict:
    """Return a sample as it must come back; every third lacks `note`."""
    sample = {
        "row": row,
        "ratio": row / 8,
        "name": f"näme {row}",
        "blob": bytes([255, row]),
        "box": np.array([row, 1, 2, 3], np.float32),
        "counts": np.arange(row % 5),
        "tags": [f"tag {i}" for i in range(row % 4)],
    }
    return {**sample, "note": row * 10} if row % 3 else sample


def payload_of(row: int) -> bytes:
    sample = sample_of(row)
    stored = {
        "box": Feature("float", sample["box"].tolist()),
        "counts": Feature("int64", sample["counts"].tolist()),
        "tags": Feature("bytes", [tag.encode() for tag in sample["tags"]]),
    }
    return example(**{**sample, **stored})


PAYLOADS = [payload_of(row) for row in range(ROWS)]


def assert_same(sample: dict, row: int) -> None:
    expected = sample_of(row)
    assert sample.keys() == expected.keys()
    for name, value in expected.items():
        got = sample[name]
        assert type(got) is type(value)
        if isinstance(value, np.ndarray):
            assert got.dtype == value.dtype
            assert got.tolist() == value.tolist()
        else:
            assert got == value
