"""TensorFlow reads what was converted, by the code that `penstock inspect --tf` prints: the same values."""

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import fields as f
from random_tables import TENSOR_DTYPES

NUM_ROWS = 200
rng = np.random.default_rng(3)
FLOATS = np.array([0.5, -0.0, np.inf, -np.inf, 1e-45, 3.4e38, np.nan], np.float32)
INTS = np.array([0, -1, 2**63 - 1, -(2**63), 127, 128, 16384])
TENSORS = {dtype: (rng.random((NUM_ROWS, 2, 3)) * 200).astype(dtype) for dtype in TENSOR_DTYPES}
TABLE: dict[str, Any] = {
    "row": np.arange(NUM_ROWS),
    "int": INTS[np.arange(NUM_ROWS) % len(INTS)],
    "float": FLOATS[np.arange(NUM_ROWS) % len(FLOATS)],
    "exact": rng.normal(size=NUM_ROWS),
    "flag": np.arange(NUM_ROWS) % 2 == 0,
    "text": [f"tëxt {row}" * (row % 13) for row in range(NUM_ROWS)],
    "blob": [bytes([row % 256]) * (row * 83) for row in range(NUM_ROWS)],
    "ints": [INTS[: row % 8].tolist() for row in range(NUM_ROWS)],
    "floats": [[float(value) for value in range(row % 5)] for row in range(NUM_ROWS)],
    "words": [["w" * size for size in range(row % 4)] for row in range(NUM_ROWS)],
    "k" * 60: np.arange(NUM_ROWS) * 3,
    **{f"tensor {dtype}": values for dtype, values in TENSORS.items()},
}
FIELDS = {
    "exact": f.Number("float64"),
    "text": f.Text(),
    "blob": f.Bytes(),
    "ints": f.Sequence("int64"),
    "floats": f.Sequence("float32"),
    "words": f.Sequence("string"),
}


@pytest.fixture(scope="module")
def tf() -> Any:
    """TensorFlow. It warns while it is imported, and here warnings are errors."""
    with pytest.MonkeyPatch.context() as environment, warnings.catch_warnings():
        environment.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
        environment.setenv("CUDA_VISIBLE_DEVICES", "")
        warnings.simplefilter("ignore")
        return pytest.importorskip("tensorflow")


def printed_parser(folder: Path) -> Any:
    """Return the function in the code that the command prints."""
    command = [str(Path(sys.executable).with_name("penstock")), "inspect", str(folder), "--tf"]
    code = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - it is what a user does with it
    return names["parse"]


def parsed_rows(tf: Any, folder: Path, compression: str = "") -> dict[int, dict[str, Any]]:
    """Return what TensorFlow reads from all shards, by number of the row."""
    dataset = ps.open(folder)
    shards = [str(path) for split in dataset.splits for path in dataset[split].paths]
    assert len(shards) >= 3
    records = tf.data.TFRecordDataset(shards, compression_type=compression).map(printed_parser(folder))
    rows = {int(each["row"]): each for each in records.as_numpy_iterator()}
    assert sorted(rows) == list(range(NUM_ROWS))
    return rows


def same(found: Any, given: Any) -> None:
    """Compare what TensorFlow has read with what was converted, bit by bit."""
    if isinstance(given, list):
        expected = [value.encode() if isinstance(value, str) else value for value in given]
        assert np.asarray(found).tolist() == expected
    elif isinstance(given, str | bytes):
        assert found == (given.encode() if isinstance(given, str) else given)
    else:
        assert found.dtype == given.dtype
        assert found.shape == given.shape
        assert found.tobytes() == given.tobytes()


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_tensorflow_parses_every_type_of_field_to_the_converted_values(tf, tmp_path, compression):
    out = tmp_path / "out"
    ps.convert(TABLE, out, fields=FIELDS, num_shards=2, compression=compression, nan="value")
    rows = parsed_rows(tf, out, "GZIP" if compression == "gzip" else "")
    for number, found in rows.items():
        assert set(found) == set(TABLE)
        for name, column in TABLE.items():
            same(found[name], column[number] if name != "flag" else np.int64(column[number]))


def test_tensorflow_parses_the_same_values_as_penstock(tf, tmp_path):
    out = tmp_path / "out"
    dataset = ps.convert(TABLE, out, fields=FIELDS, nan="value")
    rows = parsed_rows(tf, out)
    num_rows = 0
    for split in dataset.splits:
        for sample in dataset[split]:
            num_rows += 1
            for name, value in rows[sample["row"]].items():
                same(
                    value,
                    sample[name]
                    if isinstance(sample[name], str | bytes | list)
                    else np.asarray(sample[name], value.dtype),
                )
    assert num_rows == NUM_ROWS


def test_tensorflow_parses_sequence_examples_to_the_converted_values(tf, tmp_path):
    def row(number: int) -> dict[str, Any]:
        steps = range(number % 4)
        return {
            "row": number,
            "name": f"näme {number}",
            "tokens": [list(range(number % 7 + step)) for step in steps],
            "boxes": [[step / 2, float(number)] for step in steps],
            "words": ["w" * step for step in steps],
        }

    schema = ps.Schema(
        {
            "row": f.Number("int64"),
            "name": f.Text(),
            "tokens": f.Sequence("int64", None, "feature_list"),
            "boxes": f.Sequence("float32", (2,), "feature_list"),
            "words": f.Sequence("string", (), "feature_list"),
        }
    )
    out = tmp_path / "out"
    ps.convert([row(number) for number in range(NUM_ROWS)], out, schema=schema)
    for number, found in parsed_rows(tf, out).items():
        given = row(number)
        same(found["name"], given["name"])
        assert [np.asarray(step).tolist() for step in found["tokens"]] == given["tokens"]
        boxes = np.array(given["boxes"], np.float32).reshape(-1, 2)
        assert found["boxes"].tobytes() == boxes.tobytes()
        same(found["words"], given["words"])


def test_missing_values_are_empty_to_tensorflow_and_defaults_are_filled_in(tf, tmp_path):
    numbers = [None if row % 3 == 0 else row for row in range(NUM_ROWS)]
    texts = [None if row % 5 == 0 else f"text {row}" for row in range(NUM_ROWS)]
    out = tmp_path / "out"
    rows = [{"row": row, "n": numbers[row], "t": texts[row]} for row in range(NUM_ROWS)]
    fields = {"row": f.Number("int64"), "n": f.Number("int64", optional=True), "t": f.Text(default="none")}
    ps.convert(rows, out, schema=ps.Schema(fields))
    for number, found in parsed_rows(tf, out).items():
        assert found["n"].tolist() == ([] if numbers[number] is None else [numbers[number]])
        assert found["t"] == (texts[number] or "none").encode()


def test_tensorflow_serialises_our_records_to_the_same_bytes(tf, tmp_path):
    names = ["a", "b", "c"]  # in the order in which it writes them
    table = {"a": INTS, "b": FLOATS, "c": [f"x{row}" for row in range(7)]}
    options = {"split": {"train": 1.0}, "shuffle": False, "nan": "value"}
    dataset = ps.convert(table, tmp_path / "out", fields={"c": f.Text()}, **options)
    for record in dataset["train"].records():
        message = tf.train.Example.FromString(record)
        assert sorted(message.features.feature) == names
        assert message.SerializeToString(deterministic=True) == record
