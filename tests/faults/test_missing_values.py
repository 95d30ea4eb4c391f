"""X5: NaN, None, NA and NaT are missing, as an empty cell is, in every source and in every command."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from fake_runs import fit_run
from penstock import fields as f
from penstock.cli.main import main
from penstock.errors import CellError, OptionError, SchemaError
from penstock.jobs.predict.predict import predict
from penstock.settings.conversion import ConvertOptions
from penstock.source import block
from raising import containing

NAN = float("nan")
SIZES = [1.5, NAN, 2.5, 4.0, NAN, 8.25, 1.25, 3.0]
NAMES = ["a", "b", "c", "d", "e", "f", "g", "h"]


def rows_of(data):
    """Return all rows of a data set by name."""
    return {row["name"]: row for split in data.splits for row in data[split]}


def plain_rows():
    return [{"name": name, "size": size} for name, size in zip(NAMES, SIZES, strict=True)]


def frame(dtype="float64"):
    return pd.DataFrame({"name": NAMES, "size": SIZES}).astype({"size": dtype})


def write_csv(path, word):
    rows = ["name,size", *(f"{n},{word if np.isnan(s) else s}" for n, s in zip(NAMES, SIZES, strict=True))]
    path.write_text("\n".join(rows) + "\n")
    return path


def write_lines(path, word):
    rows = [
        f'{{"name": "{n}", "size": {word if np.isnan(s) else s}}}' for n, s in zip(NAMES, SIZES, strict=True)
    ]
    path.write_text("\n".join(rows) + "\n")
    return path


def write_parquet(path):
    pq.write_table(pa.table({"name": NAMES, "size": pa.array(SIZES)}), path)
    return path


SOURCES = {
    "csv, empty": lambda folder: write_csv(folder / "pets.csv", ""),
    "csv, nan": lambda folder: write_csv(folder / "pets.csv", "nan"),
    "csv, NaN": lambda folder: write_csv(folder / "pets.csv", "NaN"),
    "json lines, null": lambda folder: write_lines(folder / "pets.jsonl", "null"),
    "json lines, NaN": lambda folder: write_lines(folder / "pets.jsonl", "NaN"),
    "parquet, NaN": lambda folder: write_parquet(folder / "pets.parquet"),
    "arrow, NaN": lambda _: pa.table({"name": NAMES, "size": pa.array(SIZES)}),
    "arrow, null": lambda _: pa.table({"name": NAMES, "size": pa.array(SIZES, from_pandas=True)}),
    "arrow, float16": lambda _: pa.table({"name": NAMES, "size": pa.array(np.array(SIZES, np.float16))}),
    "pandas": lambda _: frame(),
    "pandas, float32": lambda _: frame("float32"),
    "pandas, Float64": lambda _: frame("Float64"),
    "pandas, object": lambda _: frame("object"),
    "pandas, Arrow": lambda _: frame("double[pyarrow]"),
    "polars, NaN": lambda _: pl.DataFrame({"name": NAMES, "size": SIZES}),
    "polars, null": lambda _: pl.DataFrame({"name": NAMES, "size": SIZES}).fill_nan(None),
    "dict of arrays": lambda _: {"name": NAMES, "size": np.array(SIZES)},
    "dict of lists": lambda _: {"name": NAMES, "size": SIZES},
    "masked array": lambda _: {"name": NAMES, "size": np.ma.masked_invalid(np.array(SIZES))},
    "samples, NaN": lambda _: plain_rows(),
    "samples, None": lambda _: [
        {"name": row["name"], "size": None if np.isnan(row["size"]) else row["size"]} for row in plain_rows()
    ],
    "samples, NA": lambda _: [
        {"name": row["name"], "size": pd.NA if np.isnan(row["size"]) else row["size"]} for row in plain_rows()
    ],
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The data set of the CSV with empty cells: what all others must equal."""
    folder = tmp_path_factory.mktemp("plain")
    return ps.convert(write_csv(folder / "pets.csv", ""), folder / "out")


@pytest.mark.parametrize("source", SOURCES)
def test_x05_missing_in_any_source_gives_the_records_of_an_empty_cell(source, plain, tmp_path):
    made = ps.convert(SOURCES[source](tmp_path), tmp_path / "out")
    assert made.schema == plain.schema
    assert made.schema["size"].optional
    for split in plain.splits:
        assert list(made[split].records()) == list(plain[split].records())


