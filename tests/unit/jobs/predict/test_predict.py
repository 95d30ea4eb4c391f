"""Predictions on new data: every kind of source, missing columns, unseen values, rows that do not fit."""

import datetime
import logging
import sys
import threading
from types import ModuleType

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import penstock as ps
from fake_runs import FakeRun, fit_run
from image_files import jpeg, png, scene
from penstock import fields as f
from penstock.errors import (
    CellError,
    FieldError,
    OptionError,
    SchemaError,
    SourceError,
    TooManySkippedError,
    UnknownNameError,
)
from penstock.jobs.predict.predict import predict, run_prediction
from penstock.settings.prediction import PredictOptions
from raising import containing, mentions, raises_with

NUM_ROWS = 40
ADOPTED = ("adopted", "adopted_probability", "adopted_probability_no", "adopted_probability_yes")


def make_pets(num_rows=NUM_ROWS):
    return [
        {
            "id": f"p{n}",
            "age": n / 4,
            "zip": f"{n % 7:05}",
            "kind": ("cat", "dog", "eel")[n % 3],
            "born": f"20{n % 20:02}-02-0{1 + n % 9}",
            "adopted": ("no", "yes")[n % 2],
        }
        for n in range(num_rows)
    ]


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    """A folder with the pets as a CSV, and a run that was trained on it."""
    folder = tmp_path_factory.mktemp("pets")
    pd.DataFrame(make_pets()).to_csv(folder / "pets.csv", index=False)
    run = fit_run(folder / "pets.csv", folder / "set", target="adopted", id="id")
    assert {name: field.type_name for name, field in run.pipeline.schema.items()} == {
        "age": "number", "zip": "category", "kind": "category", "born": "date", "adopted": "category"
    }  # fmt: skip
    return folder, run


@pytest.fixture
def run(pets):
    pets[1].asked.clear()
    return pets[1]


@pytest.fixture(scope="module")
def expected(pets):
    """What the converted records are predicted to be."""
    return predict(FakeRun(pets[1].pipeline, pets[0]), ps.open(pets[0] / "set")["train"]).table


def write_csv(path, rows):
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def sources(folder):
    frame = pd.DataFrame(make_pets())
    table = pa.Table.from_pandas(frame)
    pq.write_table(table, folder / "new.parquet")
    pyarrow.feather.write_feather(table, folder / "new.arrow")
    frame.to_csv(folder / "new.tsv", sep="\t", index=False)
    frame.to_json(folder / "new.jsonl", orient="records", lines=True)
    frame[:25].to_csv(folder / "part-1.csv", index=False)
    frame[25:].to_csv(folder / "part-2.csv", index=False)
    return {
        "parquet": folder / "new.parquet",
        "arrow": folder / "new.arrow",
        "tsv": folder / "new.tsv",
        "jsonl": str(folder / "new.jsonl"),
        "several": [folder / "part-1.csv", folder / "part-2.csv"],
        "glob": str(folder / "part-*.csv"),
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "table": table,
        "dict": {name: frame[name].to_numpy() for name in frame},
        "list": make_pets(),
        "generator": (row for row in make_pets()),
        "function": make_pets,
    }


def test_every_source_equals_the_converted_records(run, expected, tmp_path):
    assert expected.schema.names == ["id", *ADOPTED]
    assert expected["id"].to_pylist() == [f"p{n}" for n in range(NUM_ROWS)]
    for name, source in sources(tmp_path).items():
        found = predict(run, source)
        assert found.num_rows == NUM_ROWS, name
        assert found.table["adopted_probability"].equals(expected["adopted_probability"]), name
        assert found.table["id"].to_pylist() == expected["id"].to_pylist(), name


@pytest.mark.parametrize(("batch_size", "num_threads"), [(1, 1), (7, 3), (NUM_ROWS, 2), (1000, 8)])
def test_batches_and_threads_change_nothing(run, expected, tmp_path, batch_size, num_threads):
    parts = [write_csv(tmp_path / f"{n:02}.csv", make_pets()[n : n + 3]) for n in range(0, NUM_ROWS, 3)]
    found = predict(run, parts, batch_size=batch_size, num_threads=num_threads)
    assert found.table.equals(expected)
    sizes = [len(inputs["age"]) for inputs in run.asked]
    assert sizes[:-1] == [batch_size] * (len(sizes) - 1)


