"""A run's folder: opened with its model, or refused with the name of the missing file."""

import copy
import hashlib
import json
import os
import pickle
import shutil
from dataclasses import replace

import numpy as np
import pytest

import penstock as ps
from penstock.errors import NoSuchPathError, NotPicklableError, OptionError, SchemaError, StateError
from penstock.model.presets import fill_in_preset
from penstock.training.run_writer import Checkpoint, Checkpoints
from penstock.training.snapshot import Snapshot
from penstock.training.tensor_file import read_tensors, write_tensors
from raising import containing, mentions, raises_with
from run_tables import read_tables, write_tables

keras = pytest.importorskip("keras")
from penstock.model.build import build_model  # noqa: E402
from penstock.training.history import write_history  # noqa: E402
from penstock.training.run import open_run  # noqa: E402
from penstock.training.run_model import save_weights  # noqa: E402

OPTIONS = ps.options.ModelOptions(preset="small")
HISTORY = [{"epoch": 1, "step": 3, "loss": 0.5}]


def make(units=1, name="x"):
    """Return a model of one's own."""
    number = keras.Input((), name=name)
    hidden = keras.layers.Dense(2)(keras.ops.expand_dims(number, -1))
    return keras.Model({name: number}, keras.layers.Dense(units, activation="sigmoid")(hidden))


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    table = {"x": np.arange(10.0), "y": ["no", "yes"] * 5}
    data = ps.convert(table, tmp_path_factory.mktemp("run") / "data", target="y", split="train=1.0")
    return ps.Pipeline.fit(data)


def write_run(folder, pipeline, trained, **tables):
    """Write what a run that has ended leaves."""
    folder.mkdir()
    pipeline.save(folder / "pipeline.json")
    write_tables(folder, {"data": "data", "train": {}, **tables})
    save_weights(folder, trained, pipeline)
    write_history(folder, HISTORY)
    return folder


@pytest.fixture(scope="module")
def _built(pipeline, tmp_path_factory):
    """A run of a model that was built."""
    model = build_model(pipeline.schema, pipeline, OPTIONS)
    folder = tmp_path_factory.mktemp("run") / "built"
    facts = {"logits": {"y": False}, "targets": {"y": {"kind": "binary", "labels": 2}}}
    return write_run(folder, pipeline, model, model=fill_in_preset(OPTIONS).to_json(), facts=facts), model


@pytest.fixture
def built(_built, tmp_path):
    """The same, to be spoiled."""
    shutil.copytree(_built[0], tmp_path / "built")
    return tmp_path / "built", _built[1]


@pytest.fixture
def own(pipeline, tmp_path):
    """A run of a model of one's own."""
    model = make()
    return write_run(tmp_path / "own", pipeline, model, model="own"), model


def list_weights(model):
    return [weight.__array__().tolist() for weight in model.weights]


def test_model_that_was_built_is_rebuilt_with_its_weights(built):
    folder, model = built
    run = open_run(folder)
    assert run.model is not model
    assert list_weights(run.model) == list_weights(model)
    assert (run.history, run.logits, run.data) == (HISTORY, {"y": False}, folder / "data")
    assert run.tasks["y"].labels == ("no", "yes")
    assert repr(run) == f"Run({str(folder)!r}, 1 epoch, y: binary, 2 labels)"
    page = run._repr_html_()
    assert page.count("<svg") == 1  # of the loss; epochs and steps are no curves
    assert "binary, 2 labels" in page
    row = {"epoch": 1, "step": 3, "loss": 0.5, "val_loss": 0.6, "accuracy": 0.9, "seconds": 2.0}
    page = replace(run, history=[row, {**row, "val_loss": float("nan")}])._repr_html_()
    assert page.count("<svg") == 2
    assert "</span> training</span>" in page
    assert "</span> validation</span>" in page
    assert replace(run, history=[])._repr_html_().count("<svg") == 0
    members = (replace(run, folder=folder / "member-1", history=[row]), run)
    page = replace(run, history=[], members=members)._repr_html_()
    assert page.count("<svg") == 1
    assert "</span> member-1, validation</span>" in page
    chances = run.predictor()({"x": np.arange(3, dtype=np.float32)})["y"]
    assert chances.shape == (3,)
    assert ((chances > 0) & (chances < 1)).all()


