"""Predictions on splits, data sets and TFRecords: which split, which fields, damaged records."""

import pytest

import penstock as ps
from fake_runs import fit_run
from penstock import fields as f
from penstock.errors import CorruptRecordError, FieldError, OptionError, SchemaError, UnknownNameError
from penstock.jobs.predict.predict import predict
from raising import containing, raises_with
from record_files import example, flip, write_plain

ROWS = [{"a": n / 2, "k": "xyz"[n % 3], "y": float(n)} for n in range(30)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return fit_run(ROWS, tmp_path_factory.mktemp("stored") / "set", target="y")


@pytest.fixture
def splits(tmp_path):
    """A data set of two splits, with an id."""
    rows = [{**row, "name": f"r{n}"} for n, row in enumerate(ROWS)]
    ps.convert(rows, tmp_path / "two", id="name", split="train=0.5,test=0.5", shuffle=False)
    return tmp_path / "two"


def test_split_must_be_named_where_there_are_several(run, splits):
    with raises_with(OptionError, "split", expected=containing("'train'", "'test'")):
        predict(run, splits)
    with raises_with(UnknownNameError, "'test'", field="tset"):
        predict(run, splits, split="tset")
    assert predict(run, splits, split="test").num_rows == 15


@pytest.mark.parametrize("kind", ["path", "dataset", "split"])
def test_split_dataset_and_folder_give_the_same(run, splits, kind):
    dataset = ps.open(splits)
    data = {"path": str(splits), "dataset": dataset, "split": dataset["test"]}[kind]
    found = predict(run, data, split="test", keep="k")
    assert found.table.schema.names == ["name", "k", "y"]
    assert found.table["name"].to_pylist() == [record["name"] for record in dataset["test"]]
    rows = {f"r{n}": row for n, row in enumerate(ROWS)}
    raw = predict(run, [rows[name] for name in found.table["name"].to_pylist()])
    assert raw.table["y"].equals(found.table["y"])


def test_raw_data_has_no_split(run):
    with raises_with(OptionError, "split", got="'test'"):
        predict(run, ROWS, split="test")


def test_kept_field_that_does_not_exist_names_the_nearest(run, splits):
    with raises_with(UnknownNameError, "'name'", field="nam"):
        predict(run, splits, split="test", keep="nam")


def test_records_need_no_target_and_may_lack_optional_values(run, tmp_path):
    ps.convert([{"k": row["k"]} for row in ROWS], tmp_path / "s", split="all=1.0", shuffle=False)
    with raises_with(SchemaError, "split 'all' no column 'a' allow_missing_columns", field="a"):
        predict(run, tmp_path / "s")
    found = predict(run, tmp_path / "s", allow_missing_columns=True)
    assert found.notes == (containing("'a'", "records"),)
    expected = predict(run, [{"k": row["k"]} for row in ROWS], allow_missing_columns=True)
    assert found.table["y"].equals(expected.table["y"])


@pytest.mark.parametrize("num_rows", [1, 30])
def test_input_that_is_empty_in_all_records_is_noted(run, tmp_path, num_rows):
    rows = [{**row, "a": None} for row in ROWS[:num_rows]]
    fields = {"a": f.Number(optional=True), "k": f.Category()}
    data = ps.convert(rows, tmp_path / "s", split="all=1.0", fields=fields)
    cautions = () if num_rows == 1 else ("field 'a' is empty in all records: it counts as missing",)
    assert predict(run, data["all"]).cautions == cautions
    some = ps.convert(ROWS, tmp_path / "t", split="all=1.0", shuffle=False)
    assert predict(run, some["all"]).cautions == ()


def test_records_without_a_field_that_the_model_needs_are_refused(run, tmp_path):
    ps.convert([{"a": 1.5, "kk": "x"}], tmp_path / "s", split="all=1.0")
    with raises_with(SchemaError, "split 'all' column 'kk'", field="k", got=containing("'a'", "'kk'")):
        predict(run, tmp_path / "s")


def test_field_of_another_type_is_refused(run, tmp_path):
    ps.convert({"a": [1.5], "k": [[1.0]]}, tmp_path / "s", split="all=1.0")
    with raises_with(SchemaError, field="k", got=containing("sequence", "(variable float32)")):
        predict(run, tmp_path / "s")


def test_tfrecords_of_others_are_read_like_tfrecords_of_the_run(run, tmp_path):
    path = tmp_path / "new.tfrecord"
    write_plain(path, [example(a=row["a"], k=row["k"]) for row in ROWS])
    found = predict(run, path)
    assert found.table["row"].to_pylist() == list(range(30))
    assert found.table["y"].equals(predict(run, ROWS).table["y"])


def test_damaged_record_is_raised_or_left_out(run, tmp_path):
    path = tmp_path / "new.tfrecord"
    write_plain(path, [example(a=row["a"], k=row["k"]) for row in ROWS])
    whole = predict(run, path).table
    size = path.stat().st_size // 30
    path.write_bytes(flip(path.read_bytes(), 12 * size + 20))
    with raises_with(CorruptRecordError, field="payload", record=12):
        predict(run, path)
    found = predict(run, path, on_error="collect", batch_size=7)
    rest = [n for n in range(30) if n != 12]
    assert found.table["row"].to_pylist() == rest
    assert found.table["y"].to_pylist() == whole["y"].take(rest).to_pylist()
    assert [error.record for error in found.rejected] == [12]


def test_value_that_a_transform_refuses_is_named_with_file_and_record(tmp_path):
    strict = fit_run(ROWS, tmp_path / "set", {"k": {"unknown": "error"}}, target="y")
    path = tmp_path / "new.tfrecord"
    write_plain(path, [example(a=1.0, k="x"), example(a=1.0, k="w"), example(a=1.0, k="z")])
    with raises_with(FieldError, "new.tfrecord", field="k", record=1, got="'w'"):
        predict(strict, path)
    found = predict(strict, path, on_error="skip")
    assert found.table["row"].to_pylist() == [0, 2]


def test_default_of_the_data_set_counts(tmp_path):
    fields = {"a": f.Number(default=4.0)}
    run = fit_run([{"a": 4.0, "y": 1.0}, {"a": 1.0, "y": 2.0}], tmp_path / "set", target="y", fields=fields)
    path = tmp_path / "new.tfrecord"
    write_plain(path, [example(a=4.0, n=1), example(n=1)])
    numbers = predict(run, ps.open(path, fields=fields)["all"]).table["y"].to_pylist()
    assert numbers[0] == numbers[1]


def test_split_without_records_gives_no_rows(run, tmp_path):
    (tmp_path / "none.tfrecord").write_bytes(b"")
    assert predict(run, tmp_path / "none.tfrecord").table.schema.names == ["row", "y"]
