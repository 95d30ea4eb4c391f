"""A data set with a field of every form, converted once."""

import pytest

import penstock as ps
from penstock.fields import Sequence, Tensor, Text

NUM_ROWS = 120


def sample_of(row: int) -> dict:
    """Return a sample; every fourth lacks `age`, every fifth `size`."""
    sample = {
        "number": row,
        "age": float(row % 7) if row % 4 else None,
        "size": "sml"[row % 3] if row % 5 else None,
        "breed": ["dog", "cat", "dog", "eel"][row % 4],
        "note": f"a note on row {row % 10}",
        "tags": ["x", "y", "z"][: row % 4],
        "steps": list(range(row % 5)),
        "box": [float(row), 1.0],
        "label": "yes" if row % 3 else "no",
    }
    return {name: value for name, value in sample.items() if value is not None}


@pytest.fixture(scope="session")
def shelter(tmp_path_factory):
    """The data set, opened."""
    folder = tmp_path_factory.mktemp("shelter") / "data"
    fields = {
        "note": Text(),
        "tags": Sequence("string"),
        "steps": Sequence("int64"),
        "box": Tensor((2,)),
    }
    samples = [sample_of(row) for row in range(NUM_ROWS)]
    return ps.convert(samples, folder, target="label", fields=fields, split="train=0.7,test=0.3")


@pytest.fixture(scope="session")
def train(shelter):
    """Its train split, as columns."""
    return shelter["train"].columns()
