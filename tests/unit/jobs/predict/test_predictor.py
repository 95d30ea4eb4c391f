"""`Predictor`: rows of any kind, the same predictions as with the run."""

import json
import pickle
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from exported_runs import TARGETS, make_rows, make_run, share_run
from penstock.errors import ExportError, NoSuchPathError, OptionError, PenstockError, SchemaError, StateError
from penstock.export.manifest import write_manifest
from raising import mentions

keras = pytest.importorskip("keras")

FULL = {"name": "n", "weight": 21.5, "zone": 2, "about": "old", "steps": [1], "marks": [0.5], "tags": ["old"]}
ROW = {**FULL, "age": None, "visits": None, "kind": None}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return share_run(tmp_path_factory)


@pytest.fixture(scope="module")
def export(run, tmp_path_factory):
    return ps.export_model(run, tmp_path_factory.mktemp("export") / "out", check=False).folder


@pytest.fixture(scope="module")
def predictor(export):
    return ps.Predictor(export)


def list_inputs():
    return [{key: each for key, each in row.items() if key not in TARGETS} for row in make_rows()]


def test_predictions_equal_predictions_of_the_run_for_all_kinds_of_data(run, predictor, tmp_path):
    rows = list_inputs()
    expected = ps.predict(run, rows).table
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "rows.parquet")
    several = [rows, columns, table, pd.DataFrame(rows), pl.from_arrow(table), tmp_path / "rows.parquet"]
    for data in several:
        assert predictor.predict(data).table.equals(expected), type(data)
    assert expected.column_names[:3] == ["name", "adopted", "adopted_probability"]


def test_function_predict_takes_an_export_as_well(run, export, predictor):
    rows = list_inputs()
    assert ps.predict(export, rows).table.equals(predictor.predict(rows).table)


def test_dict_of_values_is_one_row(predictor):
    found = predictor.predict(ROW).to_pylist()
    assert found == predictor.predict([ROW]).to_pylist()
    assert len(found) == 1
    assert found[0]["adopted"] in ("no", "yes")
    assert found[0]["adopted_probability_no"] + found[0]["adopted_probability_yes"] == pytest.approx(1)


def test_temperature_and_units_come_from_the_run(run, predictor):
    assert run.predictor().temperatures["adopted"] == 1.7
    assert predictor._setup.predictor()._predictor.temperatures == run.predictor().temperatures
    assert predictor.tasks["price"].method == "log1p"


def test_prediction_does_not_depend_on_earlier_requests(predictor):
    alone = predictor.predict(ROW).to_pylist()
    predictor.predict([ROW] * 100)
    assert predictor.predict(ROW).to_pylist() == alone


def test_threads_may_share_a_predictor(predictor):
    rows = list_inputs()
    expected = predictor.predict(rows).to_pylist()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda row: predictor.predict(row).to_pylist()[0], rows))
    assert [each["name"] for each in found] == [each["name"] for each in expected]
    for each, other in zip(found, expected, strict=True):
        assert each["adopted_probability"] == pytest.approx(other["adopted_probability"], abs=1e-5)


def test_options_equal_the_options_of_predict(predictor):
    found = predictor.predict([ROW], keep="weight").to_pylist()
    assert found[0]["weight"] == 21.5
    for name, value in (("model", None), ("functions", None), ("overwrite", True), ("kep", "weight")):
        with pytest.raises(OptionError) as caught:
            predictor.predict([ROW], **{name: value})
        assert name in str(caught.value)


def test_column_that_does_not_exist_is_an_error_that_names_it(predictor):
    with pytest.raises(SchemaError) as caught:
        predictor.predict({"Weight" if key == "weight" else key: value for key, value in ROW.items()})
    assert caught.value.field == "weight"
    assert mentions(caught.value.advice, "Did you mean 'weight'")


def test_inputs_that_are_in_no_row_are_an_error_unless_that_is_allowed(predictor):
    for data in (FULL, [FULL], {name: [value] for name, value in FULL.items()}, pd.DataFrame([FULL] * 2)):
        with pytest.raises(SchemaError) as caught:
            predictor.predict(data)
        assert mentions(caught.value, "no column 'age' nor 'visits' 'kind'")
        assert "allow_missing_columns=True" in caught.value.advice
        assert predictor.predict(data, allow_missing_columns=True).to_pylist()[0]["price"] == pytest.approx(
            predictor.predict(ROW).to_pylist()[0]["price"], abs=1e-5
        )


def test_note_is_logged_once(predictor, caplog):
    row = {**ROW, "colour_of_eyes": "green"}
    with caplog.at_level("INFO", "penstock"):
        predictor.predict(row)
        predictor.predict(row)
    assert sum("colour_of_eyes" in each.message for each in caplog.records) == 1