def test_model_of_ones_own_is_given_its_weights(own):
    folder, model = own
    other = make()
    assert list_weights(other) != list_weights(model)
    run = open_run(os.fspath(folder), model=other)
    assert run.model is other
    assert list_weights(other) == list_weights(model)
    assert run.logits == {"y": False}


def finish(folder):
    """Write the state of a run that has finished."""
    checkpoints = Checkpoints(folder, {})
    checkpoints.save(Checkpoint(1, Snapshot({}), {}))
    digest = hashlib.sha256((folder / "weights.safetensors").read_bytes()).hexdigest()
    checkpoints.finish("finished", digest)


def send(thing):
    return pickle.loads(pickle.dumps(thing))  # noqa: S301


@pytest.mark.parametrize("send", [send, copy.deepcopy])
def test_run_in_a_pickle_is_opened_again_from_its_folder(built, send, monkeypatch):
    finish(built[0])
    monkeypatch.chdir(built[0].parent)
    run = open_run("built")
    again = send(run)
    assert again.folder == built[0].resolve()
    assert again.model is not run.model
    assert list_weights(again.model) == list_weights(run.model)
    assert again.pipeline.fingerprint() == run.pipeline.fingerprint()
    assert (again.history, again.config) == (run.history, run.config)
    assert len(pickle.dumps(run)) < 1000


def test_run_that_was_trained_again_is_not_the_pickled_one(built, pipeline):
    folder, _ = built
    finish(folder)
    stored = pickle.dumps(open_run(folder))
    other = build_model(pipeline.schema, pipeline, OPTIONS)
    other.weights[0].assign(other.weights[0] + 1)
    save_weights(folder, other, pipeline)
    finish(folder)
    with pytest.raises(StateError) as caught:
        pickle.loads(stored)  # noqa: S301
    assert caught.value.path == os.fspath(folder.resolve())
    assert "ps.open_run" in caught.value.advice


@pytest.mark.parametrize("send", [pickle.dumps, copy.deepcopy])
def test_run_of_ones_own_model_is_not_pickled(own, send):
    folder, model = own
    with pytest.raises(NotPicklableError) as caught:
        send(open_run(folder, model=model))
    assert caught.value.path == os.fspath(folder)
    assert f"ps.open_run({os.fspath(folder)!r}, model=…)" in caught.value.advice


def test_data_set_elsewhere_is_where_it_was(own, pipeline, tmp_path):
    folder, model = own
    write_tables(folder, {"data": str(tmp_path / "elsewhere"), "model": "own"})
    assert open_run(folder, model=model).data == tmp_path / "elsewhere"


def test_folder_without_a_run_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "nothing"):
        with raises_with(NoSuchPathError, f"{path} run.yaml"):
            open_run(path)


def test_run_that_has_not_ended_is_refused(built):
    folder, _ = built
    (folder / "weights.safetensors").unlink()
    with raises_with(StateError, f"{folder} out={str(folder)!r} resume=True"):
        open_run(folder)


def test_run_without_its_pipeline_is_refused(built):
    folder, _ = built
    (folder / "pipeline.json").unlink()
    with pytest.raises(NoSuchPathError, match=r"pipeline\.json"):
        open_run(folder)


def test_model_of_ones_own_must_be_given(own):
    folder, _ = own
    with raises_with(
        OptionError,
        f"{folder / 'run.yaml'} model=build",
    ):
        open_run(folder)


def test_model_with_other_inputs_is_refused(own):
    with raises_with(OptionError, "input", field="z"):
        open_run(own[0], model=make(name="z"))


def test_model_with_other_weights_is_refused(own):
    folder, _ = own
    path = folder / "weights.safetensors"
    number = keras.Input((), name="x")
    shallow = keras.layers.Dense(1, activation="sigmoid")(keras.ops.expand_dims(number, -1))
    with raises_with(StateError, f"{path} 4 2"):
        open_run(folder, model=keras.Model({"x": number}, shallow))


