"""Requests of conversions as earlier versions stored them: with other ones, data sets are not resumed."""

import json
from pathlib import Path

import pytest

import penstock as ps

FOLDER = Path(__file__).parent / "requests"
ROWS = {"id": list(range(40)), "age": [n / 2 for n in range(40)], "kind": ["a", "b"] * 20, "day": [7, 8] * 20}
OPTIONS = {
    "usual": {},
    "given": {
        "seed": 7,
        "shuffle": False,
        "split": "train=0.5,test=0.5",
        "group": "kind",
        "shard_bytes": 4096,
        "compression": "gzip",
        "on_error": "skip",
        "missing": ["-"],
        "nan": "value",
        "drop": ["day"],
        "rename": {"age": "years"},
    },
}


def convert(folder, name):
    """Return the request in the manifest of a conversion."""
    ps.convert(ROWS, folder, id="id", **OPTIONS[name])
    return json.loads((folder / "penstock.json").read_text())["request"]


@pytest.mark.parametrize("name", OPTIONS)
def test_request_equals_the_request_of_earlier_versions(name, tmp_path):
    expected = json.loads((FOLDER / f"{name}.json").read_text())
    assert convert(tmp_path / "pets", name) == expected