def test_types_come_from_the_schema_even_where_new_values_look_like_others(run, expected, tmp_path):
    rows = [{**row, "age": int(row["age"])} for row in make_pets() if row["zip"] == "00003"][:1]
    path = write_csv(tmp_path / "new.csv", rows)
    predict(run, path)
    predict(run, [{**rows[0], "zip": "00003"}])
    assert run.asked[0]["zip"].tolist() == run.asked[1]["zip"].tolist() != [0]
    assert run.asked[0]["age"].dtype == np.float32
    assert run.asked[0]["born"].tolist() == run.asked[1]["born"].tolist()


def test_data_of_users_is_read_in_their_own_thread(run):
    threads = set()

    def pets():
        for row in make_pets():
            threads.add(threading.get_ident())
            yield row

    predict(run, pets, batch_size=2, num_threads=2)
    assert threads == {threading.get_ident()}


def test_error_of_the_first_row_comes_first(run):
    def pets():
        yield {**make_pets(1)[0], "age": "old"}
        yield from make_pets(20_000)
        raise RuntimeError("behind the first block")

    with raises_with(CellError, "row", field="age", row=1):
        predict(run, pets)


def test_targets_may_be_absent_or_nonsense(run, expected, tmp_path):
    without = [{name: value for name, value in row.items() if name != "adopted"} for row in make_pets()]
    assert predict(run, without).table.equals(expected)
    odd = [{**row, "adopted": "perhaps"} for row in make_pets()]
    assert predict(run, write_csv(tmp_path / "odd.csv", odd)).table.equals(expected)


def test_rows_without_an_id_are_numbered_and_columns_are_kept(run):
    rows = [{**row, "note": f"n{n}"} for n, row in enumerate(make_pets(3))]
    for row in rows:
        del row["id"]
    found = predict(run, rows, keep=("note", "born", "age"))
    assert found.table.schema.names == ["row", "note", "born", "age", *ADOPTED]
    assert found.table["row"].to_pylist() == [0, 1, 2]
    assert found.table["note"].to_pylist() == ["n0", "n1", "n2"]
    assert list(map(str, found.table["born"].to_pylist())) == [row["born"] for row in rows]
    assert found.table["born"].type == pa.date32()
    assert found.table["age"].to_pylist() == [0.0, 0.25, 0.5]


def test_kept_column_that_does_not_exist_names_the_nearest(run):
    with raises_with(UnknownNameError, "'age'", field="agee"):
        predict(run, make_pets(), keep="agee")


def test_kept_target_is_called_true(run):
    found = predict(run, make_pets(4), keep="adopted")
    assert found.table.schema.names == ["id", "adopted_true", *ADOPTED]
    assert found.table["adopted_true"].to_pylist() == ["no", "yes", "no", "yes"]


def test_kept_column_named_like_a_prediction_is_refused(run):
    rows = [{**row, "adopted_probability": 0.5} for row in make_pets(4)]
    with raises_with(OptionError, "column", field="adopted_probability"):
        predict(run, rows, keep="adopted_probability")


def test_nothing_is_written_before_the_first_rows_are_predicted(run):
    written = []
    bad = [{**make_pets(1)[0], "age": "old"}]
    with raises_with(CellError, field="age", got="'old'"):
        run_prediction(run, bad, None, PredictOptions(), write=written.append)
    assert not written


def drop(rows, *names):
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


@pytest.mark.parametrize("make", [list, pd.DataFrame, pa.Table.from_pylist])
def test_column_that_no_row_has_is_an_error(make, run):
    with raises_with(SchemaError, "no column 'age'", field="age") as caught:
        predict(run, make(drop(make_pets(), "age")))
    assert "`allow_missing_columns=True`" in caught.value.advice
    found = predict(run, make([*make_pets(1), *drop(make_pets(), "age")]))  # some rows lack a value
    assert (found.num_rows, found.cautions) == (NUM_ROWS + 1, ())