@pytest.mark.parametrize("source", SOURCES)
def test_x05_prediction_takes_missing_values_of_any_source_alike(source, tmp_path):
    run = fit_run(
        write_csv(tmp_path / "train.csv", ""), tmp_path / "out", target="name", fields={"name": f.Category()}
    )
    predict(run, write_csv(tmp_path / "new.csv", ""))
    (expected,) = run.asked
    run.asked.clear()
    predict(run, SOURCES[source](tmp_path))
    (got,) = run.asked
    assert np.isfinite(got["size"]).all()
    np.testing.assert_array_equal(got["size"], expected["size"])


def test_x05_nan_is_a_value_where_that_is_chosen_and_the_plan_records_it(tmp_path):
    made = ps.convert(frame(), tmp_path / "out", nan="value")
    assert not made.schema["size"].optional
    assert [name for name, row in rows_of(made).items() if np.isnan(row["size"])] == ["b", "e"] or sorted(
        name for name, row in rows_of(made).items() if np.isnan(row["size"])
    ) == ["b", "e"]
    assert made.manifest.plan["columns"]["size"]["nan"] == "value"
    assert "nan" not in made.manifest.plan["columns"]["name"]


def test_x05_nan_as_a_value_of_one_column_is_declared_in_its_plan(tmp_path):
    table = {"name": NAMES, "size": np.array(SIZES), "mass": np.array(SIZES)}
    plan = {"columns": {"mass": {"nan": "value"}}}
    made = ps.convert(table, tmp_path / "out", plan=plan)
    rows = rows_of(made)
    assert np.isnan(rows["b"]["mass"])
    assert rows["b"].get("size") is None


def test_x05_prediction_keeps_nan_where_the_conversion_did(tmp_path):
    run = fit_run(
        frame(),
        tmp_path / "out",
        {"size": ps.transform.Scale(nan="missing", indicator=True)},
        target="name",
        fields={"name": f.Category()},
        nan="value",
    )
    predict(run, frame())
    assert np.isfinite(run.asked[0]["size"]).all()
    assert run.asked[0]["size_missing"].ravel().tolist() == [float(np.isnan(size)) for size in SIZES]


@pytest.mark.parametrize("given", ["keep", None, True])
def test_x05_choice_for_nan_that_does_not_exist_is_refused(given, tmp_path):
    with pytest.raises(OptionError) as caught:
        ConvertOptions(nan=given)
    assert "nan" in str(caught.value)
    with pytest.raises(SchemaError) as refused:
        ps.convert(frame(), tmp_path / "out", plan={"columns": {"size": {"nan": given or 3}}})
    assert refused.value.field == "columns.size.nan"


def test_x05_infinity_is_never_missing(tmp_path):
    made = ps.convert({"name": NAMES, "size": np.array([*SIZES[:-1], np.inf])}, tmp_path / "out")
    assert rows_of(made)["h"]["size"] == np.inf


def test_x05_nan_in_lists_and_tensors_stays_a_value(tmp_path):
    table = {"name": NAMES, "list": [[1.0, NAN]] * 7 + [[2.5]], "tensor": np.full((8, 3), NAN)}
    made = ps.convert(table, tmp_path / "out")
    assert not made.schema["list"].optional
    rows = rows_of(made)
    assert np.isnan(rows["a"]["list"][1])
    assert np.isnan(rows["a"]["tensor"]).all()


