"""Predictions in files: formats, all or nothing, and what the output says of each kind of target."""

import csv
import gc
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from fake_runs import fit_run
from penstock import fields as f
from penstock.errors import CellError, OptionError, PathError
from penstock.jobs.predict import prediction_file, predictions
from penstock.jobs.predict.predict import predict
from penstock.jobs.predict.prediction_file import open_writer
from penstock.jobs.predict.predictions import Answer, Answers
from penstock.model.task import Task
from penstock.score import scores
from penstock.score.scores import predict_codes
from penstock.settings.prediction import PredictOptions
from raising import containing, raises_with

ROW = pa.schema([pa.field("row", pa.int64())])
NUMBERS = pa.RecordBatch.from_arrays([pa.array([0, 1])], schema=ROW)


def by_name(*tasks):
    return {task.name: Answer(task) for task in tasks}


def answer(*tasks, **outputs):
    made = Answers(by_name(*tasks), ROW)
    return made.make(NUMBERS, {name: np.array(value, np.float32) for name, value in outputs.items()})


def test_two_classes_give_a_label_its_probability_and_both():
    made = answer(Task("adopted", "binary", ("no", "yes")), adopted=[0.5, 0.25])
    assert made.to_pydict() == {
        "row": [0, 1],
        "adopted": ["yes", "no"],
        "adopted_probability": [0.5, 0.75],
        "adopted_probability_no": [0.5, 0.75],
        "adopted_probability_yes": [0.5, 0.25],
    }


def test_label_and_score_go_by_one_threshold():
    task, given = Task("adopted", "binary", ("no", "yes")), np.array([0.5, 0.25], np.float32)
    assert answer(task, adopted=given)["adopted"].to_pylist() == [
        task.labels[code] for code in predict_codes(task, given)
    ]
    assert predictions.THRESHOLD is scores.THRESHOLD


def test_target_that_is_kept_is_called_true():
    carried = pa.schema([*ROW, pa.field("adopted", pa.string()), pa.field("age", pa.float32())])
    made = by_name(Task("adopted", "binary", ("no", "yes")))
    assert Answers(made, carried).schema.names[:4] == ["row", "adopted_true", "age", "adopted"]
    twice = pa.schema([*carried, pa.field("adopted_true", pa.string())])
    with raises_with(OptionError, "column target", field="adopted_true"):
        Answers(made, twice)


def test_labels_are_of_the_type_of_the_field():
    made = answer(
        Task("sold", "binary", (0, 1)), Task("code", "binary", (b"a", b"b")), sold=[1, 0], code=[0, 1]
    )
    assert made.schema.field("sold").type == pa.int64()
    assert made["sold"].to_pylist() == [1, 0]
    assert made["code"].to_pylist() == [b"a", b"b"]


def test_several_classes_give_a_label_its_probability_and_all_of_them():
    made = answer(Task("kind", "multiclass", ("a", "b", "c")), kind=[[0.5, 0.25, 0.25], [0, 0.25, 0.75]])
    assert made.to_pydict() == {
        "row": [0, 1],
        "kind": ["a", "c"],
        "kind_probability": [0.5, 0.75],
        "kind_probability_a": [0.5, 0.0],
        "kind_probability_b": [0.25, 0.25],
        "kind_probability_c": [0.25, 0.75],
    }


def test_sets_of_classes_give_lists_of_labels():
    made = answer(Task("tags", "multilabel", ("x", "y"), (2,)), tags=[[0.5, 0.75], [0.25, 0.0]])
    assert made["tags"].to_pylist() == [["x", "y"], []]
    assert made["tags_probability_y"].to_pylist() == [0.75, 0.0]


def test_numbers_are_numbers_and_vectors_lists():
    tasks = Task("price", "regression"), Task("at", "regression", shape=(2,))
    made = answer(*tasks, price=[1.5, -2.0], at=[[1, 2], [3, 4]])
    assert made["price"].to_pylist() == [1.5, -2.0]
    assert made["at"].to_pylist() == [[1.0, 2.0], [3.0, 4.0]]