def test_column_that_is_empty_in_all_rows_has_a_note(run, tmp_path):
    rows = [{**row, "age": None} for row in make_pets()]
    path = write_csv(tmp_path / "new.csv", rows)
    for data in (rows, path):
        found = predict(run, data)
        assert found.cautions == ("column 'age' is empty in all rows: it counts as missing",)
        assert predict(run, data, batch_size=3, num_threads=4).cautions == found.cautions
    assert predict(run, rows[:1]).cautions == ()  # one row, and not a column
    assert predict(run, [*rows, *make_pets(1)]).cautions == ()


def test_missing_column_counts_as_missing_and_is_noted_once_where_that_is_allowed(run, caplog):
    rows = drop(make_pets(), "age")
    found = predict(run, rows, allow_missing_columns=True)
    assert found.num_rows == NUM_ROWS
    assert found.notes == found.cautions == ("no column 'age': it counts as missing in all rows",)
    assert [record.getMessage() for record in caplog.records] == list(found.notes)
    assert set(run.asked[0]["age"].tolist()) == {0.0}  # the mean of the train split, scaled


def rename(rows, old, new):
    return [{new if name == old else name: value for name, value in row.items()} for row in rows]


def test_missing_column_with_a_similar_name_has_a_suggestion(run):
    rows = rename(make_pets(), "age", "ages")
    with raises_with(SchemaError, "'ages' Did you mean 'age'", field="age"):
        predict(run, rows)
    found = predict(run, rows, allow_missing_columns=True)
    assert mentions(found.notes[0], "column 'age' rows 'ages'")
    assert mentions(found.notes[1], "'ages'")


def test_missing_column_that_cannot_be_missing_names_the_nearest(run):
    rows = [{"kin" if name == "kind" else name: value for name, value in row.items()} for row in make_pets()]
    with raises_with(SchemaError, "'kind' 'kind' 'id' 'age' 'zip' 'kin' 'born' 'adopted' 'kin'"):
        predict(run, rows)


def test_data_without_any_column_of_the_model_is_refused(tmp_path):
    run = fit_run({"a": [1.0, 2.0], "y": [0.5, 1.5]}, tmp_path / "s", target="y")
    with raises_with(SchemaError, "column", field="a", got="'b'"):
        predict(run, {"b": [1.0]})


def test_missing_value_in_a_column_that_had_none_is_named(run, tmp_path):
    rows = make_pets(5)
    rows[3]["kind"] = None
    path = write_csv(tmp_path / "new.csv", rows)
    with raises_with(CellError, f"{path} 'kind' 4 (line 5) on_error='skip'"):
        predict(run, path)


def test_optional_fields_and_defaults_are_filled_as_in_training(tmp_path):
    table = {
        "a": pa.array([1.0, None, 3.0, 5.0]),
        "b": pa.array([2.0, None, 3.0, 9.0]),
        "k": pa.array(["x", None, "y", "x"]),
        "y": [0.0, 1.0, 2.0, 3.5],
    }
    fields = {"b": f.Number(default=7.0), "k": f.Category(optional=True)}
    run = fit_run(table, tmp_path / "s", target="y", fields=fields)
    known = predict(run, {name: column[1:2] for name, column in table.items()})
    nothing = predict(run, {"z": [1], "y": [0.0], "k": [None]}, allow_missing_columns=True)
    assert known.table["y"].equals(nothing.table["y"])


def test_unseen_category_goes_to_the_slot_for_such(run):
    rows = [{**row, "kind": "wolf"} for row in make_pets(2)]
    predict(run, rows)
    predict(run, [{**row, "kind": "yak"} for row in make_pets(2)])
    assert run.asked[0]["kind"].tolist() == run.asked[1]["kind"].tolist() == [0, 0]


