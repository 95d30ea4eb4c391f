"""The layout of raw data in predictions: the words for missing values, from any of the settings of a run."""

import json

import pytest

import penstock as ps
from fake_runs import FakeRun, fit_run
from penstock import fields as f
from penstock.errors import CellError, SchemaError
from penstock.jobs.predict.predict import predict
from penstock.jobs.predict.raw_layout import find_recipe
from penstock.training.recorded_data import RecordedData
from penstock.training.run_config import RunConfig
from raising import raises_with

WORDS = ("", "NA", "none")
FIELDS = {
    "kind": f.Category(optional=True),
    "note": f.Text(optional=True),
    "age": f.Number("float32", optional=True),
}
NEW = "kind,note,age\nNA,NA,NA\n,,\n{},{},3\n"


def write_pets(folder):
    lines = ["kind,note,age,adopted"]
    for n in range(40):
        kind, note, age = ("cat", "dog", "NA")[n % 3], ("shy calm", "NA", "none")[n % 3], (n, "none")[n % 2]
        lines.append(f"{kind},{note},{age},{('no', 'yes')[n % 2]}")
    (folder / "pets.csv").write_text("\n".join(lines) + "\n")
    (folder / "new.csv").write_text(NEW.format("cat", "calm"))
    return folder / "pets.csv"


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    source = write_pets(folder)
    return folder, fit_run(source, folder / "set", missing=WORDS, fields=FIELDS, target="adopted")


def list_inputs(run, folder):
    """Return what the model was fed with, of a row of words and of one of empty cells."""
    run.asked.clear()
    predict(run, folder / "new.csv")
    rows = {name: array.tolist() for name, array in run.asked[0].items()}
    assert set(FIELDS) <= set(rows)
    first, second, third = ({name: values[n] for name, values in rows.items()} for n in range(3))
    assert first != third
    return first, second


def test_words_for_missing_come_from_the_data_set(pets):
    folder, run = pets
    assert json.loads((folder / "set" / "penstock.json").read_text())["plan"]["missing"] == sorted(WORDS)
    first, second = list_inputs(run, folder)
    assert first == second


@pytest.mark.parametrize("table", ["plan", "convert"])
def test_words_for_missing_come_from_the_settings_of_the_run(pets, tmp_path, table):
    folder, run = pets
    manifest = ps.open(folder / "set").manifest
    plan = {key: value for key, value in manifest.plan.items() if table == "plan" or key != "missing"}
    settings = {"schema": manifest.schema.to_json(), "plan": plan}
    if table == "convert":
        settings["convert"] = {"missing": list(WORDS)}
    alone = FakeRun(run.pipeline, tmp_path / "gone", **settings)
    first, second = list_inputs(alone, folder)
    assert first == second


def test_words_of_a_run_that_knows_none_are_values(pets, tmp_path):
    folder, run = pets
    with raises_with(CellError, "(line 2)", field="age", row=1, got="'NA'"):
        predict(FakeRun(run.pipeline, tmp_path / "gone"), folder / "new.csv")
    assert find_recipe(run.pipeline, RecordedData(), None).format.missing == ("",)


@pytest.mark.parametrize("words", [3, {"a": 1}, [1]])
def test_invalid_words_for_missing_are_refused(pets, words):
    with raises_with(SchemaError, "missing list", field="$.plan.missing"):
        find_recipe(pets[1].pipeline, RecordedData(plan={"missing": words}), None)
    with raises_with(SchemaError, "list of strings", field="$.convert.missing"):
        RunConfig.from_json({"convert": {"missing": words}})
    reading = RunConfig.from_json({"convert": {"missing": "NA"}}).reading
    assert find_recipe(pets[1].pipeline, RecordedData(reading=reading), None).format.missing == ("NA",)


def test_usual_words_leave_the_manifest_as_it_was(tmp_path):
    data = ps.convert({"a": [1, 2, 3], "y": [0, 1, 0]}, tmp_path / "set", target="y")
    assert data.manifest is not None
    assert sorted(data.manifest.plan) == ["columns", "resize"]


def test_conversion_that_is_resumed_with_other_words_is_another(pets, tmp_path):
    source = write_pets(tmp_path)
    options = {"fields": FIELDS, "target": "adopted", "resume": True}
    first = ps.convert(source, tmp_path / "set", missing=WORDS, **options)
    again = ps.convert(source, tmp_path / "set", missing=tuple(reversed(WORDS)), **options)
    assert again.manifest == first.manifest
    with pytest.raises(ps.errors.OptionError) as caught:
        ps.convert(source, tmp_path / "set", missing=("", "NA", "none", "nil"), **options)
    assert caught.value.field == "missing"


def test_prediction_reads_files_as_they_were_declared_in_training(tmp_path):
    rows = "".join(f"{n}^{n % 7}^{'ab'[n % 2]}\n" for n in range(60))
    (tmp_path / "train.csv").write_text(rows)
    options = {"delimiter": "^", "header": "none", "target": "column_3"}
    run = fit_run(tmp_path / "train.csv", tmp_path / "out", **options)
    (tmp_path / "new.csv").write_text("5^5\n6^6\n")
    (tmp_path / "other.csv").write_text("5;5\n6;6\n")
    assert predict(run, tmp_path / "new.csv").num_rows == 2
    assert predict(run, tmp_path / "other.csv", delimiter=";").num_rows == 2
    assert run.asked[0]["column_2"].tolist() == run.asked[1]["column_2"].tolist()


def test_prediction_leaves_out_the_comments_that_were_left_out_in_training(tmp_path):
    rows = "".join(f"{n},{n % 7},{'ab'[n % 2]}\n" for n in range(60))
    (tmp_path / "train.csv").write_text(f"# made by hand\nn,digit,kind\n{rows}")
    run = fit_run(tmp_path / "train.csv", tmp_path / "out", comment="#", target="kind")
    (tmp_path / "new.csv").write_text("# also by hand\nn,digit\n5,5\n6,6\n")
    assert predict(run, tmp_path / "new.csv").num_rows == 2
    (tmp_path / "other.csv").write_text("% also by hand\nn,digit\n5,5\n6,6\n")
    assert predict(run, tmp_path / "other.csv", comment="%").num_rows == 2


@pytest.mark.parametrize(
    ("entry", "value"), [("resize", 0), ("resize", "64"), ("delimiter", 7), ("header", "last")]
)
def test_plan_with_a_wrong_entry_is_refused_with_its_path(pets, entry, value):
    with raises_with(SchemaError, "plan of the run", field=f"$.plan.{entry}"):
        find_recipe(pets[1].pipeline, RecordedData(plan={"columns": {}, entry: value}), None)