def test_probability_that_is_no_number_gives_no_label():
    nan = float("nan")
    tasks = Task("a", "binary", ("no", "yes")), Task("b", "multiclass", ("x", "y", "z"))
    made = answer(*tasks, a=[nan, 0.75], b=[[0, 0, 1], [nan, nan, nan]])
    assert made["a"].to_pylist() == [None, "yes"]
    assert made["b"].to_pylist() == ["z", None]


def test_targets_whose_columns_have_one_name_are_refused():
    made = by_name(Task("a", "binary", (0, 1)), Task("a_probability", "regression"))
    with raises_with(OptionError, "column", field="a_probability"):
        Answers(made, ROW)
    with raises_with(OptionError, "column column", field="row"):
        Answers(by_name(Task("row", "regression")), ROW)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of three targets on rows that have a text with everything in it."""
    rows = [
        {
            "name": ["Rex", 'a "b", c', "", "two\nlines", " é "][n % 5],
            "age": n / 3,
            "sold": n % 2,
            "tags": ["x", "y"][: n % 3],
            "price": n * 1.5,
        }
        for n in range(20)
    ]
    fields = {
        "name": f.Text(),
        "sold": f.Category("int64", values=(0, 1)),
        "tags": f.Sequence("string"),
    }
    folder = tmp_path_factory.mktemp("trained") / "set"
    overrides = {"tags": ps.transform.Encode("multi_hot", unknown="error", missing="error")}
    run = fit_run(rows, folder, overrides, target=["sold", "tags", "price"], fields=fields)
    return run, [{**row, "note": None if n % 4 == 0 else row["name"]} for n, row in enumerate(rows)]


def write(trained, path, **options):
    run, rows = trained
    return predict(run, rows, path, **{"keep": "note", "batch_size": 3, **options})


def test_parquet_holds_the_values_of_the_table(trained, tmp_path):
    written = write(trained, tmp_path / "out.parquet")
    table = write(trained, None).table
    assert pq.read_table(tmp_path / "out.parquet").equals(table)
    assert written.to_arrow().equals(table)
    assert (written.table, written.out, written.num_rows) == (None, tmp_path / "out.parquet", 20)
    assert list(tmp_path.iterdir()) == [tmp_path / "out.parquet"]
    assert list(written.to_pandas().columns) == [
        "row", "note", "sold", "sold_probability", "sold_probability_0", "sold_probability_1",
        "tags", "tags_probability_x", "tags_probability_y", "price",
    ]  # fmt: skip


def test_rows_are_gathered_into_row_groups(trained, tmp_path, monkeypatch):
    monkeypatch.setattr(prediction_file, "_GROUP_ROWS", 6)
    write(trained, tmp_path / "out.parquet")
    metadata = pq.ParquetFile(tmp_path / "out.parquet").metadata
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [6, 6, 6, 2]


def test_csv_reads_back_as_the_table(trained, tmp_path):
    write(trained, tmp_path / "out.csv")
    table = write(trained, None).table
    text = (tmp_path / "out.csv").read_text()
    header, *lines = csv.reader(text.splitlines(keepends=True))
    assert header == table.schema.names
    assert [line[1] for line in lines] == [note or "" for note in table["note"].to_pylist()]
    assert text.splitlines()[1].startswith("0,,")  # nothing
    assert text.splitlines()[3].startswith('2,"",')  # an empty text
    assert [json.loads(line[6]) for line in lines] == table["tags"].to_pylist()
    probabilities = [np.float32(line[3]) for line in lines]
    assert probabilities == [np.float32(value) for value in table["sold_probability"].to_pylist()]
    assert "\r" not in text


def test_json_lines_read_back_as_the_table(trained, tmp_path):
    write(trained, tmp_path / "out.jsonl")
    table = write(trained, None).table
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["note"] for row in rows] == table["note"].to_pylist()
    assert [row["tags"] for row in rows] == table["tags"].to_pylist()
    assert [np.float32(row["price"]) for row in rows] == [np.float32(x) for x in table["price"].to_pylist()]


def test_nan_is_null_in_json_and_shown_in_csv():
    batch = pa.record_batch({"x": pa.array([1.5, float("nan")], pa.float32()), "f": pa.array([True, None])})
    for suffix, expected in (
        (".jsonl", '{"x": 1.5, "f": true}\n{"x": null, "f": null}\n'),
        (".csv", "x,f\n1.5,true\nnan,\n"),
    ):
        pieces = []
        with open_writer(suffix, batch.schema, pieces.append) as writer:
            writer.write(batch)
        assert b"".join(pieces).decode() == expected


def test_bytes_go_to_parquet_alone(trained, tmp_path):
    run, rows = trained
    rows = [{**row, "blob": b"\0"} for row in rows]
    with raises_with(OptionError, "column '.parquet'", field="blob"):
        predict(run, rows, tmp_path / "out.csv", keep="blob")
    assert list(tmp_path.iterdir()) == []
    predict(run, rows, tmp_path / "out.parquet", keep="blob")
    assert pq.read_table(tmp_path / "out.parquet")["blob"].to_pylist() == [b"\0"] * 20


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_nothing_is_left_of_a_run_that_was_cut_off(trained, tmp_path, suffix):
    run, _ = trained
    run.asked.clear()
    run.fails_at = 3
    try:
        with pytest.raises(KeyboardInterrupt):
            write(trained, tmp_path / f"out.{suffix}")
    finally:
        run.fails_at = None
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_existing_file_is_kept_unless_it_may_be_replaced(trained, tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("mine")
    with raises_with(PathError, "overwrite=True"):
        write(trained, path)
    run, rows = trained
    bad = [*rows[:10], {**rows[0], "age": "old"}]
    with pytest.raises(CellError):
        predict(run, bad, path, overwrite=True, batch_size=2)
    assert path.read_text() == "mine"
    write(trained, path, overwrite=True)
    assert path.read_text().startswith("row,note,")


def test_output_of_another_format_is_refused_before_any_work(trained, tmp_path):
    with raises_with(OptionError, "out", expected=containing("'.parquet'", "'.csv'", "'.jsonl'")):
        predict("no such run", [], tmp_path / "out.xlsx")


def test_output_that_is_the_data_is_refused(trained, tmp_path):
    (tmp_path / "new.csv").write_text("age,name\n1,a\n")
    with raises_with(PathError, "output data", path=str(tmp_path / "new.csv")):
        predict(trained[0], tmp_path / "new.csv", tmp_path / "new.csv", overwrite=True)


def test_text_shows_the_first_rows(trained):
    shown = str(write(trained, None)).splitlines()
    assert shown[0].split() == [
        "row", "note", "sold", "sold_probability", "sold_probability_0", "sold_probability_1",
        "tags", "tags_probability_x",
    ]  # fmt: skip
    assert shown[4].split()[:3] == ["3", "'two\\nlines'", "1"]
    assert shown[-2:] == ["… 20 rows", containing(2, "columns")]
    assert repr(write(trained, None)) == "Predictions(20 rows)"


@pytest.mark.parametrize(
    ("choice", "facts"),
    [
        ({"keep": 3}, "keep list 3"),
        ({"split": 3}, "split split 3"),
        ({"batch_size": 0}, "batch_size 1 0"),
        ({"on_error": "stop"}, "on_error 'raise' 'skip' 'collect' 'stop'"),
        ({"overwrite": 1}, "overwrite True False 1"),
        ({"delimiter": ";;"}, "delimiter ASCII"),
    ],
)
def test_choice_that_cannot_be_is_refused_when_made(choice, facts):
    with raises_with(OptionError, facts):
        PredictOptions(**choice)


def test_choice_that_does_not_exist_names_the_nearest():
    with raises_with(OptionError, got="'keeps'", advice=containing("'keep'")):
        predict("run", [], keeps="a")


def test_value_that_is_not_a_run_is_refused():
    with raises_with(OptionError, "run", got="3"):
        predict(3, [])