def test_unseen_category_without_a_slot_is_named_with_its_row(tmp_path):
    rows = [{"k": "ab"[n % 2], "y": n / 2} for n in range(10)]
    run = fit_run(rows, tmp_path / "s", {"k": {"unknown": "error"}}, target="y")
    path = write_csv(tmp_path / "new.csv", [{"k": "a"}, {"k": "c"}, {"k": "b"}])
    with raises_with(CellError, f"{path} 'k' 2 (line 3) 'c' on_error='skip'"):
        predict(run, path)
    found = predict(run, path, on_error="skip")
    assert (found.num_rows, found.num_skipped) == (2, 1)
    assert found.table["row"].to_pylist() == [0, 2]


def test_row_that_does_not_fit_is_an_error_with_its_row_and_line(run, tmp_path):
    rows = make_pets(5)
    rows[2]["age"] = "old"
    path = write_csv(tmp_path / "new.csv", rows)
    with pytest.raises(CellError) as caught:
        predict(run, path)
    place = f"{path}: column 'age' in row 3 (line 4): expected a number, got 'old'."
    assert str(caught.value).startswith(place)
    assert caught.value.advice
    assert run.asked == []


def test_rows_that_do_not_fit_are_skipped_counted_and_noted(run, expected, tmp_path, caplog):
    rows = make_pets()
    rows[2]["age"], rows[30]["born"] = "old", "long ago"
    path = write_csv(tmp_path / "new.csv", rows)
    found = predict(run, path, on_error="skip", batch_size=8)
    left = [n for n in range(NUM_ROWS) if n not in (2, 30)]
    assert found.table.equals(expected.take(left))
    assert (found.num_rows, found.num_skipped) == (38, 2)
    assert [error.field for error in found.rejected] == ["age", "born"]
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    place = f"row left out: {path}: column 'age' in row 3 (line 4): expected a number, got 'old'."
    assert said[0].startswith(place)
    assert mentions(said[-1], "2 40 rows")


def test_rows_that_do_not_fit_are_collected_in_order(run, tmp_path):
    rows = make_pets()
    for n in (30, 2, 11):
        rows[n]["age"] = "old"
    found = predict(run, write_csv(tmp_path / "new.csv", rows), on_error="collect", batch_size=4)
    assert [error.row for error in found.rejected] == [3, 12, 31]
    assert found.num_skipped == 3


def test_too_many_rows_that_do_not_fit_end_the_run(run):
    rows = [{**row, "age": "old"} for row in make_pets()]
    with raises_with(TooManySkippedError, field="age", expected=containing(5), got=containing(6)):
        predict(run, rows, on_error="skip", max_skipped=5)


def test_all_rows_left_out_gives_an_empty_table(run):
    rows = [{**row, "age": "old"} for row in make_pets(3)]
    found = predict(run, rows, on_error="collect")
    assert (found.num_rows, found.num_skipped) == (0, 3)
    assert found.table.schema.names == ["id", *ADOPTED]


@pytest.mark.parametrize("source", [[], {"age": []}, pd.DataFrame({"age": [], "id": []}), iter(())])
def test_source_without_rows_gives_a_table_without_rows(run, source):
    found = predict(run, source)
    assert (found.num_rows, found.num_skipped) == (0, 0)
    assert found.table.schema.names == ["id", *ADOPTED]
    assert found.table.num_rows == 0
    assert run.asked == []


