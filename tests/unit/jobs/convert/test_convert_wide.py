"""Tables of thousands of columns: converted whole, and no step searches all names for each name."""

import numpy as np
import pytest

import penstock as ps
from penstock import Schema
from penstock.columns import Dense
from penstock.encode.records import RecordEncoder
from penstock.fields import Bytes, Image, Number, Sequence, Tensor, Text
from penstock.settings.groups import Splits
from penstock.shards.row_work import RowWork

NUM_COLUMNS = 3000


class CountedName(str):
    """A name that counts how often it is compared with another."""

    num_compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        CountedName.num_compared += 1
        return str.__eq__(self, other)


def test_csv_of_thousands_of_columns_is_converted(tmp_path):
    names = [f"c{i}" for i in range(NUM_COLUMNS)]
    rows = [[str(i * 7 + row) if i % 2 else f"{i}.5" for i in range(NUM_COLUMNS)] for row in range(2)]
    path = tmp_path / "wide.csv"
    path.write_text("\n".join(map(",".join, [names, *rows])) + "\n")
    dataset = ps.convert(path, tmp_path / "out", split={"all": 1}, shuffle=False)
    assert list(dataset.schema) == names
    assert dataset.schema["c2"] == Number()
    assert dataset.schema["c2999"] == Number("int64")
    first, second = dataset["all"]
    assert (first["c2"], first["c2999"], second["c2999"]) == (2.5, 2999 * 7, 2999 * 7 + 1)


def test_names_are_not_searched_for_one_by_one():
    schema = Schema({CountedName(f"c{i}"): Number("int64") for i in range(NUM_COLUMNS)})
    columns = {name: Dense(np.zeros(2, np.int64)) for name in schema}
    CountedName.num_compared = 0
    RowWork(schema, Splits(), 0, (), {})
    RecordEncoder(schema).prepare(columns, 2).hash_rows([f"c{i}" for i in range(NUM_COLUMNS)])
    assert CountedName.num_compared < 10 * NUM_COLUMNS


@pytest.mark.parametrize(
    "field",
    [
        Number("float64", optional=True),
        Text(default="none"),
        Bytes(optional=True),
        Image(optional=True),
        Sequence("float32", optional=True),
        Tensor((2, 3), optional=True),
    ],
)
def test_optional_field_without_a_column_stays_in_the_schema(tmp_path, field):
    schema = {"a": Number("int64"), "b": field}
    dataset = ps.convert({"a": [1, 2, 3]}, tmp_path / "out", schema=schema, split={"all": 1}, shuffle=False)
    assert ps.open(tmp_path / "out").schema == Schema(schema)
    assert [(row["a"], row.get("b")) for row in dataset["all"]] == [(a, field.default) for a in (1, 2, 3)]