def test_weights_of_other_shapes_are_refused_with_the_first(own):
    folder, _ = own
    number = keras.Input((), name="x")
    hidden = keras.layers.Dense(3)(keras.ops.expand_dims(number, -1))
    wide = keras.Model({"x": number}, keras.layers.Dense(1, activation="sigmoid")(hidden))
    with raises_with(StateError, "shape weight 0", expected=containing("(1, 2)"), got=containing("(1, 3)")):
        open_run(folder, model=wide)


def test_weights_under_other_names_are_refused(own, pipeline):
    folder, model = own
    arrays, texts = read_tensors(folder / "weights.safetensors")
    renamed = {f"w{name}": array for name, array in arrays.items()}
    write_tensors(folder / "weights.safetensors", renamed, texts)
    with raises_with(StateError, expected=containing(0, 3)):
        open_run(folder, model=model)


def test_weights_of_another_pipeline_are_refused(built, pipeline):
    folder, _ = built
    form = json.loads((folder / "pipeline.json").read_bytes())
    form["transforms"]["x"]["fitted"]["shift"][0] += 1.0
    (folder / "pipeline.json").write_text(json.dumps(form))
    with pytest.raises(StateError) as caught:
        open_run(folder)
    known = pipeline.fingerprint()[:12]
    assert mentions(str(caught.value), f"pipeline.json weights {known}…")


def test_damaged_weights_are_refused(built):
    folder, _ = built
    path = folder / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-3])
    with raises_with(StateError, "weights.safetensors weights"):
        open_run(folder)


def test_weights_with_a_bit_changed_are_refused(own):
    folder, model = own
    path = folder / "weights.safetensors"
    checkpoints = Checkpoints(folder, {})
    checkpoints.save(Checkpoint(1, Snapshot({}), {}))
    checkpoints.finish("finished", hashlib.sha256(path.read_bytes()).hexdigest())
    assert open_run(folder, model=model).history == HISTORY
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with raises_with(StateError, "weights.safetensors SHA-256"):
        open_run(folder, model=model)


def test_settings_that_build_no_model_are_refused_with_their_file(built):
    folder, _ = built
    tables = read_tables(folder / "run.yaml")
    write_tables(folder, {**tables, "model": {"preset": "huge"}})
    with raises_with(SchemaError, "run.yaml", field="$.model.preset", got="'huge'"):
        open_run(folder)
    (folder / "run.yaml").write_text("modle: {}\n")
    with raises_with(SchemaError, "run.yaml 1 'model'", field="$.modle"):
        open_run(folder)


@pytest.mark.parametrize("text", ["epoch,loss\n1,abc\n", "epoch,loss\n1,2,3\n"])
def test_invalid_history_is_refused(own, text):
    folder, model = own
    (folder / "history.csv").write_text(text)
    with pytest.raises(StateError, match=r"history\.csv"):
        open_run(folder, model=model)


def test_run_without_a_history_has_none(own):
    folder, model = own
    (folder / "history.csv").unlink()
    assert open_run(folder, model=model).history == []


def test_numbers_that_the_loss_took_for_classes_are_classes_again(tmp_path):
    table = {"x": np.arange(12.0), "y": np.arange(12) % 3}
    fields = {"y": ps.fields.Number("int64")}
    data = ps.convert(table, tmp_path / "data", target="y", fields=fields, split="train=1.0")
    pipeline = ps.Pipeline.fit(data)
    number = keras.Input((), name="x")
    model = keras.Model({"x": number}, keras.layers.Dense(3, "softmax")(keras.ops.expand_dims(number, -1)))
    facts = {"targets": {"y": {"kind": "multiclass", "labels": 3}}, "logits": {"y": False}}
    folder = write_run(tmp_path / "run", pipeline, model, model="own", facts=facts)
    task = open_run(folder, model=model).tasks["y"]
    assert (task.kind, task.labels) == ("multiclass", (0, 1, 2))
