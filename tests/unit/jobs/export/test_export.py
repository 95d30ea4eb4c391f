"""`export_model`: bundles that predict as their run does, and exports that must not be written."""

import errno
import inspect
import json
import os
import tempfile

import numpy as np
import pytest

import penstock as ps
from exported_runs import SMALL, build, make_run, share_run, write_run
from penstock.cli.main import main
from penstock.errors import ExportError, OptionError, PathError, WriteError
from penstock.transform.output import Output
from raising import raises_with

keras = pytest.importorskip("keras")
from penstock.export import bundle  # noqa: E402
from penstock.jobs.export import check as check_module  # noqa: E402
from penstock.jobs.export.check_rows import ask_model  # noqa: E402
from penstock.training.run import make_ensemble  # noqa: E402
from penstock.training.run_config import RunConfig  # noqa: E402
from penstock.transform.pipeline import without_targets  # noqa: E402


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return share_run(tmp_path_factory)


def ask_here(chosen, export, folder, model_file=None):
    """Open an export in this process, as `_ask_process` does in a new one; the first test starts one."""
    opened = chosen.load().open_model(export)
    return ask_model(opened.predictor(), without_targets(opened.pipeline), folder)


def list_all(folder):
    return sorted(path.name for path in folder.iterdir())


def read_outputs(found):
    return found.table.drop_columns(["name"])


def test_bundle_agrees_with_its_run_in_a_new_process(run, tmp_path):
    done = ps.export_model(run.folder, tmp_path / "out")
    assert done.format == "bundle"
    assert done.check is not None
    assert done.check.is_fresh
    assert done.check.num_rows == 40
    assert done.check.differences.keys() == {"adopted", "breed", "price"}
    assert max(done.check.differences.values()) <= 1e-6
    assert list_all(tmp_path) == ["out"]
    assert list_all(done.folder) == [
        "architecture.json",
        "export.json",
        "model.json",
        "model.py",
        "pipeline.json",
        "schema.json",
        "weights.safetensors",
    ]
    assert set(done.files) == set(list_all(done.folder)) - {"export.json"}


def test_exported_form_that_differs_is_an_error_and_leaves_nothing(run, tmp_path, monkeypatch):
    """The weights of one layer are changed on their way into the export."""
    write = bundle.save_weights

    def save(folder, model, pipeline, name):
        kernel = next(each for each in model.weights if each.path.endswith("kernel"))
        value = kernel.numpy()
        kernel.assign(value + 1e-2)
        try:
            return write(folder, model, pipeline, name)
        finally:
            kernel.assign(value)

    monkeypatch.setattr(bundle, "save_weights", save)
    monkeypatch.setattr(check_module, "_ask_process", ask_here)
    with pytest.raises(ExportError) as caught:
        ps.export_model(run, tmp_path / "out")
    assert caught.value.field in ("adopted", "breed", "price")  # all inputs agree
    assert "1e-05" in caught.value.expected
    assert list_all(tmp_path) == []


def test_pipeline_that_differs_is_an_error_that_names_the_field(run, tmp_path, monkeypatch):
    """The exported pipeline scales one field otherwise."""

    def change_first(chosen, export, folder, model_file):
        answers = ask_here(chosen, export, folder)
        for batch in answers["input/visits"]:
            batch[0] += 0.5
        for batch in answers["output/price"]:
            batch[0] *= 1.5
        return answers

    monkeypatch.setattr(check_module, "_ask_process", change_first)
    with pytest.raises(ExportError) as caught:
        ps.export_model(run, tmp_path / "out")
    assert caught.value.field == "visits"
    assert list_all(tmp_path) == []


def test_export_that_fails_in_the_new_process_is_an_error_with_its_reason(run, tmp_path, monkeypatch):
    monkeypatch.setattr(check_module, "_MODULE", "penstock.no_such_module")
    with raises_with(ExportError, "no_such_module"):
        ps.export_model(run, tmp_path / "out")
    assert list_all(tmp_path) == []


@pytest.mark.parametrize("when", ["write", "check"])
def test_full_disk_is_an_error_with_the_folder_that_is_full(run, tmp_path, monkeypatch, when):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # as libraries do that write files themselves

    monkeypatch.setattr(
        *{"write": (bundle, "write_parts"), "check": (check_module, "store_rows")}[when], fail
    )
    with pytest.raises(WriteError) as caught:
        ps.export_model(run, tmp_path / "out")
    assert caught.value.path == {"write": str(tmp_path / "out"), "check": tempfile.gettempdir()}[when]
    assert os.strerror(errno.ENOSPC) in str(caught.value)
    assert list_all(tmp_path) == []


