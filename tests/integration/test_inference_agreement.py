"""Raw columns and the TFRecords made of them are read as the same types."""

import numpy as np
import pytest

import penstock as ps
from penstock.fields import Category, Number, Text
from raising import mentions

ROWS = 20_000


def make_columns():
    draws = np.random.default_rng(5)

    def words(number, prefix="w"):
        return [f"{prefix}{each}" for each in draws.integers(0, number, ROWS)]

    return {
        "few": words(300),
        "many": words(3_000),
        "unique": [f"u{each}" for each in draws.permutation(ROWS)],
        "prose": [" ".join(row) for row in draws.choice(["a", "bb", "ccc"], (ROWS, 9))],
        "two_words": [f"{a} {b}" for a, b in zip(words(60), words(60), strict=True)],
        "amount": draws.integers(0, 5_000, ROWS),
        "rooms": draws.integers(0, 9, ROWS),
        "zip_code": draws.integers(10_000, 10_900, ROWS),
        "share": draws.random(ROWS).astype(np.float32),
        "row": np.arange(ROWS),
        "ratio": np.arange(ROWS).astype(np.float32),
        "day": np.arange(15_000, 15_000 + ROWS),
        "customer_id": np.where(np.arange(ROWS) % 5_000 == 0, 7, np.arange(ROWS) + 7),
    }


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """The schema of a table, and the schema of its shards without the manifest."""
    folder = tmp_path_factory.mktemp("agreement")
    data = ps.convert(make_columns(), folder / "data", split="all=1", num_threads=1)
    return data.schema, ps.open(move_shards(folder)).schema


def move_shards(folder):
    """Move the shards away from the manifest, and return their folder."""
    bare = folder / "bare"
    bare.mkdir()
    for shard in (folder / "data").glob("*.tfrecord"):
        shard.rename(bare / shard.name)
    return bare


def test_types_are_the_same(pair):
    raw, stored = pair
    assert {name: (field.type_name, field.role) for name, field in raw.items()} == {
        name: (field.type_name, field.role) for name, field in stored.items()
    }
    assert [name for name, field in raw.items() if field.role == "unused"] == ["row", "customer_id"]
    assert {name: type(field) for name, field in raw.items()} == {
        "few": Category,
        "many": Category,
        "unique": Text,
        "prose": Text,
        "two_words": Text,
        "amount": Number,
        "rooms": Number,
        "zip_code": Category,
        "share": Number,
        "row": Number,
        "ratio": Number,
        "day": Number,
        "customer_id": Number,
    }


@pytest.mark.parametrize(
    ("values", "type_name"),
    [
        (np.arange(6_000) % 10, "category"),  # digits
        (np.arange(6_000) % 28 + 1, "number"),  # rings of a shell
        (np.arange(6_000) % 28, "category"),  # codes from 0 without gaps
        (np.arange(6_000) % 2 * 7, "category"),
        (np.arange(6_000) % 700, "number"),
    ],
)
def test_target_has_one_type(values, type_name, tmp_path):
    columns = {"x": np.linspace(0, 1, len(values)), "y": values}
    data = ps.convert(columns, tmp_path / "data", target="y", split="all=1", num_threads=1)
    assert data.schema["y"].type_name == type_name
    assert ps.open(move_shards(tmp_path), target="y").schema["y"].type_name == type_name


def test_identifiers_of_records_are_not_inputs_and_quantities_are_noted(tmp_path, caplog):
    rows = 3_000
    columns = {
        "serial": np.random.default_rng(1).permutation(rows),
        "x": np.linspace(0, 1, rows),
        "y": np.arange(rows) % 40 + 3,
    }
    fields = {"serial": Number("int64")}
    ps.convert(columns, tmp_path / "data", target="y", fields=fields, split="all=1", num_threads=1)
    bare = move_shards(tmp_path)
    caplog.clear()
    data = ps.open(bare, target="y")
    assert (data.schema.inputs, data.schema["serial"].role) == (("x",), "unused")
    texts = [record.getMessage() for record in caplog.records]
    assert [text.split("'")[1] for text in texts] == ["serial", "y"]
    assert mentions(texts[0], "ps.fields.Number()")
    assert mentions(texts[1], "ps.fields.Category('int64')")
    assert ps.open(bare, target="y", fields=fields).schema.inputs == ("serial", "x")