@pytest.mark.parametrize("word", ["", "nan"])
def test_x05_nan_after_the_survey_counts_as_an_empty_cell(word, tmp_path, monkeypatch):
    monkeypatch.setattr(block, "HEAD_ROWS", 1)
    num_rows = 40_000  # several blocks; the survey sees the first
    sizes = np.arange(num_rows) + 0.5
    sizes[-1] = np.nan
    path = tmp_path / "late.csv"
    cells = [*map(str, sizes[:-1].tolist()), word]
    path.write_text("size,n\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(cells)))
    from_file = ps.convert(path, tmp_path / "file", split="train=1.0")
    from_frame = ps.convert(
        pd.DataFrame({"size": sizes, "n": np.arange(num_rows)}), tmp_path / "frame", split="train=1.0"
    )
    assert from_frame.schema == from_file.schema
    assert from_frame.schema["size"].optional
    assert list(from_frame["train"].records()) == list(from_file["train"].records())


def test_x05_nan_in_a_required_field_is_refused_as_an_empty_cell_is(tmp_path):
    schema = ps.Schema({"name": f.Text(), "size": f.Number()})
    seen = []
    for source in (frame(), write_csv(tmp_path / "pets.csv", ""), write_csv(tmp_path / "nan.csv", "nan")):
        with pytest.raises(CellError) as caught:
            ps.convert(source, tmp_path / "out", schema=schema)
        seen.append((caught.value.row, caught.value.field, caught.value.expected, caught.value.got))
    assert seen == [(2, "size", containing("value"), containing("nothing"))] * 3


KINDS = {
    "times": (pd.to_datetime(["2024-01-31 12:00", None, "2024-02-29 01:02"]), pd.Series(["x", None, "y"])),
    "Int64": (pd.array([1, None, 3], "Int64"), None),
    "boolean": (pd.array([True, None, False], "boolean"), None),
    "string": (pd.array(["x", None, "y"], "string"), None),
    "categorical": (pd.Categorical(["x", None, "y"]), None),
    "None and NaN": (pd.Series(["x", None, NAN], dtype=object), None),
    "NaT": (pd.Series([pd.Timestamp("2024-01-31"), pd.NaT, None], dtype=object), None),
    "bools and NaN": (pd.Series([True, NAN, False], dtype=object), None),
    "ints and NaN": (pd.Series([1, NAN, 2], dtype=object), None),
}


@pytest.mark.parametrize("kind", KINDS)
def test_x05_missing_in_any_type_of_pandas_is_missing(kind, tmp_path):
    values = pd.Series(KINDS[kind][0])
    table = pd.DataFrame({"name": NAMES[:3], "value": values})
    rows = rows_of(ps.convert(table, tmp_path / "out"))
    assert [rows[name].get("value") is None for name in NAMES[:3]] == values.isna().tolist()


def test_x05_ints_beside_nan_in_samples_stay_whole_numbers(tmp_path):
    samples = [{"name": name, "n": value} for name, value in zip(NAMES, [1, NAN, 3, 4], strict=False)]
    made = ps.convert(samples, tmp_path / "out")
    assert made.schema["n"].dtype == "int64"
    assert rows_of(made)["b"].get("n") is None


def test_x05_labels_with_nan_are_the_classes_that_they_are_in_a_file(tmp_path):
    labels = [0.0, 1.0, NAN, 1.0] * 10
    table = pd.DataFrame({"x": np.arange(40) / 4, "y": labels})
    made = ps.convert(table, tmp_path / "frame", target="y")
    path = tmp_path / "rows.csv"
    path.write_text(
        "x,y\n" + "".join(f"{i / 4},{'' if np.isnan(y) else int(y)}\n" for i, y in enumerate(labels))
    )
    from_file = ps.convert(path, tmp_path / "file", target="y")
    assert made.schema == from_file.schema
    assert sum(len(made[split]) for split in made.splits) == 40


def test_x05_writer_takes_nan_for_missing_unless_declared_as_a_value(tmp_path):
    schema = ps.Schema({"name": f.Text(), "size": f.Number(optional=True)})
    for nan, is_there in (("missing", False), ("value", True)):
        with ps.Writer(tmp_path / nan, schema, nan=nan) as writer:
            writer.write({"name": "a", "size": NAN})
            writer.write({"name": "b", "size": 1.0})
        assert (rows_of(ps.open(tmp_path / nan))["a"].get("size") is not None) == is_there


def test_x05_command_line_takes_the_choice(tmp_path, capsys):
    path = write_csv(tmp_path / "pets.csv", "nan")
    assert main(["convert", str(path), str(tmp_path / "out"), "--nan", "value", "--json"]) == 0
    capsys.readouterr()
    assert (
        json.loads((tmp_path / "out" / "penstock.json").read_text())["plan"]["columns"]["size"]["nan"]
        == "value"
    )