def test_csv_with_a_header_alone_gives_a_file_without_rows(run, tmp_path):
    (tmp_path / "none.csv").write_text("age,zip,kind,born\n")
    predict(run, tmp_path / "none.csv", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == ",".join(["row", *ADOPTED]) + "\n"


def test_sound_file_that_is_no_table_is_still_an_error(run, tmp_path):
    (tmp_path / "bad.csv").write_text('age,zip\n1,"2\n')
    with raises_with(SourceError, advice=containing("text", "'\"2\\n'")):
        predict(run, tmp_path / "bad.csv")


def test_columns_are_found_by_the_names_they_had_in_training(tmp_path):
    rows = [{"Age": n, "When": f"2024-01-{1 + n:02}", "y": n / 2} for n in range(10)]
    run = fit_run(rows, tmp_path / "s", target="y", rename={"Age": "age", "When": "day"})
    assert run.pipeline.schema["day"].dtype == "int64"
    predict(run, rows[:3])
    predict(run, [{"age": row["Age"], "day": row["When"]} for row in rows[:3]])
    for name in ("age", "day"):
        assert run.asked[0][name].tobytes() == run.asked[1][name].tobytes()


def test_dates_are_read_as_in_training_even_where_one_has_a_time(tmp_path):
    rows = [{"when": f"2024-01-{1 + n:02}T12:00:00", "y": n / 2} for n in range(10)]
    run = fit_run(rows, tmp_path / "s", target="y")
    predict(run, [{"when": "2024-01-02"}])
    predict(run, [{"when": "2024-01-02T00:00:00"}])
    predict(run, [{"when": datetime.date(2024, 1, 2)}])
    predict(run, pd.DataFrame({"when": [pd.Timestamp("2024-01-02")]}))
    assert [asked["when"].tolist() for asked in run.asked] == [run.asked[0]["when"].tolist()] * 4


def test_points_in_time_are_days_where_they_were_days_in_training(run):
    rows = make_pets(3)
    predict(run, rows)
    frame = pd.DataFrame(rows)
    predict(run, frame.assign(born=pd.to_datetime(frame["born"])))
    assert run.asked[0]["born"].tolist() == run.asked[1]["born"].tolist()


def test_dates_whose_origin_is_unknown_are_noted(pets, tmp_path):
    numbers = {"born": ps.fields.Number("int64")}  # as earlier versions stored dates
    known = fit_run(pets[0] / "pets.csv", tmp_path / "set", target="adopted", id="id", fields=numbers)
    alone = FakeRun(known.pipeline, tmp_path / "gone")
    note = "'born' is read as days since 1970: the run does not record the unit used in training"
    assert note in predict(alone, make_pets(3)).notes
    assert predict(known, make_pets(3)).notes == ()
    dates = FakeRun(pets[1].pipeline, tmp_path / "gone")
    assert not any("1970" in each for each in predict(dates, make_pets(3)).notes)  # the field has the unit
    assert predict(pets[1], make_pets(3)).notes == ()


def test_words_that_meant_nothing_in_the_conversion_still_do(tmp_path):
    table = {"a": pa.array([1.0, 2.0, None]), "y": [0.5, 1.5, 2.5]}
    run = fit_run(table, tmp_path / "s", target="y")
    (tmp_path / "new.csv").write_text("a\nNA\n2\n")
    with raises_with(CellError, field="a", got="'NA'"):
        predict(run, tmp_path / "new.csv")
    run.set_tables(convert={"missing": ["", "NA"]})
    assert predict(run, tmp_path / "new.csv").num_rows == 2


def test_run_stands_on_its_own_where_its_data_set_is_gone(pets, expected, tmp_path):
    alone = FakeRun(pets[1].pipeline, tmp_path / "gone")
    found = predict(alone, pets[0] / "pets.csv")
    assert found.table["adopted_probability"].equals(expected["adopted_probability"])
    assert found.table.schema.names[0] == "row"  # the run does not record which column was the id
    recorded = FakeRun(
        pets[1].pipeline, tmp_path / "gone", schema=ps.open(pets[0] / "set").schema.to_json(), plan=None
    )
    assert predict(recorded, pets[0] / "pets.csv").table.schema.names[0] == "id"


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A folder of images by class, and a run that was trained on it."""
    folder = tmp_path_factory.mktemp("photos")
    for number in range(12):
        place = folder / "images" / ("cat", "dog")[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        picture = scene(16 + number, 20, number)
        name, data = (f"{number:02}.png", png(picture)) if number % 3 else (f"{number:02}.jpg", jpeg(picture))
        (place / name).write_bytes(data)
    overrides = {"image": ps.transform.Image(size=(8, 8))}
    return folder / "images", fit_run(folder / "images", folder / "set", overrides, resize=18)


def test_image_folder_gives_paths_and_the_pixels_of_its_records(photos):
    folder, run = photos
    run.asked.clear()
    found = predict(run, folder, batch_size=5)
    assert found.table.schema.names[:3] == ["path", "label", "label_probability"]
    assert found.table["path"].to_pylist()[:2] == ["cat/00.jpg", "cat/02.png"]
    stored = predict(run, run.data, batch_size=5)
    assert stored.table["label_probability"].equals(found.table["label_probability"])
    raw, kept = run.asked[:3], run.asked[3:]
    assert [each["image"].tobytes() for each in raw] == [each["image"].tobytes() for each in kept]


def test_images_without_classes_and_single_images_are_taken(photos, tmp_path, monkeypatch):
    folder, run = photos
    expected = predict(run, folder).table.slice(0, 2)
    for name in ("00.jpg", "02.png"):
        (tmp_path / name).write_bytes((folder / "cat" / name).read_bytes())
    flat = predict(run, tmp_path)
    assert flat.table["path"].to_pylist() == ["00.jpg", "02.png"]
    assert flat.table["label_probability"].equals(expected["label_probability"])
    monkeypatch.chdir(tmp_path)
    for data in (["00.jpg", "02.png"], "0*.*g"):
        named = predict(run, data)
        assert named.table["path"].to_pylist() == ["00.jpg", "02.png"]
        assert named.table["label_probability"].equals(expected["label_probability"])


def test_images_beside_a_table_and_in_memory_are_taken(photos, tmp_path):
    folder, run = photos
    expected = predict(run, folder).table["label_probability"][:2]
    paths = [folder / "cat" / "00.jpg", folder / "cat" / "02.png"]
    (tmp_path / "new.csv").write_text("image\n" + "".join(f"{path}\n" for path in paths))
    for data in (tmp_path / "new.csv", {"image": [path.read_bytes() for path in paths]}):
        assert predict(run, data).table["label_probability"].equals(pa.chunked_array(expected.chunks))


def test_only_image_of_a_model_is_read_from_a_folder_under_any_name(photos, tmp_path):
    folder, _ = photos
    table = {"photo": [png(scene(9, 9, n)) for n in range(4)], "y": [0.5, 1.5, 2.5, 3.0]}
    run = fit_run(table, tmp_path / "s", target="y", fields={"photo": f.Image()})
    assert predict(run, folder).num_rows == 12


def test_image_that_is_gone_or_damaged_is_a_row_that_does_not_fit(photos, tmp_path):
    folder, run = photos
    good, cut = (folder / "cat" / "00.jpg"), tmp_path / "cut.jpg"
    cut.write_bytes(good.read_bytes()[:400])
    (tmp_path / "new.csv").write_text(f"image\n{good}\ncut.jpg\nnone.jpg\n{good}\n")
    found = predict(run, tmp_path / "new.csv", on_error="collect", batch_size=2)
    assert found.table["row"].to_pylist() == [0, 3]
    assert [error.row for error in found.rejected] == [2, 3]
    assert mentions(found.rejected[1], "file")
    with raises_with(FieldError, "(line 3)", field="image", row=2):
        predict(run, tmp_path / "new.csv")
    for data in (tmp_path, [cut]):
        (tmp_path / "new.csv").unlink(missing_ok=True)
        with raises_with(FieldError, f"{cut} 'image' 1 jpeg"):
            predict(run, data)


def test_functions_of_maps_are_handed_to_the_run(run, monkeypatch, tmp_path):
    given = []

    def open_run(path, model, functions):
        given.append((path, model, functions))
        return run

    monkeypatch.setitem(sys.modules, "penstock.training.run_model", ModuleType("run_model"))  # no Keras
    monkeypatch.setattr(sys.modules["penstock.jobs.predict.trained"], "open_run", open_run)
    (tmp_path / "run.yaml").touch()  # the path of a run is checked before Keras is loaded
    functions = {"ratio": dict}
    assert predict(tmp_path, make_pets(2), model="model", functions=functions).num_rows == 2
    assert given == [(tmp_path, "model", functions)]
    with raises_with(OptionError, "functions", got="3"):
        predict(tmp_path, [], functions=3)