def test_changed_file_is_an_error_that_names_it(run, tmp_path):
    ps.export_model(run, tmp_path / "out", check=False)
    path = tmp_path / "out" / "pipeline.json"
    path.write_text(path.read_text().replace("0.", "1.", 1))
    with pytest.raises(ExportError) as caught:
        ps.Predictor(tmp_path / "out")
    assert caught.value.path == str(path)


def test_bundle_of_a_model_that_is_built_differently_now_is_refused(export, monkeypatch):
    monkeypatch.setattr("penstock.model.encoder.ngrams._RANK_WEIGHT", 1.25)
    with pytest.raises(ExportError) as caught:
        ps.Predictor(export)
    assert caught.value.path == str(export / "architecture.json")


def test_code_of_another_version_does_not_matter_if_it_builds_the_same_model(run, tmp_path):
    """Names of variables in `model.py`, numbers in names of layers, and new options of Keras may change."""
    folder = ps.export_model(run, tmp_path / "out", check=False).folder
    (folder / "model.py").write_text("renamed = 1\n")
    path = folder / "architecture.json"
    text = re.sub(r"\b(cast|add|multiply)_(\d+)\b", r"\1_9\2", path.read_text())
    form = json.loads(text)
    for layer in form["members"][0]["config"]["layers"]:
        layer["config"]["added_later"] = None
    path.write_text(json.dumps(form))
    write_manifest(folder, "bundle", {})
    assert ps.Predictor(folder).predict(ROW).to_pylist() == ps.Predictor(run).predict(ROW).to_pylist()
    form["members"][0]["config"]["layers"].pop()
    path.write_text(json.dumps(form))
    write_manifest(folder, "bundle", {})
    with pytest.raises(ExportError) as caught:
        ps.Predictor(folder)
    assert caught.value.path == str(path)


def test_run_is_taken_as_well(run):
    predictor = ps.Predictor(run.folder)
    assert repr(predictor).startswith("Predictor(")
    assert predictor.predict(ROW).to_pylist() == ps.Predictor(run).predict(ROW).to_pylist()


def test_backend_must_equal_the_backend_of_the_export(export):
    with pytest.raises(OptionError) as caught:
        ps.Predictor(export, backend="onnx")
    assert caught.value.field == "backend"
    assert "format='onnx'" in caught.value.advice
    with pytest.raises(OptionError):
        ps.Predictor(export, backend="torch")
    assert ps.Predictor(export, backend="keras").tasks


@pytest.mark.parametrize("content", [None, {"model": {}}])
def test_folder_that_is_neither_an_export_nor_a_run_is_an_error(tmp_path, content):
    if content is not None:
        (tmp_path / "model.json").write_text(json.dumps(content))
    with pytest.raises(NoSuchPathError) as caught:
        ps.Predictor(tmp_path)
    assert caught.value.path == str(tmp_path)


class Mark:
    """An object that creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_pickled_objects_are_never_loaded(run, tmp_path):
    """One beside the files is an error; and so is one instead of a file, also if digests fit."""
    folder, mark = tmp_path / "out", tmp_path / "mark"
    ps.export_model(run, folder, check=False)
    content = pickle.dumps(Mark(mark))
    (folder / "extra.pkl").write_bytes(content)
    with pytest.raises(ExportError) as caught:
        ps.Predictor(folder)
    assert caught.value.path == str(folder / "extra.pkl")
    (folder / "extra.pkl").unlink()
    for name in ("weights.safetensors", "pipeline.json", "model.json", "schema.json"):
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(content)
        write_manifest(folder, "bundle", {})
        with pytest.raises(PenstockError) as caught:
            ps.Predictor(folder)
        assert caught.value.path == str(folder / name)
        (folder / name).write_bytes(before)
    assert not mark.exists()


def test_weights_of_another_pipeline_are_refused(run, tmp_path):
    """The digests fit: someone has copied the weights of another bundle, and written them again."""
    ps.export_model(run, tmp_path / "out", check=False)
    (tmp_path / "other").mkdir()
    other = make_run(tmp_path / "other", make_rows()[:20])
    other = ps.export_model(other, tmp_path / "other" / "out", check=False)
    shutil.copy(other.folder / "weights.safetensors", tmp_path / "out")
    write_manifest(tmp_path / "out", "bundle", {})
    with pytest.raises(StateError) as caught:
        ps.Predictor(tmp_path / "out")
    assert caught.value.path == str(tmp_path / "out" / "weights.safetensors")


def test_damaged_options_of_a_model_are_an_error_that_names_the_file(run, tmp_path):
    """The digests fit: someone has written them again."""
    ps.export_model(run, tmp_path / "out", check=False)
    form = json.loads((tmp_path / "out" / "model.json").read_text())
    form["model"]["members"] = []
    (tmp_path / "out" / "model.json").write_text(json.dumps(form))
    write_manifest(tmp_path / "out", "bundle", {})
    with pytest.raises(ExportError) as caught:
        ps.Predictor(tmp_path / "out")
    assert caught.value.path == str(tmp_path / "out" / "model.json")
    assert caught.value.field == "$.model.members"