@pytest.mark.parametrize(("given", "checked"), [(5, 5), (300, 256)])
def test_check_data_may_be_raw_rows(run, tmp_path, monkeypatch, given, checked):
    monkeypatch.setattr(check_module, "_ask_process", ask_here)
    row = {"age": 3.0, "weight": 20.0, "visits": None, "kind": "c", "zone": 1, "about": "old shy"}
    rows = [{**row, "steps": [1, 2], "marks": [], "tags": ["old"], "age": float(age)} for age in range(given)]
    done = ps.export_model(run, tmp_path / "out", check_data=rows)
    assert done.check.num_rows == checked
    assert max(done.check.differences.values()) <= 1e-6


def test_without_check_nothing_is_compared(run, tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.jobs.export.export.check_export", None)
    assert ps.export_model(run, tmp_path / "out", check=False).check is None


def test_run_without_its_data_needs_data_for_the_check(tmp_path):
    run = make_run(tmp_path)
    (tmp_path / "set").rename(tmp_path / "elsewhere")
    with pytest.raises(OptionError) as caught:
        ps.export_model(run, tmp_path / "out")
    assert caught.value.path == str(tmp_path / "set")
    assert "check_data=DATA" in caught.value.advice
    assert not (tmp_path / "out").exists()


def test_existing_export_is_replaced_only_if_asked(run, tmp_path):
    ps.export_model(run, tmp_path / "out", check=False)
    with pytest.raises(PathError) as caught:
        ps.export_model(run, tmp_path / "out", check=False)
    assert caught.value.path == str(tmp_path / "out")
    ps.export_model(run, tmp_path / "out", check=False, overwrite=True)
    assert ps.Predictor(tmp_path / "out").tasks == run.tasks


@pytest.mark.parametrize(("name", "value"), [("format", "pickle"), ("check", 1), ("chekc", True)])
def test_option_that_is_not_valid_is_an_error(run, tmp_path, name, value):
    with pytest.raises(OptionError) as caught:
        ps.export_model(run, tmp_path / "out", **{name: value})
    assert name in str(caught.value)


def test_code_in_a_bundle_is_never_executed(run, tmp_path):
    ps.export_model(run, tmp_path / "out", check=False)
    code = (tmp_path / "out" / "model.py").read_text()
    assert "def build() -> keras.Model:" in code
    compile(code, "model.py", "exec")
    (tmp_path / "out" / "model.py").unlink()
    manifest = tmp_path / "out" / "export.json"
    form = json.loads(manifest.read_text())
    del form["files"]["model.py"]
    manifest.write_text(json.dumps(form))
    rows = {"weight": 20.0, "zone": 1, "about": "old"}
    assert (
        len(
            ps.Predictor(tmp_path / "out").predict(
                {**rows, "steps": [1], "marks": [], "tags": []}, allow_missing_columns=True
            )
        )
        == 1
    )


def test_ensemble_is_exported_with_all_members(tmp_path):
    rows = {"a": np.arange(20.0), "sold": ["no", "yes"] * 10}
    pipeline = ps.Pipeline.fit(ps.convert(rows, tmp_path / "set", target="sold"))
    settings = {"data": str(tmp_path / "set"), "model": SMALL.to_json()}
    for number in (1, 2):
        write_run(tmp_path / f"member-{number}", build(pipeline, number), pipeline, settings)
    members = [ps.open_run(tmp_path / f"member-{number}") for number in (1, 2)]
    run = make_ensemble(tmp_path, RunConfig(data=settings["data"]), members)
    done = ps.export_model(run, tmp_path / "out", check=False)
    assert {"weights-1.safetensors", "weights-2.safetensors"} <= set(done.files)
    expected = ps.predict(run, {"a": [1.0, 15.0]}).table
    assert ps.Predictor(tmp_path / "out").predict({"a": [1.0, 15.0]}).table.equals(expected)
    with pytest.raises(OptionError) as caught:
        ps.Predictor(tmp_path / "out", model=run.members[0].model)
    assert "function" in caught.value.expected


def build_own():
    left = keras.Input((), name="a")
    hidden = keras.layers.Dense(3, kernel_initializer="ones")(keras.layers.Reshape((1,))(left))
    return keras.Model(left, keras.layers.Dense(1, activation="sigmoid", name="sold")(hidden))


def write_own_run(folder):
    rows = {"a": np.arange(20.0), "sold": ["no", "yes"] * 10}
    pipeline = ps.Pipeline.fit(ps.convert(rows, folder / "set", target="sold"))
    write_run(folder / "run", build_own(), pipeline, {"data": str(folder / "set"), "model": "own"})


def test_bundle_of_a_model_in_a_file_is_checked_in_a_new_process(tmp_path, capsys):
    write_own_run(tmp_path)
    code = "import keras\n\n\n" + inspect.getsource(build_own)
    (tmp_path / "own.py").write_text(code)
    command = ["export", str(tmp_path / "run"), str(tmp_path / "out"), "--json"]
    assert main([*command, "--model", f"{tmp_path / 'own.py'}:build_own"]) == 0
    check = json.loads(capsys.readouterr().out)["check"]
    assert check["new_process"]
    assert check["differences"] == {"sold": 0.0}


def test_bundle_of_a_users_own_model_needs_its_builder(tmp_path):
    write_own_run(tmp_path)
    with pytest.raises(OptionError) as caught:
        ps.export_model(tmp_path / "run", tmp_path / "out")
    assert caught.value.expected == "the model that it was trained with"
    done = ps.export_model(tmp_path / "run", tmp_path / "out", model=build_own)
    assert done.check is not None
    assert not done.check.is_fresh  # the function exists in this process alone
    assert done.check.differences == {"sold": 0.0}
    assert "model.py" not in done.files
    (form,) = json.loads((tmp_path / "out" / "architecture.json").read_text())["members"]
    assert [each["class_name"] for each in form["config"]["layers"]] == [
        "InputLayer",
        "Reshape",
        "Dense",
        "Dense",
    ]
    with pytest.raises(OptionError) as caught:
        ps.Predictor(tmp_path / "out")
    assert "model=build" in caught.value.advice
    found = ps.Predictor(tmp_path / "out", model=build_own).predict({"a": [1.0, 2.0]})
    run = ps.open_run(tmp_path / "run", model=build_own)
    again = ps.export_model(run, tmp_path / "again")  # the open model is copied for the check
    assert again.check is not None
    assert again.check.differences == {"sold": 0.0}
    assert found.table.equals(ps.predict(run, {"a": [1.0, 2.0]}).table)


class Called(keras.Model):
    """A model whose layers are only known when it is called."""

    def __init__(self):
        super().__init__()
        self.layer = keras.layers.Dense(1, activation="sigmoid")

    def call(self, inputs):
        return self.layer(keras.ops.reshape(inputs["a"], (-1, 1)))


def make_called():
    return Called()


def test_check_of_a_model_that_cannot_be_copied_needs_its_builder(tmp_path):
    rows = {"a": np.arange(20.0), "sold": ["no", "yes"] * 10}
    pipeline = ps.Pipeline.fit(ps.convert(rows, tmp_path / "set", target="sold"))
    model = Called()
    model({"a": np.zeros(2, np.float32)})
    write_run(tmp_path / "run", model, pipeline, {"data": str(tmp_path / "set"), "model": "own"})
    run = ps.open_run(tmp_path / "run", model=make_called)
    with pytest.raises(OptionError) as caught:
        ps.export_model(run, tmp_path / "out")
    assert "model=build" in caught.value.advice
    assert not (tmp_path / "out").exists()
    done = ps.export_model(run, tmp_path / "out", model=make_called)
    assert done.check is not None
    assert done.check.differences == {"sold": 0.0}


def double(columns):
    return {"twice": columns["a"].values * 2}


def test_bundle_of_a_pipeline_with_maps_needs_their_functions(tmp_path):
    rows = {"a": np.arange(20.0, dtype=np.float32), "sold": ["no", "yes"] * 10}
    data = ps.convert(rows, tmp_path / "set", target="sold")
    pipeline = ps.Pipeline.fit(data).map(double, ["a"], [Output("twice", "float32", ())])
    model = ps.build_model(pipeline.schema, pipeline, SMALL)
    write_run(tmp_path / "run", model, pipeline, {"data": str(tmp_path / "set"), "model": SMALL.to_json()})
    functions = {"double": double}
    done = ps.export_model(tmp_path / "run", tmp_path / "out", functions=functions)
    assert done.check is not None
    assert not done.check.is_fresh
    with pytest.raises(OptionError) as caught:
        ps.Predictor(tmp_path / "out")
    assert "double" in str(caught.value)
    found = ps.Predictor(tmp_path / "out", functions=functions).predict({"a": [1.0, 2.0]}).table
    run = ps.open_run(tmp_path / "run", functions=functions)
    assert found.equals(ps.predict(run, {"a": [1.0, 2.0]}).table)
    with pytest.raises(OptionError) as caught:
        ps.export_model(run, tmp_path / "served", format="saved_model")
    assert caught.value.field == "a"
